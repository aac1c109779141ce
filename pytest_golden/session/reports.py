"""From results to pytest's reports and back: outcome, failure text, and what a report without a result means."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gate.service import error_result
from pytest_golden.redaction import redact
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.report.failure_text import explain_failure
from pytest_golden.report.github import disarm
from pytest_golden.report.one_line import summarize_reasons

if TYPE_CHECKING:
    import pytest

    from pytest_golden.manifest.model import GoldenProjectConfig


_PHASES = frozenset({"setup", "call", "teardown"})


class Crash(NamedTuple):
    """What pytest shows of a failure in one line."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class FailureRepr:
    """A failure as pytest wants to show it: the reason first, no traceback."""

    def __init__(self, reprcrash: Crash, text: str) -> None:
        self.reprcrash = reprcrash
        self._text = text

    def toterminal(self, tw: Any) -> None:
        """Write the text; the first line stands out."""
        first, *rest = disarm(self._text).splitlines()
        tw.line(first, red=True, bold=True)
        for line in rest:
            tw.line(line)

    def __str__(self) -> str:
        return self._text


def read_result(report: pytest.TestReport, project: GoldenProjectConfig) -> GoldenProjectResult | None:
    """Give the result that a report brings, or None when it brings no news (a passed setup or teardown).

    A worker that crashed sends no result, nor does a setup that failed or was skipped by some marker.
    """
    text = getattr(report, "golden", None)
    if text is not None:
        return GoldenProjectResult.from_dict(json.loads(text))
    if report.when not in _PHASES:
        return error_result(project, ReasonKind.WORKER_CRASHED, str(report.longrepr))
    if report.skipped:
        return _skipped_by_pytest(report, project)
    if report.failed:
        return _failed_in_pytest(report, project)
    return None


def place_crash(report: pytest.TestReport, project: GoldenProjectConfig, line: int | None) -> None:
    """Make the report of a crashed worker name the project and its line, as any other report of it does."""
    if report.when not in _PHASES:
        report.when = "call"
        report.location = (report.location[0], None if line is None else line - 1, project.name)


def dress_report(
    report: pytest.TestReport, result: GoldenProjectResult, *, fails: bool, shell_command: str | None
) -> None:
    """Make the report say what the result says: to the summary, JUnit XML, `--lf` and every other reader."""
    path, line = report.location[0], (report.location[1] or 0) + 1
    report.__dict__.pop("wasxfail", None)
    if fails:
        report.outcome = "failed"
        text = explain_failure(result, shell_command=shell_command)
        report.longrepr = FailureRepr(Crash(path, line, disarm(summarize_reasons(result))), text)  # type: ignore[assignment]
    elif result.quarantined is not None:
        report.outcome = "skipped"
        report.wasxfail = disarm(f"quarantined, {result.quarantined}: {summarize_reasons(result)}")
        report.longrepr = (path, line, report.wasxfail)
    elif result.status is ResultStatus.SKIPPED:
        report.outcome = "skipped"
        report.longrepr = (path, line, disarm(f"Skipped: {summarize_reasons(result)}"))
    else:
        report.outcome = "passed"
        report.longrepr = None


def category_of(result: GoldenProjectResult, *, fails: bool) -> str:
    """Give the word under which pytest counts this result."""
    if fails:
        return "error" if result.status is ResultStatus.ERROR else "failed"
    if result.quarantined is not None:
        return "xfailed"
    return "skipped" if result.status is ResultStatus.SKIPPED else "passed"


def _skipped_by_pytest(report: pytest.TestReport, project: GoldenProjectConfig) -> GoldenProjectResult:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    message = f"skipped by pytest: {told.removeprefix('Skipped: ')}"
    return GoldenProjectResult(
        name=project.name,
        path=str(project.path),
        status=ResultStatus.SKIPPED,
        error_message=message,
        reasons=(Reason(ReasonKind.SKIPPED_BY_PYTEST, message),),
        attempts=0,
    )


def _failed_in_pytest(report: pytest.TestReport, project: GoldenProjectConfig) -> GoldenProjectResult:
    crash = getattr(report.longrepr, "reprcrash", None)
    told = crash.message if crash is not None else report.longreprtext
    message = f"pytest's {report.when} of {project.name} failed: {redact(told)}"
    return replace(error_result(project, ReasonKind.HARNESS, message), output_summary=redact(report.longreprtext))
