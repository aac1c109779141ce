"""A golden project as a pytest item, and its reports: the project runs inside the item, and a failure is raised there."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.declared import Declared


GOLDEN_MARKER = "golden"
#: The name of the plug-in that runs projects.
EXECUTION = "golden_execution"
# `Captured stdout/stderr call`: `--show-capture` finds it by either word.
_OUTPUT = "stdout/stderr"
_LINE_STYLES = frozenset({"line", "no"})
KNOWN_SECTION = "What earlier runs know"
_PHASES = frozenset({"setup", "call", "teardown"})
_STATUS_ERROR = ("golden_status", "ERROR")
# A plug-in may report a try that does not count, such as `rerun`.
_OUTCOMES = frozenset({"passed", "failed", "skipped"})


@dataclass(frozen=True, slots=True)
class ItemWork:
    """What an item needs to run its project.

    `skips_fail` names the setting that makes skips fail; empty if none does. `markers` returns the names that select a
    project by `-m`.
    """

    declared: Declared
    skips_fail: str
    markers: Callable[[GoldenProjectConfig], tuple[str, ...]]


class GoldenItem(pytest.Item):
    """One golden project. The plug-in `golden_execution` of its session runs it."""

    def __init__(self, *, project: GoldenProjectConfig, work: ItemWork, **more: Any) -> None:
        super().__init__(name=project.name, **more)
        self.project = project
        self.result: GoldenProjectResult | None = None
        self.result_json: str | None = None
        # Why a mark or a hook skips it.
        self.skip_reason: str | None = None
        self._work = work
        self._line = work.declared.manifest.lines.get(project.name)
        for word in work.markers(project):
            self.add_marker(word)
        if hasattr(self.config.option, "reruns"):
            # The first mark is the one that pytest-rerunfailures obeys, unless --force-reruns is given.
            self.add_marker(pytest.mark.flaky(reruns=0))

    def runtest(self) -> None:
        """Run and judge the project once, and raise unless it is as expected. A second call reuses the result.

        Raises:
            NotAsExpectedError: the project FAILED, or it was SKIPPED and that fails the gate.
            GoldenHarnessError: it ended in ERROR.
            pytest.skip.Exception: it was SKIPPED.
            pytest.xfail.Exception: it is not as expected, and quarantined.
        """
        if self.result is None and self.skip_reason is not None:
            self._keep(skipped_result(self.project, self.skip_reason))
        if self.result is None:
            execution: Any = self.config.pluginmanager.get_plugin(EXECUTION)
            if execution is None:
                raise RuntimeError("a golden item was started outside its session")
            self._keep(execution.run_project(self))
        if self.result is not None:
            self._raise_unless_expected(self.result)

    def iter_markers(self, name: str | None = None) -> Iterator[pytest.Mark]:
        """Return the marks without `xfail`, so that no `xfail` mark can turn a failure green."""
        return (mark for mark in super().iter_markers(name) if mark.name != "xfail")

    def has_xfail_mark(self) -> bool:
        """Tell whether an `xfail` mark was put on this item."""
        return any(mark.name == "xfail" for mark in super().iter_markers())

    def asks_for_reruns(self) -> bool:
        """Tell whether a `flaky` mark of pytest-rerunfailures was put on this item beside our own."""
        return hasattr(self.config.option, "reruns") and len(list(self.iter_markers("flaky"))) > 1

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Explain why the project is not as expected. Other exceptions are left to pytest."""
        ours = (NotAsExpectedError, GoldenHarnessError, pytest.xfail.Exception)
        if self.result is None or not isinstance(excinfo.value, ours):
            return super().repr_failure(excinfo, style)
        from pytest_golden.report.github import disarm

        text = disarm(self._explain(self.result, style or self.config.getoption("tbstyle", "auto")))
        shown: Any = excinfo.getrepr(style="value")
        shown.reprtraceback.reprentries[-1].lines[:] = text.splitlines()
        if shown.reprcrash is not None:
            path, line = self.location[0], (self.location[1] or 0) + 1
            crash = shown.reprcrash
            crash.path, crash.lineno, crash.message = path, line, _describe(self.result)
        return FailureRepr(shown, text)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return the manifest, the line that declares the project (counted from 0), and its name."""
        return self.path, None if self._line is None else self._line - 1, self.name

    def make_report(self, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Make the report of a phase. The call's report carries the result as JSON text, which xdist can send."""
        report = pytest.TestReport.from_item_and_call(self, call)
        if self.result is None or call.when != "call":
            return report
        report.golden = self.result_json  # type: ignore[attr-defined]
        if report.skipped:
            # Otherwise pytest names the line of our code that skips.
            report.longrepr = (os.fspath(self.path), self._line or 1, f"Skipped: {_describe(self.result)}")
        if call.excinfo is not None and isinstance(call.excinfo.value, pytest.xfail.Exception):
            # A quarantine ends in the manifest, not by --runxfail.
            report.outcome, report.wasxfail = "skipped", call.excinfo.value.msg or ""
        return report

    def _keep(self, result: GoldenProjectResult) -> None:
        from pytest_golden.regression.rules import blame_setting_for_skip
        from pytest_golden.report.github import disarm
        from pytest_golden.report.result_text import last_output, summarize_reasons

        self.result = result = blame_setting_for_skip(result, self._work.skips_fail)
        self.result_json = json.dumps(result.to_dict())
        self.user_properties += [
            ("golden_status", str(result.status)),
            ("golden_reasons", summarize_reasons(result) if result.reasons else ""),
            ("golden_duration_seconds", result.execution_time_seconds),
        ]
        output = last_output(result, in_full=self.config.getoption("verbose", 0) > 1)
        if output:
            self.add_report_section("call", _OUTPUT, disarm("\n".join(output)))

    def _raise_unless_expected(self, result: GoldenProjectResult) -> None:
        from pytest_golden.regression.model import ResultStatus
        from pytest_golden.regression.verdict import fails_the_gate
        from pytest_golden.report.github import disarm

        told = _describe(result)
        if fails_the_gate(result, skips_fail=bool(self._work.skips_fail)):
            raise (GoldenHarnessError if result.status is ResultStatus.ERROR else NotAsExpectedError)(told)
        if result.quarantined is not None:
            raise pytest.xfail.Exception(disarm(f"quarantined, {result.quarantined}: {told}"))
        if result.status is ResultStatus.SKIPPED:
            raise pytest.skip.Exception(told)

    def _explain(self, result: GoldenProjectResult, style: str) -> str:
        if style in _LINE_STYLES:
            return f"{result.status}: {_describe(result)}"
        from pytest_golden.report.result_text import explain_failure

        command = self._work.declared.shell_command(self.name)
        return explain_failure(result, shell_command=command, shows_output=False, is_short=style == "short")


