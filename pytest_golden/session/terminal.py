"""What a person sees: header, one line a project, a live line on a terminal, and the summary."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import is_unjudged
from pytest_golden.report.github import disarm
from pytest_golden.report.result_text import describe_accepted, make_visible, note_unchecked_needs
from pytest_golden.session import header
from pytest_golden.session.live_line import LiveLine, RunningNames
from pytest_golden.session.scheduler import is_distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.verdict import RunVerdict
    from pytest_golden.session.results import SessionParts
    from pytest_golden.session.writing import GoldenReports

# With more projects than this, passes are shown in short.
_MOST_IN_FULL = 40
# Columns at the end of a row in which pytest writes its progress.
_PROGRESS_WIDTH = 8
_MOST_UNJUDGED = 5
_MARKUP: Mapping[ResultStatus, Mapping[str, bool]] = {
    ResultStatus.PASSED: {"green": True},
    ResultStatus.FAILED: {"red": True, "bold": True},
    ResultStatus.ERROR: {"red": True, "bold": True},
    ResultStatus.SKIPPED: {"yellow": True},
}


class Screen:
    """pytest's terminal, and what is shown live below the last line that was written."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self.reporter = reporter
        self.writer = reporter.config.get_terminal_writer()
        self._live: LiveLine | RunningNames | None = None

    def say(self, text: str, **markup: bool) -> None:
        """Write a separate line; end the current one first."""
        self.begin_line()
        self.writer.line(disarm(text), **markup)
        self.writer.flush()

    def begin_line(self) -> None:
        """End the current line."""
        self.erase_live()
        self.reporter.ensure_newline()
        self.end_line()

    def end_line(self) -> None:
        """End a line that is open."""
        if self.writer.width_of_current_line:
            self.writer.line()

    def show_live(self, live: LiveLine | RunningNames) -> None:
        """Show something live until `hide_live`."""
        self._live = live
        live.start()

    def erase_live(self) -> None:
        """Make room for a line; the live line comes back below it."""
        if self._live is not None:
            self._live.erase()

    def hide_live(self) -> None:
        """Stop showing the live line."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


class GoldenTerminal:
    """The hooks that write to pytest's terminal, in the process that owns it.

    `describe_streak` says how a project's result compares with its earlier ones.
    """

    def __init__(
        self, screen: Screen, parts: SessionParts, reports: GoldenReports, describe_streak: Callable[[str], str]
    ) -> None:
        self._screen = screen
        self._reporter = screen.reporter
        self._config = screen.reporter.config
        self._writer = screen.writer
        self._parts = parts
        self._session = parts.session
        self._declared = parts.session.declared
        self._recorder = parts.recorder
        self._floor = parts.floor
        self._reports = reports
        self._name_width = header.name_width(self._declared.projects)
        self._describe_streak = describe_streak
        self._is_reporting = False
        self._present: GoldenProjectResult | None = None
        self._has_written = False
        self._has_open_row = False
        self._is_distributed = is_distributed(self._config)
        self._noted_count = 0

    @property
    def _verbosity(self) -> int:
        return self._config.get_verbosity()

    def pytest_report_header(self) -> list[str]:
        """Say what is declared, how it is sealed, and what is wrong with it."""
        lines = [*header.describe_declared(self._declared), *header.warn_of_foreign_distribution()]
        if self._declared.projects and not self._config.option.collectonly:
            lines += [] if self._session.shard is None else [self._session.shard.describe()]
            lines += header.describe_gateway(self._session.gateway, in_full=self._verbosity > 0)
            lines += header.describe_real_writes(self._declared)
            lines += self._parts.notes
            lines += header.describe_selection(self._parts.earlier.selection, in_full=self._verbosity > 0)
            lines += [
                "golden: --golden-update accepts the current outputs as baselines"
            ] * self._session.settings.update
        return lines + [f"golden: WARNING: {warning}" for warning in self._parts.warnings]

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Show what runs."""
        self._show_live()
        try:
            return (yield)
        finally:
            self._screen.hide_live()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Make room for the next item. If our rows name the projects, pytest need not name their file."""
        self._screen.erase_live()
        if self._declared.find_project(nodeid) is None or self._verbosity not in {-1, 0}:
            return
        # With `-q`, the dots of passes stand in one line.
        if self._verbosity == 0 or self._has_open_row:
            is_first = self._reporter.showfspath and self._reporter.currentfspath is None
            self._screen.begin_line()
            self._has_open_row = False
            if is_first:
                self._writer.line()
            # pytest documents no way to leave the name of a file out.
            self._reporter.showfspath = False
            self._has_written = True
            # What names a running project in a log writes past the buffer of pytest's stream.
            self._writer.flush()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """Make room for pytest's output about other tests, and add to its line about a golden project."""
        self._screen.erase_live()
        self._is_reporting = self._declared.find_project(report.nodeid) is not None
        if not self._is_reporting and self._has_open_row:
            self._screen.end_line()
            self._has_open_row = False
        try:
            return (yield)
        finally:
            self._is_reporting = False
            result, self._present = self._present, None
            if result is not None and self._verbosity > 0:
                self._write_below(result)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Let our row replace pytest's letter, and add the time to its word."""
        status = yield
        result = self._present
        if result is None or not self._has_line(result):
            return status
        category, letter, word = status
        if self._verbosity <= 0:
            return category, "", word
        text, markup = (word, None) if isinstance(word, str) else word
        text += "" if result.status is ResultStatus.SKIPPED else f" {header.elapsed(result)}"
        history = "" if self._is_distributed else self._describe_history(result)
        room = self._writer.fullwidth - self._writer.width_of_current_line - _PROGRESS_WIDTH
        text += f", {history}" if history and len(text) + len(history) < room else ""
        return category, letter, text if markup is None else (text, markup)

    def pytest_sessionfinish(self) -> None:
        """End the last row, so that an empty line follows it, as after other tests."""
        if self._has_written:
            self._screen.end_line()

    def pytest_terminal_summary(self) -> None:
        """Write what no row has shown, and the verdict."""
        if self._config.option.collectonly or self._verbosity < -1:
            return
        self._write_untold()
        self._write_durations()
        self._write_accepted()
        self._write_floor()
        for warning in self._parts.warnings:
            self._screen.say(f"WARNING: {warning}", yellow=True, bold=True)
        for problem in self._reports.problems:
            self._screen.say(f"WARNING: {problem}", red=True, bold=True)
        if self._declared.projects:
            self._write_count()
        for line in self._reports.annotate():
            # Not by `say`, which would disarm them.
            self._screen.begin_line()
            self._writer.line(line)

    def show_end(self, *, has_new_verdict: bool, problem: str | None) -> None:
        """Write what came up after the summary: the verdict again if the exit status has changed it, and a problem."""
        if problem is not None:
            self._screen.say(f"WARNING: {problem}", yellow=True, bold=True)
        if not has_new_verdict:
            return
        verdict = self._reports.verdict
        self._screen.say(f"golden: {verdict.sentence}", **_mark_up(verdict))
        for line in self._reports.annotate(verdict_only=True):
            self._writer.line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_golden_result_recorded(self, result: GoldenProjectResult) -> None:
        """Write the row of a project."""
        if self._is_reporting:
            self._present = result
        if self._has_line(result) and not (self._verbosity > 0 and self._is_reporting):
            self._write_row(result)

    def _has_line(self, result: GoldenProjectResult) -> bool:
        """Tell whether a result has its own line. With `-q`, pytest's dot is enough for a plain pass."""
        is_fine = result.status is ResultStatus.PASSED and not result.is_flaky
        return self._verbosity >= 0 or (self._verbosity == -1 and not is_fine)

    def _write_below(self, result: GoldenProjectResult) -> None:
        """Write below pytest's line about a project. The last line stays open, as pytest's does."""
        lines = [*self._list_notes(result), *(header.details(result) if self._verbosity > 1 else ())]
        if self._is_distributed:
            # pytest writes the name after its word, and no reason for a skip.
            told = header.describe(result, self._describe_history(result), tells_reason=self._tells_reason(result))
            lines = [f"{header.INDENT}{told}", *lines] if told else lines
        for line in lines:
            self._writer.line()
            self._writer.write(disarm(header.fit(line, self._fitting_width())))
        self._writer.flush()

    def _list_notes(self, result: GoldenProjectResult) -> list[str]:
        # The text of a failure already has them.
        return [] if self._recorder.fails(result) else list(header.notes(result))

    def _describe_history(self, result: GoldenProjectResult) -> str:
        is_told = len(self._declared.projects) <= _MOST_IN_FULL or not _needs_no_look(result)
        return self._describe_streak(result.name) if is_told else ""

    def _write_known(self) -> None:
        """Write what earlier runs know about failures, if `--show-capture` hides the sections of pytest's blocks."""
        hidden = self._config.getoption("showcapture", "all") != "all"
        if not hidden or self._config.getoption("tbstyle", "auto") in {"line", "no"}:
            return
        for result in filter(self._recorder.fails, self._recorder.results):
            for line in (line for known in result.known for line in known.get("lines", ())):
                self._screen.say(f"{result.name}: {make_visible(str(line))}")

    def _write_untold(self) -> None:
        """Write what neither the rows nor pytest's blocks have shown."""
        if self._verbosity < 0:
            self._write_unjudged()
        elif self._recorder.results:
            self._reporter.write_sep("=", "golden projects")
        if self._noted_count:
            self._screen.say(f"{self._noted_count} that passed have notes: -v shows them")
        self._write_known()

    def _write_unjudged(self) -> None:
        """Write what was not judged in passes whose rows are not shown: this must never be silent."""
        results = self._recorder.results
        told = [(one.name, warning) for one in results for warning in one.warnings if is_unjudged(warning)]
        for name, warning in told[:_MOST_UNJUDGED]:
            self._screen.say(header.fit(f"golden: note: {name}: {make_visible(warning)}", self._fitting_width()))
        if len(told) > _MOST_UNJUDGED:
            self._screen.say(f"golden: and {len(told) - _MOST_UNJUDGED} more whose max_slowdown is not judged")

    def _write_durations(self) -> None:
        """Write where the time of the slowest projects went."""
        most, recorded = self._session.settings.durations, self._recorder.record_seconds
        if most is None or not self._recorder.results:
            return
        lines = header.list_durations(self._recorder.results, recorded)
        shown = lines[1 : most + 1] if most else lines[1:]
        for line in (lines[0], *shown):
            self._screen.say(header.fit(line, self._fitting_width()))

    def _write_accepted(self) -> None:
        if not self._session.settings.update:
            return
        self._reporter.write_sep("=", "accepted as baselines")
        lines = describe_accepted(self._recorder.results, in_full=self._verbosity > 0)
        for line in lines or ["nothing: no project ran as expected"]:
            self._screen.say(header.fit(line, self._fitting_width()))
        from pytest_golden.history.base_files import warn_of_ignored_baselines

        folder = find_baselines_folder(self._declared.manifest_path, self._session.root)
        ignored = warn_of_ignored_baselines(folder)
        if ignored is not None:
            self._screen.say(f"WARNING: {ignored}", yellow=True, bold=True)

    def _write_floor(self) -> None:
        for note in self._floor.notes:
            self._screen.say(f"golden: {note}")
        if not self._floor.weakenings:
            return
        self._reporter.write_sep("=", "weakened floor, accepted" if self._floor.is_accepted else "weakened floor")
        for weakening in self._floor.weakenings:
            whose = f"{weakening.project}: " if weakening.project else ""
            colour = {} if self._floor.is_accepted else {"red": True}
            self._screen.say(f"{whose}{make_visible(weakening.message)}", **colour)
        if self._reports.verdict.is_floor_bad:
            self._screen.say("A person accepts this with --golden-floor=accept (golden gate: --floor accept).")

    def _write_count(self) -> None:
        recorder = self._recorder
        deselected, not_run = recorder.deselected, recorder.not_run
        unchanged = [result.name for result in recorder.results if result.is_left_out_as_unchanged]
        selection = self._parts.earlier.selection
        left_out = f"left out, unchanged since {'' if selection is None else selection.ref}"
        for told, names in ((left_out, unchanged), ("deselected", deselected), ("not run", not_run)):
            if names and self._verbosity >= 0:
                self._screen.say(header.fit(f"{told}: {', '.join(names)}", self._fitting_width()), yellow=True)
        unchecked = note_unchecked_needs(recorder.unchecked_needs)
        if unchecked and self._verbosity >= 0:
            self._screen.say(f"note: {unchecked}", yellow=True)
        verdict = self._reports.verdict
        self._screen.say(f"golden: {verdict.sentence}", **_mark_up(verdict))

    def _tells_reason(self, result: GoldenProjectResult) -> bool:
        """Tell whether a row must give the reason. For a failure, pytest's block and short summary usually do."""
        options = self._config.option
        letter = "E" if result.status is ResultStatus.ERROR else "f"
        is_told = options.tbstyle != "no" or self._reporter.hasopt(letter)
        return not self._recorder.fails(result) or options.no_summary or not is_told

    def _write_row(self, result: GoldenProjectResult) -> None:
        """Write a row and its notes. The last line stays open: pytest may write its progress after it."""
        status, width = header.padded_status(result), self._fitting_width()
        history, tells_reason = self._describe_history(result), self._tells_reason(result) or not self._is_reporting
        row = header.result_row(result, self._name_width, width, history=history, tells_reason=tells_reason)
        self._screen.begin_line()
        fails, quarantined = self._recorder.fails(result), result.quarantined is not None
        shown_as = ResultStatus.FAILED if fails else ResultStatus.SKIPPED if quarantined else result.status
        self._writer.write(status, **_MARKUP[shown_as])
        self._writer.write(disarm(" " + header.fit(row, width - len(status) - 1)))
        notes = self._list_notes(result)
        if notes and len(self._declared.projects) > _MOST_IN_FULL and _needs_no_look(result):
            notes = []
            self._noted_count += 1
        for note in notes if self._verbosity >= 0 else ():
            self._writer.line()
            self._writer.write(disarm(header.fit(note, width)))
        is_full = self._writer.width_of_current_line + _PROGRESS_WIDTH >= self._writer.fullwidth
        self._has_open_row = not is_full and not (self._recorder.not_run and self._is_distributed)
        if not self._has_open_row:
            self._writer.line()
        self._has_written = True
        self._writer.flush()

    def _show_live(self) -> None:
        options = self._config.option
        if self._verbosity < -1 or options.collectonly or self._config.getoption("usepdb", default=False):
            return
        if _is_watched():
            self._screen.show_live(LiveLine(os.dup(sys.stdout.fileno()), self._describe_running))
        elif self._verbosity == 0:  # with -v pytest names each item itself, and with -q little is wanted
            writer = self._writer
            names = RunningNames(sys.stdout, self._list_running, lambda: bool(writer.width_of_current_line))
            self._screen.show_live(names)

    def _describe_running(self) -> str | None:
        if self._writer.width_of_current_line:
            return None  # the dots of other tests stand there
        running = self._list_running()
        step = None
        if len(running) == 1:
            with suppress(GoldenError):
                step = self._session.gateway.call("present_step")
        text = header.running_text(running, step)
        return None if text is None else header.fit(text, self._width() - 3)

    def _list_running(self) -> tuple[tuple[str, float], ...]:
        with suppress(GoldenError):
            self._session.note_elsewhere()
        return self._session.board.running()

    def _fitting_width(self) -> int:
        # In a log file or a pipe, a cut line would lose what nobody can bring back by widening a window.
        isatty: Any = self._reporter.isatty  # a method since pytest 9, a property before
        return self._width() if (isatty() if callable(isatty) else isatty) else sys.maxsize

    def _width(self) -> int:
        return shutil.get_terminal_size().columns


class LateExitStatus:
    """Corrects the verdict if the exit status changes after all others have finished the session."""

    def __init__(self, reports: GoldenReports, terminal: GoldenTerminal | None) -> None:
        self._reports = reports
        self._terminal = terminal

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Look at the exit status last of all, show a corrected verdict, and write GitHub's summary."""
        yield
        has_changed, problem = self._reports.correct(session), self._reports.write_summary()
        if self._terminal is not None:
            self._terminal.show_end(has_new_verdict=has_changed, problem=problem)


def _mark_up(verdict: RunVerdict) -> Mapping[str, bool]:
    """Return the colour of a verdict. Only a run that passed is green."""
    return {"green": True} if verdict.is_good else {"red": True} if verdict.is_bad else {"yellow": True}


def _needs_no_look(result: GoldenProjectResult) -> bool:
    return result.status is ResultStatus.PASSED or result.is_left_out_as_unchanged


def _is_watched() -> bool:
    if os.environ.get("GITHUB_ACTIONS") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        return os.isatty(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        return False  # a replaced stream need not have a descriptor
