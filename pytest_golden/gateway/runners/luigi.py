"""Luigi: the tasks of one module with a local scheduler. A failed task is a failure (see `luigi_child.py`)."""

from __future__ import annotations

from pathlib import Path

from pytest_golden.gateway.runners.runner import Runner, find_tool_python

_CHILD = Path(__file__).with_name("luigi_child.py")

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
        distributions=("luigi",),
    ),
)
