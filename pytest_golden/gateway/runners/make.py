"""Makefiles: GNU make 4, and the targets that it tells of when it traces itself (`MAKEFLAGS=--trace`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_program
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.readers.model import StepDraft

_BEGUN = re.compile(r"\S+:\d+: (?:update )?target '(.+?)' (?:due to: .*|does not exist)")
_FAILED = re.compile(r"\w*make(?:\[\d+\])?: \*\*\* \[(?:\S+:\d+: )?(.+?)\] (.+)")
_NO_RULE = re.compile(r"\w*make(?:\[\d+\])?: \*\*\* (No rule to make target '.+?', needed by '(.+?)'\.).*")
_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile"})


def read_targets(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the targets in the order of their recipes. make tells no times."""
    tasks = Tasks("make")
    words: list[str] = []
    for line in stdout.splitlines():
        if begun := _BEGUN.fullmatch(line):
            tasks.begin(begun[1], begun[1])
            tasks.end(begun[1])
    for line in stderr.splitlines():
        if missing := _NO_RULE.fullmatch(line):
            tasks.end(missing[2], error=missing[1])
        elif failed := _FAILED.fullmatch(line):
            tasks.fail(failed[1], [*words, f"make: {failed[2]}"])
            words = []
        elif line.strip():
            words.append(line)
    return tasks.drafts()


READERS = (OutputReader("make", read_targets),)
RUNNERS = (
    Runner(
        name="make",
        files="Makefile",
        suffixes=("", ".mk"),
        recognises=lambda pipeline: pipeline.file.suffix == ".mk" or pipeline.file.name in _NAMES,
        find_start=lambda pipeline: find_program("make", pipeline),
        arguments=lambda _: ("-f", "{path}"),
        # An older make passes over it.
        environment=lambda _: {"MAKEFLAGS": "--trace"},
        step_readers=("make",),
        is_incremental=True,
        program="make",
    ),
)
