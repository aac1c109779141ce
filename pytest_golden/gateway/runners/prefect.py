"""Prefect: a script that calls its flows, and the task runs that it logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.readers.model import StepDraft

_RUN = re.compile(r"[\d:.]+ \| \w+ *\| Task run '(.+?)' - (.*)")
_ENDED = re.compile(r"Finished in state (\w+)\(")
_RAISED = re.compile(r"Task run failed with exception: (.*)")
# Task runs are named after their task, with a few letters that are others in each run.
_STAMP = re.compile(r"-[0-9a-f]{3,}$")
# A script that calls its flows itself.
_FLOW = re.compile(r"^@(?:\w+\.)?flow\b", re.MULTILINE)
_CALLS = re.compile(r"^if __name__ ?== ?['\"]__main__['\"]", re.MULTILINE)
_SUCCESS = frozenset({"Completed", "Cached", "TypedCompleted"})


def read_task_runs(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the task runs in the order in which they ended."""
    tasks = Tasks("prefect")
    raised: dict[str, str] = {}
    for line in (*stdout.splitlines(), *stderr.splitlines()):
        run = _RUN.fullmatch(line)
        if run is None:
            continue
        key, told = run[1], run[2]
        if found := _RAISED.match(told):
            raised[key] = found[1]
        elif ended := _ENDED.match(told):
            tasks.begin(key, _STAMP.sub("", key), state=ended[1])
            error = None if ended[1] in _SUCCESS else raised.get(key, f"it ended in state {ended[1]}")
            tasks.end(key, error=error)
    return tasks.drafts()


READERS = (OutputReader("prefect", read_task_runs),)
RUNNERS = (
    Runner(
        name="prefect",
        files="a script with Prefect's flows (.py)",
        suffixes=(),
        find_start=lambda pipeline: (pipeline.python,),
        environment=lambda _: {
            "DO_NOT_TRACK": "1",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_COLORS": "false",
            # A server of its own is started for the run, with a new database.
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        },
        step_readers=("prefect",),
        find_in_script=lambda text: () if _FLOW.search(text) and _CALLS.search(text) else None,
        distributions=("prefect",),
        oldest="3.0",
    ),
)
