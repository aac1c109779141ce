"""DVC pipelines: `dvc repro`, and the stages that it tells of."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_tool_python, load_yaml
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks, list_of
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_golden.trajectory.readers.model import StepDraft

_RUNNING = re.compile(r"Running (?:stage|callback stage) '(.+)':")
_SKIPPED = re.compile(r"Stage '(.+)' (didn't change, skipping|is cached - skipping run.*)")
_FAILED = re.compile(r"ERROR: failed to reproduce '(.+?)': (.*)")


def read_stages(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the stages in their order. DVC tells no times."""
    tasks = Tasks("dvc")
    words: list[str] = []
    for line in stdout.splitlines():
        if running := _RUNNING.fullmatch(line):
            tasks.begin(running[1], running[1])
            tasks.end(running[1])
        elif skipped := _SKIPPED.fullmatch(line):
            tasks.begin(skipped[1], skipped[1])
            tasks.end(skipped[1], status="skipped")
    for line in stderr.splitlines():
        if failed := _FAILED.fullmatch(line):
            if words:
                tasks.fail(failed[1], words)
            else:
                tasks.end(failed[1], error=failed[2])
        elif line.strip():
            words.append(line)
    return tasks.drafts()


def list_data(folder: Path, tracked: Collection[str]) -> Iterator[str]:
    """Yield the data that `*.dvc` files name: git ignores it, and DVC tracks it."""
    for path in tracked:
        if not path.endswith(".dvc"):
            continue
        document = load_yaml(folder / path)
        place = Path(path).parent / str(as_mapping(document).get("wdir") or "")
        for out in list_of(document, "outs"):
            name = os.path.normpath(place / str(as_mapping(out).get("path") or ""))
            # Data outside of the folder is in no view of it, and an entry without a path names none.
            if name != "." and not name.startswith(("/", os.pardir)):
                yield name


READERS = (OutputReader("dvc", read_stages),)
RUNNERS = (
    Runner(
        name="dvc",
        files="dvc.yaml",
        suffixes=(".yaml",),
        recognises=lambda pipeline: pipeline.file.name == "dvc.yaml",
        find_start=lambda pipeline: (find_tool_python("dvc", "dvc", pipeline), "-m", "dvc"),
        arguments=lambda _: ("repro", "{path}"),
        environment=lambda _: {"DVC_NO_ANALYTICS": "1", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        step_readers=("dvc",),
        engine_files=("**/.dvc/**", "**/dvc.lock", "**/.dvcignore"),
        is_incremental=True,
        list_data=list_data,
        program="dvc",
        is_sure=True,
        distributions=("dvc",),
        oldest="3.0",
    ),
)