class NotAsExpectedError(AssertionError):
    """A golden project FAILED, or a skip fails the gate.

    It is an AssertionError, so that other plug-ins' reports show a failed test and not a broken one.
    """


class GoldenHarnessError(Exception):
    """A golden project ended in ERROR: the gate could not judge it."""


class FailureRepr:
    """A failure as pytest shows it: the reason first, no traceback. An xdist worker can send it like pytest's own."""

    def __init__(self, shown: Any, text: str) -> None:
        self.reprcrash = shown.reprcrash
        self.reprtraceback = shown.reprtraceback
        self.sections: list[Any] = []
        self._text = text

    def toterminal(self, tw: Any) -> None:
        """Write the text, with its first line highlighted."""
        first, *rest = self._text.splitlines()
        tw.line(first, red=True, bold=True)
        for line in rest:
            tw.line(line)

    def __str__(self) -> str:
        return self._text


def _describe(result: GoldenProjectResult) -> str:
    from pytest_golden.report.github import disarm
    from pytest_golden.report.result_text import summarize_reasons

    return disarm(summarize_reasons(result))


def read_result(report: pytest.TestReport, project: GoldenProjectConfig) -> GoldenProjectResult | None:
    """Return the result of a report, or None if the report has none (a passed setup or teardown).

    A crashed worker sends no result, nor does a setup that failed: for these, make one here.
    """
    if report.outcome not in _OUTCOMES:
        return None
    from pytest_golden.regression.model import GoldenProjectResult, ReasonKind, error_result

    text = getattr(report, "golden", None)
    if text is not None:
        return GoldenProjectResult.from_dict(json.loads(text))
    if report.when not in _PHASES:
        return error_result(project, ReasonKind.WORKER_CRASHED, str(report.longrepr))
    if report.skipped:
        return skipped_result(project, "no reason given")
    if report.failed:
        return _failed_in_pytest(report, project)
    return None


def skipped_result(project: GoldenProjectConfig, told: str) -> GoldenProjectResult:
    """Return the result of a project that a mark or another plug-in skipped."""
    from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus, result_without_run

    reason = Reason(ReasonKind.SKIPPED_BY_PYTEST, f"skipped by pytest: {told}")
    return result_without_run(project, ResultStatus.SKIPPED, reason)


def _failed_in_pytest(report: pytest.TestReport, project: GoldenProjectConfig) -> GoldenProjectResult:
    from pytest_golden.redaction.redactor import redact
    from pytest_golden.regression.model import ReasonKind, error_result

    crash = getattr(report.longrepr, "reprcrash", None)
    told = crash.message if crash is not None else report.longreprtext
    message = f"pytest's {report.when} of {project.name} failed: {redact(told)}"
    return replace(error_result(project, ReasonKind.HARNESS, message), output_summary=redact(report.longreprtext))


def place_crash(report: pytest.TestReport, project: GoldenProjectConfig, line: int | None) -> None:
    """Add the project and its status to xdist's report of a crashed worker; its outcome and text stay unchanged."""
    if report.when not in _PHASES:
        report.when = "call"
        report.location = (report.location[0], None if line is None else line - 1, project.name)
        report.user_properties.append(_STATUS_ERROR)


def find_category(report: pytest.TestReport) -> str | None:
    """Return the category in which pytest counts a golden project's report, or None to leave it to pytest."""
    is_error = _STATUS_ERROR in map(tuple, report.user_properties)
    return "error" if report.failed and report.when != "teardown" and is_error else None


def tell_known(report: pytest.TestReport, result: GoldenProjectResult) -> None:
    """Add a section that says what earlier runs know about a failure; outcome and failure text stay unchanged."""
    from pytest_golden.report.github import disarm
    from pytest_golden.report.result_text import make_visible

    lines = [disarm(make_visible(str(line))) for known in result.known for line in known.get("lines", ())]
    if lines and report.failed:
        report.sections.append((KNOWN_SECTION, "\n".join(lines)))
