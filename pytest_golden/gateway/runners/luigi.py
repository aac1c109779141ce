"""Luigi: the tasks of one module with a local scheduler. A failed task is a failure (see `luigi_child.py`)."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_golden.gateway.runners.runner import Runner, find_above_package, find_tool_python, name_module

_CHILD = Path(__file__).with_name("luigi_child.py")

# A task that only requires others is what people start, if it needs no parameter.
_WRAPPER = re.compile(r"^class (\w+)\((?:luigi\.)?WrapperTask\):\n((?:[ \t]+.*\n|\s*\n)*)", re.MULTILINE)
_NAMESPACE = re.compile(r"^\s+task_namespace = ['\"]([\w.]+)['\"]", re.MULTILINE)
_OPEN_PARAMETER = re.compile(r"= (?:luigi\.)?\w*Parameter\((?!.{0,500}\bdefault\b)", re.MULTILINE)


def _find_task(text: str) -> tuple[str, ...] | None:
    task = next((one for one in _WRAPPER.finditer(text) if not _OPEN_PARAMETER.search(one[2])), None)
    if task is None:
        return None
    namespace = _NAMESPACE.search(task[2])
    return (f"{namespace[1]}.{task[1]}" if namespace else task[1],)


RUNNERS = (
    Runner(
        name="luigi",
        files="a module with Luigi's tasks (.py)",
        suffixes=(),
        find_start=lambda pipeline: (find_tool_python("luigi", "luigi", pipeline), str(_CHILD)),
        # `args:` names the task.
        arguments=lambda pipeline: ("--local-scheduler", "--module", name_module(pipeline)),
        environment=lambda _: {"PYTHONUNBUFFERED": "1"},
        is_incremental=True,
        program="luigi",
        find_in_script=_find_task,
        find_folder=find_above_package,
        distributions=("luigi",),
        oldest="3.0",
    ),
)
