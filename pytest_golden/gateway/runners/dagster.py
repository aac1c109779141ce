"""Dagster: `dagster asset materialize` for all assets of a file, and the steps in the events that it prints (see `dagster_child.py`)."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import (
    LEFT_OUT_FILE,
    Runner,
    find_above_package,
    find_tool_python,
    name_module,
)
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.gateway.runners.runner import PipelineFile
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.readers.model import StepDraft

_CHILD = Path(__file__).with_name("dagster_child.py")
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) - dagster - ")
_EVENT = re.compile(_LINE.pattern + r"\w+ - \S+ - \S+ - \d+ - (\S+) - (STEP_\w+) - (.*)")
_TOOK = re.compile(r'Finished execution of step ".*" in (?:(\d+)m)?(?:([\d.]+)(ms|s))?\.')
_STACK = "Stack Trace:"
_DEFINITIONS = re.compile(r"^\w+\s*(?::[^=\n]*)?=\s*(?:\w+\.)?Definitions\(", re.MULTILINE)


def _choose_target(pipeline: PipelineFile) -> tuple[str, ...]:
    """Return the option for a file, or for a module of a package, which may import relatively."""
    if find_above_package(pipeline.file) == pipeline.project_dir != pipeline.file.parent:
        return ("-m", name_module(pipeline))
    return ("-f", "{path}")


def _find_narrowing(project: GoldenProjectConfig, _file: Path) -> Callable[[str], bool] | None:
    """Return the test for modules and baselines; None if arguments may say what is materialized."""
    return None if project.args else lambda path: path.endswith(".py")


def read_events(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the steps in their order, by the events of their beginning and end."""
    tasks, failed = Tasks("dagster"), ""
    words: list[str] = []
    for line in (*stdout.splitlines(), *stderr.splitlines()):
        if failed and (_LINE.match(line) or line == _STACK):
            # The exception of the step itself is the last one above its stack.
            tasks.end(failed, error=next((word for word in reversed(words) if word.strip()), "the step failed"))
            failed, words = "", []
        event = _EVENT.fullmatch(line)
        if event is None:
            words += [line] if failed else []
            continue
        at, key, kind, told = datetime.strptime(event[1], "%Y-%m-%d %H:%M:%S %z"), event[2], event[3], event[4]
        if kind == "STEP_START":
            tasks.begin(key, key, at)
        elif kind == "STEP_SUCCESS":
            tasks.end(key, at, duration_ms=_read_duration(told))
        elif kind == "STEP_SKIPPED":
            tasks.end(key, at, status="skipped")
        elif kind == "STEP_FAILURE":
            tasks.end(key, at)
            failed = key
    return tasks.drafts()


def _read_duration(told: str) -> float | None:
    took = _TOOK.match(told)
    if took is None:
        return None
    rest = float(took[2] or 0) * (1 if took[3] == "ms" else 1000)
    return int(took[1] or 0) * 60_000 + rest


READERS = (OutputReader("dagster", read_events),)
RUNNERS = (
    Runner(
        name="dagster",
        files="Dagster's definitions (.py)",
        suffixes=(),
        find_start=lambda pipeline: (find_tool_python("dagster", "dagster", pipeline), str(_CHILD)),
        arguments=lambda pipeline: ("asset", "materialize", "--select", "*", *_choose_target(pipeline)),
        environment=lambda _: {
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        },
        step_readers=("dagster",),
        engine_files=(LEFT_OUT_FILE,),
        program="dagster",
        find_in_script=lambda text: () if _DEFINITIONS.search(text) else None,
        find_folder=find_above_package,
        distributions=("dagster",),
        oldest="1.6",
        find_narrowing=_find_narrowing,
    ),
)
