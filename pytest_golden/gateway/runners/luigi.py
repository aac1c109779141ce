"""Luigi: the tasks of one module with a local scheduler. A failed task is a failure (see `luigi_child.py`)."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_golden.gateway.runners.runner import Runner, find_tool_python

_CHILD = Path(__file__).with_name("luigi_child.py")

# A task that only requires others is what people start.
_WRAPPER = re.compile(r"^class (\w+)\((?:luigi\.)?WrapperTask\)", re.MULTILINE)


def _find_task(text: str) -> tuple[str, ...] | None:
    task = _WRAPPER.search(text)
    return None if task is None else (task[1],)


RUNNERS = (
    Runner(
        name="luigi",
        files="a module with Luigi's tasks (.py)",
        suffixes=(),
        find_start=lambda pipeline: (find_tool_python("luigi", "luigi", pipeline), str(_CHILD)),
        # `args:` names the task.
        arguments=lambda pipeline: ("--local-scheduler", "--module", pipeline.file.stem),
        environment=lambda _: {"PYTHONUNBUFFERED": "1"},
        is_incremental=True,
        program="luigi",
        find_in_script=_find_task,
        distributions=("luigi",),
    ),
)
