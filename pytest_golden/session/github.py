"""What GitHub shows of a session by itself: annotations at the manifest's lines, and the summary of the job."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.report import append_report, job_summary
from pytest_golden.report.failure_text import explain_failure, first_difference
from pytest_golden.report.github import Annotation, annotate
from pytest_golden.report.job_summary import MOST_BYTES
from pytest_golden.report.one_line import note_unchecked_needs, summarize_reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.report.github import Level
    from pytest_golden.session.parts import SessionParts

_TAKEN_BY_GITHUB = 1024 * 1024


class GitHubNews:
    """Speaks to GitHub Actions, and elsewhere says nothing."""

    def __init__(self, parts: SessionParts) -> None:
        self._declared = parts.declared
        self._recorder = parts.recorder
        self._floor = parts.floor
        self._warnings = parts.warnings
        self._is_there = os.environ.get("GITHUB_ACTIONS") == "true"
        self._summary = os.environ.get("GITHUB_STEP_SUMMARY")

    def annotations(self) -> Iterator[str]:
        """Give the annotations of what a person must see."""
        if self._is_there:
            yield from annotate([*self._list_annotations()], file=self._manifest_for_github())

    def _list_annotations(self) -> Iterator[Annotation]:
        lines = self._declared.manifest.lines
        for warning in self._warnings:
            yield Annotation("warning", warning, "golden projects")
        for result in self._recorder.results:
            if self._recorder.fails(result):
                told = "\n".join([summarize_reasons(result), *first_difference(result)])
                yield Annotation("error", told, f"{result.name}: {result.status}", lines.get(result.name))
        level: Level = "warning" if self._floor.is_accepted else "error"
        for weakening in self._floor.weakenings:
            name = weakening.project
            told = f"{name}: {weakening.message}" if name else weakening.message
            yield Annotation(level, told, "weakened floor", lines.get(name or ""))

    def write_summary(self, problems: Sequence[str]) -> None:
        """Append to the summary of the job; `problems` are what went wrong with other reports.

        Raises:
            GoldenError: the file cannot be written.
        """
        if self._is_there and self._summary:
            make_text = partial(self._describe_run, problems)
            append_report(Path(self._summary), make_text, named="GITHUB_STEP_SUMMARY")

    def _describe_run(self, problems: Sequence[str], bytes_before: int) -> str:
        recorder = self._recorder
        unchecked = note_unchecked_needs(recorder.unchecked_needs)
        failures = {
            result.name: explain_failure(result, shell_command=self._declared.shell_command(result.name))
            for result in recorder.results
            if recorder.fails(result)
        }
        text = job_summary(
            recorder.check_result,
            failures=failures,
            deselected=recorder.deselected,
            not_run=recorder.not_run,
            weakenings=self._floor.weakenings,
            floor_accepted=self._floor.is_accepted,
            notes=[*problems, *self._warnings, *self._floor.notes, *([unchecked] if unchecked else [])],
            most_bytes=min(MOST_BYTES, _TAKEN_BY_GITHUB - bytes_before - 1),
        )
        # A line that an earlier command left open would swallow the heading.
        return f"\n{text}" if bytes_before else text

    def _manifest_for_github(self) -> str | None:
        path = self._declared.manifest_path
        if path is None:
            return None
        checkout = Path(os.environ.get("GITHUB_WORKSPACE", "."))
        return Path(os.path.relpath(path, checkout)).as_posix()
