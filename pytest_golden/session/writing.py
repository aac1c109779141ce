"""Close the session: make the run's verdict, end its record, and write all reports, with GitHub's annotations and summary."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.regression.verdict import RunStatus, judge_run
from pytest_golden.report.github import Annotation, annotate, is_on_github
from pytest_golden.report.report_files import StagedReport
from pytest_golden.report.result_text import explain_failure, first_difference, note_unchecked_needs, summarize_reasons
from pytest_golden.session.scheduler import is_distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.regression.verdict import RunVerdict
    from pytest_golden.report.attestation import Attestor
    from pytest_golden.report.github import Level
    from pytest_golden.session.results import SessionParts
    from pytest_golden.session.run_recording import GoldenRecording


_TAKEN_BY_GITHUB = 1024 * 1024


class GoldenReports:
    """Closes the session: makes the run's verdict, ends the record with it, and writes the reports, which all show it.

    Annotations and the job's summary are written on GitHub Actions only.

    `problems` names the requested reports that could not be written.
    """

    def __init__(self, parts: SessionParts, record: GoldenRecording | None) -> None:
        self._session = parts.session
        self._settings = parts.session.settings
        self._declared = parts.session.declared
        self._recorder = parts.recorder
        self._floor = parts.floor
        self._started_at = utc_now()
        self._other_failures: set[str] = set()
        self._exit_status: int | None = None
        self._ended_with: int | None = None
        self._done: set[str] = set()
        self._staged: list[StagedReport] = []
        self._verdict: RunVerdict | None = None
        self._warnings = parts.warnings
        self._record = record
        self.problems: list[str] = []
        self._attestor: Attestor | None = None
        if self._settings.attest is not None:
            from pytest_golden.report.attestation import Attestor

            self._attestor = Attestor(self._declared.manifest_path, self._settings.attest)

    @property
    def verdict(self) -> RunVerdict:
        """The run's verdict. Before the session ends, it is the verdict on the results so far, for plug-ins that show it earlier."""
        return self._judge() if self._verdict is None else self._verdict

    @property
    def _entry_id(self) -> str | None:
        return None if self._record is None else self._record.entry_id

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an ordinary test that failed."""
        if report.failed and self._declared.find_project(report.nodeid) is None:
            self._other_failures.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._other_failures.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge the run when all results, the floor and pytest's exit status are known, and report the verdict.

        A requested report that cannot be written is an error. The other reports and the record then show it too.
        """
        if session.config.option.collectonly:
            return
        self._finish(session)

    def correct(self, session: pytest.Session) -> bool:
        """Judge and report again if the exit status has changed since then; tell whether the verdict has changed.

        pytest itself changes it late for `--max-warnings`, and so may a plug-in.
        """
        before = self._verdict
        if before is None or int(session.exitstatus) == self._ended_with:
            return False
        self._done.clear()
        self.problems.clear()
        self._finish(session)
        return self._verdict != before

    def _finish(self, session: pytest.Session) -> None:
        exit_status = int(session.exitstatus)
        # Under xdist, -x ends the session like an interruption.
        is_by_failure = is_distributed(session.config) and session.shouldfail
        is_stopped = is_by_failure and exit_status == pytest.ExitCode.INTERRUPTED
        self._exit_status = int(pytest.ExitCode.TESTS_FAILED) if is_stopped else exit_status
        self._verdict = self._judge()
        try:
            self._record_and_report()
        finally:
            self._discard()
        code = self._ended_with = self.verdict.exit_code(exit_status)
        if code != exit_status:
            session.exitstatus = pytest.ExitCode(code)

    def _record_and_report(self) -> None:
        self._stage()
        if self.problems:
            self._stage_again()
        # Only a write shows that a device cannot be written to.
        if self._commit(report for report in self._staged if report.is_device):
            self._stage_again()
        entry_id = self._entry_id
        if self._record is not None:
            recorder = self._recorder
            left_out = {"deselected": recorder.deselected, "not_run": recorder.not_run}
            self._record.end(self.verdict, recorder.results, self._floor.weakenings, left_out)
        if self._entry_id != entry_id:
            self._stage_again()
        if self._commit(report for report in self._staged if not report.is_device):
            self._verdict = self._judge()

    def write_summary(self) -> str | None:
        """Append to GitHub's summary. Nobody requested it, so a problem is returned and does not change the verdict."""
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if self._verdict is None or not is_on_github() or not summary:
            return None
        from pytest_golden.report.report_files import append_report

        try:
            append_report(Path(summary), self._describe_run, named="GITHUB_STEP_SUMMARY")
        except GoldenError as error:
            return str(error)
        return None

    def _judge(self) -> RunVerdict:
        recorder, count = self._recorder, len(self.problems)
        return judge_run(
            recorder.results,
            skips_fail=self._settings.require,
            weakenings=len(self._floor.weakenings),
            floor_accepted=self._floor.is_accepted,
            deselected=recorder.deselected,
            other_shards=recorder.of_other_shards,
            not_run=recorder.not_run,
            other_failures=len(self._other_failures),
            problems=[f"{count} report{'' if count == 1 else 's'} could not be written"] * bool(count),
            exit_status=self._exit_status,
        )

    def _stage(self) -> None:
        """Prepare the requested reports that are not written yet, and note which of them cannot be written."""
        settings = self._settings
        asked: list[tuple[str, Path | None, Callable[[], str]]] = [
            ("--golden-junit", settings.junit, self._make_junit),
            ("--golden-json", settings.json, self._make_json),
            ("--golden-html", settings.html, self._make_page),
            ("--golden-attest", settings.attest, self._make_attestation),
        ]
        for option, path, make_text in asked:
            if path is not None and option not in self._done:
                with self._noting(option):
                    self._staged.append(StagedReport(path, make_text(), option=option))

    def _stage_again(self) -> None:
        """Judge the run again, and prepare the remaining reports with the new verdict."""
        self._discard()
        self._verdict = self._judge()
        self._stage()

    def _discard(self) -> None:
        """Remove the prepared reports that are not yet at their paths."""
        for report in self._staged:
            report.discard()
        self._staged.clear()

    def _commit(self, staged: Iterable[StagedReport]) -> bool:
        """Move reports to their paths; tell whether one of them could not be written."""
        count = len(self.problems)
        for report in staged:
            with self._noting(report.option):
                report.commit()
                self._done.add(report.option)
        return len(self.problems) > count

    @contextmanager
    def _noting(self, option: str) -> Iterator[None]:
        """Note, once, that a report cannot be written."""
        try:
            yield
        except GoldenError as error:
            self._done.add(option)
            self.problems.append(str(error))

    def _make_junit(self) -> str:
        from pytest_golden.report.junit import junit_text

        return junit_text(
            self._recorder.check_result,
            timestamp=self._started_at,
            hostname=platform.node(),
            skips_fail=self._settings.require,
            weakenings=self._floor.weakenings if self.verdict.is_floor_bad else (),
            verdict=self.verdict,
        )

    def _make_json(self) -> str:
        from pytest_golden.report.gate_report import gate_report_text

        return gate_report_text(self._make_report())

    def _make_page(self) -> str:
        from pytest_golden.report.html_page import html_report

        return html_report(self._make_report())

    def _make_attestation(self) -> str:
        from pytest_golden.report.attestation import judge_report

        return (
            ""
            if self._attestor is None
            else self._attestor.make_text(judge_report(self._make_report()), self._settings.base)
        )

    def _make_report(self) -> dict[str, Any]:
        from pytest_golden.report.gate_report import gate_report

        return gate_report(
            self._recorder.check_result,
            verdict=self.verdict,
            gate=self._gate_facts(),
            weakened_floor=self._floor.weakenings,
        )

    def _gate_facts(self) -> dict[str, Any]:
        from pytest_golden.gateway.git import describe_commit

        return {
            "entry_id": self._entry_id,
            **describe_commit(self._session.root),
            "manifest": self._declared.label,
            "mode": self._settings.mode,
            "require": self._settings.require,
            "command_line": self._describe_command(),
            "environment": {
                "python": f"{platform.python_implementation()} {platform.python_version()}",
                "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
                "host": platform.node(),
                "pytest": pytest.__version__,
                "plugins": self._list_plugins(),
                "sandbox": self._describe_sandbox(),
            },
            "started_at": iso_utc(self._started_at),
            "finished_at": iso_utc(utc_now()),
            "interrupted": self.verdict.status is RunStatus.INTERRUPTED,
            "shard": None if self._session.shard is None else str(self._session.shard.shard),
            "deselected": list(self._recorder.deselected),
            "not_run": list(self._recorder.not_run),
            "floor_base": self._settings.base,
            "floor_accepted": self._floor.is_accepted,
        }

    def _list_plugins(self) -> str:
        """Name the distributions whose plug-ins are loaded, with their versions."""
        loaded = self._recorder.config.pluginmanager.list_plugin_distinfo()
        return ", ".join(sorted({f"{found.project_name} {found.version}" for _, found in loaded}))

    def _describe_sandbox(self) -> str | None:
        """Name the view, the seal and the sandbox program of this machine; None for a gateway that does not say."""
        with suppress(GoldenError):
            abilities: GatewayAbilities | None = self._session.gateway.call("describe")
            if abilities is None or not abilities.program:
                return None if abilities is None else abilities.summary
            # Loaded with the gateway; one of a plug-in has no such program.
            from pytest_golden.gateway.sandbox_program import read_digest

            return f"{abilities.summary} by {abilities.program}, sha256 {read_digest(abilities.program)}"
        return None

    def _describe_command(self) -> list[str] | None:
        """Return the command line without the secrets of any project, or None if they cannot be removed."""
        hider = self._session.make_hider()
        return hider.hide_for_all(["pytest", *map(str, self._recorder.config.invocation_params.args)])

    def annotate(self, *, verdict_only: bool = False) -> Iterator[str]:
        """Yield GitHub's annotations for what a person must see, or for the verdict alone; nothing elsewhere."""
        if is_on_github():
            told = [] if verdict_only else [*self._list_annotations()]
            told += [] if self.verdict.is_good else [self._annotate_verdict()]
            yield from annotate(told, file=self._manifest_for_github())

    def _annotate_verdict(self) -> Annotation:
        return Annotation("error" if self.verdict.is_bad else "warning", self.verdict.sentence, "golden projects")

    def _list_annotations(self) -> Iterator[Annotation]:
        lines = self._declared.manifest.lines
        for warning in self._warnings:
            yield Annotation("warning", warning, "golden projects")
        for result in self._recorder.results:
            if self._recorder.fails(result):
                told = "\n".join([summarize_reasons(result), *first_difference(result)])
                yield Annotation("error", told, f"{result.name}: {result.status}", lines.get(result.name))
        level: Level = "error" if self.verdict.is_floor_bad else "warning"
        for weakening in self._floor.weakenings:
            name = weakening.project
            told = f"{name}: {weakening.message}" if name else weakening.message
            yield Annotation(level, told, "weakened floor", lines.get(name or ""))

    def _describe_run(self, bytes_before: int) -> str:
        from pytest_golden.report.github import MOST_BYTES, job_summary

        recorder = self._recorder
        unchecked = note_unchecked_needs(recorder.unchecked_needs)
        failures = {
            result.name: explain_failure(result, shell_command=self._declared.shell_command(result.name))
            for result in recorder.results
            if recorder.fails(result)
        }
        text = job_summary(
            recorder.check_result,
            verdict=self.verdict,
            failures=failures,
            weakenings=self._floor.weakenings,
            notes=[*self.problems, *self._warnings, *self._floor.notes, *([unchecked] if unchecked else [])],
            most_bytes=min(MOST_BYTES, _TAKEN_BY_GITHUB - bytes_before - 1),
        )
        # A line that an earlier command left open would swallow the heading.
        return f"\n{text}" if bytes_before else text

    def _manifest_for_github(self) -> str | None:
        path = self._declared.manifest_path
        if path is None:
            return None
        checkout = Path(os.environ.get("GITHUB_WORKSPACE", "."))
        return Path(os.path.relpath(self._declared.judged_folder / path.name, checkout)).as_posix()
