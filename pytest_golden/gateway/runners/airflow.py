"""Airflow: `airflow dags test` of one DAG, and the tasks that it logs (see `airflow_child.py`)."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_tool_python
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gateway.runners.runner import PipelineFile
    from pytest_golden.trajectory.readers.model import StepDraft

_CHILD = Path(__file__).with_name("airflow_child.py")
_TASK = re.compile(r"\[?(\S+?)\]? .*\[DAG TEST\] (starting|end task) task_id=(\S+) map_index=(-?\d+)")
_RAISED = re.compile(r".*(?:Task failed with exception|Marking task as (?:FAILED|UP_FOR_RETRY))")
_TRACEBACK = "Traceback (most recent call last):"
_LOGGED = re.compile(r"\[?\d{4}-\d\d-\d\d\S* ")
_NO_MAP = "-1"
_IMPORT = re.compile(r"^(?:from|import) airflow\b", re.MULTILINE)
_DAG = re.compile(
    r"""\bDAG\(\s*(?:dag_id\s*=\s*)?["']([\w.-]+)["']|@dag\b[^\n]*dag_id\s*=\s*["']([\w.-]+)["']|^@dag\b.*?^def (\w+)""",
    re.MULTILINE | re.DOTALL,
)


def read_tasks(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the tasks in the order in which they began; one of a mapped task is named with its number."""
    tasks = Tasks("airflow")
    words: list[str] = []
    has_failed = False
    for line in (*stdout.splitlines(), *stderr.splitlines()):
        task = _TASK.match(line)
        if task is not None:
            at, name = _read_time(task[1]), task[3] if task[4] == _NO_MAP else f"{task[3]}[{task[4]}]"
            if task[2] == "starting":
                tasks.begin(name, name, at)
            else:
                tasks.end(name, at)
                if has_failed:
                    tasks.fail(name, words, at)
            words, has_failed = [], False
        elif _RAISED.match(line):
            has_failed = True
        elif line == _TRACEBACK or (words and not _LOGGED.match(line)):
            words.append(line)
    return tasks.drafts()


def _read_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _find_dag(text: str) -> tuple[str, ...] | None:
    """Return the name of the only DAG of a file."""
    found = {next(filter(None, names)) for names in _DAG.findall(text)} if _IMPORT.search(text) else ()
    return tuple(found) if len(found) == 1 else None


def _find_start(pipeline: PipelineFile) -> tuple[str, ...]:
    # The view may lie at another path.
    folder = os.path.relpath(pipeline.file.parent, pipeline.project_dir)
    return (find_tool_python("airflow", "airflow", pipeline), str(_CHILD), folder)


READERS = (OutputReader("airflow", read_tasks),)
RUNNERS = (
    Runner(
        name="airflow",
        files="a file with Airflow's DAGs (.py)",
        suffixes=(),
        find_start=_find_start,
        # `args:` names the DAG.
        arguments=lambda _: ("dags", "test"),
        environment=lambda _: {
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "SCARF_ANALYTICS": "false",
            "DO_NOT_TRACK": "1",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        },
        step_readers=("airflow",),
        program="airflow",
        find_in_script=_find_dag,
        distributions=("apache-airflow",),
        oldest="2.10",
    ),
)
