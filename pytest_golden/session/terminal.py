"""What a person sees: header, one line a project, a live line on a terminal, and the summary."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.trends import is_unjudged
from pytest_golden.report.accepted_text import describe_accepted
from pytest_golden.report.failure_text import make_visible
from pytest_golden.report.github import disarm
from pytest_golden.report.one_line import closing_count, note_unchecked_needs
from pytest_golden.session import header, table
from pytest_golden.session.board import note_elsewhere
from pytest_golden.session.live import LiveLine

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.parts import SessionParts
    from pytest_golden.session.writing import GoldenReports

_LONGEST_TABLE = 40
_MOST_UNJUDGED = 5
_MARKUP: Mapping[ResultStatus, Mapping[str, bool]] = {
    ResultStatus.PASSED: {"green": True},
    ResultStatus.FAILED: {"red": True, "bold": True},
    ResultStatus.ERROR: {"red": True, "bold": True},
    ResultStatus.SKIPPED: {"yellow": True},
}


class GoldenTerminal:
    """The hooks that write to pytest's terminal, in the process that owns it."""

    def __init__(self, reporter: pytest.TerminalReporter, parts: SessionParts, reports: GoldenReports) -> None:
        self._reporter = reporter
        self._config = reporter.config
        self._writer = reporter.config.get_terminal_writer()
        self._declared = parts.declared
        self._shard = parts.shard
        self._recorder = parts.recorder
        self._gateway = parts.gateway
        self._board = parts.board
        self._floor = parts.floor
        self._earlier = parts.earlier
        self._warnings = parts.warnings
        self._accepts_outputs = parts.settings.update
        self._reports = reports
        self._name_width = table.name_width(parts.declared.projects)
        self._live: LiveLine | None = None
        self.describe_streak: Callable[[str], str] = lambda _: ""
        self._has_written = False
        parts.recorder.on_result.append(self._write_result)

    @property
    def _verbosity(self) -> int:
        return self._config.get_verbosity()

    def say(self, text: str, **markup: bool) -> None:
        """Write a line of its own, whatever stands in the present one."""
        self._begin_line()
        self._writer.line(disarm(text), **markup)
        self._writer.flush()

    def pytest_report_header(self) -> list[str]:
        """Say what is declared, how it is sealed, and what is wrong with it."""
        lines = [*header.describe_declared(self._declared), *header.warn_of_foreign_distribution()]
        if self._declared.projects and not self._config.option.collectonly:
            lines += [] if self._shard is None else [self._shard.describe()]
            lines += header.describe_gateway(self._gateway, in_full=self._verbosity > 0)
            lines += header.describe_real_writes(self._declared)
            lines += header.describe_selection(self._earlier.selection, in_full=self._verbosity > 0)
            lines += ["golden: --golden-update accepts the present outputs as baselines"] * self._accepts_outputs
        return lines + [f"golden: WARNING: {warning}" for warning in self._warnings]

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Show the live line, and keep pytest from writing its progress alone below our last line."""
        self._show_live()
        try:
            return (yield)
        finally:
            self._hide_live()
            if self._has_written and not self._writer.width_of_current_line:
                self._reporter._show_progress_info = False  # noqa: SLF001 - there is no public way

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        """Make room for what pytest writes about other tests."""
        self._erase_live()

    def pytest_terminal_summary(self) -> None:
        """Write the table of results and the closing count."""
        if self._config.option.collectonly or self._verbosity < -1:
            return
        self._write_results()
        self._write_accepted()
        self._write_floor()
        for warning in self._warnings:
            self.say(f"WARNING: {warning}", yellow=True, bold=True)
        for problem in self._reports.problems:
            self.say(f"WARNING: {problem}", red=True, bold=True)
        for problem in self._reports.lesser_problems:
            self.say(f"WARNING: {problem}", yellow=True, bold=True)
        if self._declared.projects:
            self._write_count()
        for line in self._reports.github.annotations():
            # Not by `say`, which would disarm them.
            self._begin_line()
            self._writer.line(line)

    def _write_result(self, result: GoldenProjectResult) -> None:
        is_fine = result.status is ResultStatus.PASSED and not result.is_flaky
        if self._verbosity < -1 or (self._verbosity < 0 and is_fine):
            return
        self._has_written = True
        self._write_row(result)

    def _write_results(self) -> None:
        if self._verbosity < 0:
            self._write_unjudged()
        elif not self._config.option.no_summary:
            self._write_table()

    def _write_table(self) -> None:
        everyone = self._recorder.results
        is_cut = len(everyone) > _LONGEST_TABLE and self._verbosity < 1
        left_out = [result for result in everyone if is_cut and _needs_no_look(result)]
        results = [result for result in everyone if not is_cut or not _needs_no_look(result)]
        noted = sum(any(table.notes(result)) for result in left_out)
        if not results and not noted:
            return
        self._reporter.write_sep("=", "golden projects")
        for result in results:
            history = self.describe_streak(result.name)
            self._write_row(result, history=history, tells_reason=not self._is_told_below(result))
            # The text of a failure has them already.
            for note in () if self._recorder.fails(result) else table.notes(result):
                self.say(table.fit(note, self._fitting_width()))
        if noted:
            self.say(f"{noted} that passed have notes: -v shows them")

    def _write_unjudged(self) -> None:
        """Write what was not judged of passes whose rows are not shown: that is never silent."""
        results = self._recorder.results
        told = [(one.name, warning) for one in results for warning in one.warnings if is_unjudged(warning)]
        for name, warning in told[:_MOST_UNJUDGED]:
            self.say(table.fit(f"golden: note: {name}: {make_visible(warning)}", self._fitting_width()))
        if len(told) > _MOST_UNJUDGED:
            self.say(f"golden: and {len(told) - _MOST_UNJUDGED} more whose max_slowdown is not judged")

    def _write_accepted(self) -> None:
        if not self._accepts_outputs:
            return
        self._reporter.write_sep("=", "accepted as baselines")
        lines = describe_accepted(self._recorder.results, in_full=self._verbosity > 0)
        for line in lines or ["nothing: no project ran as expected"]:
            self.say(table.fit(line, self._fitting_width()))

    def _write_floor(self) -> None:
        for note in self._floor.notes:
            self.say(f"golden: {note}")
        if not self._floor.weakenings:
            return
        self._reporter.write_sep("=", "weakened floor, accepted" if self._floor.is_accepted else "weakened floor")
        for weakening in self._floor.weakenings:
            name = weakening.project or self._declared.label
            self.say(f"{name}: {make_visible(weakening.message)}", **({} if self._floor.is_accepted else {"red": True}))
        if self._floor.fails:
            self.say("A person accepts this with --golden-floor=accept.")

    def _write_count(self) -> None:
        recorder = self._recorder
        deselected, not_run = recorder.deselected, recorder.not_run
        unchanged = [result.name for result in recorder.results if result.is_left_out_as_unchanged]
        selection = self._earlier.selection
        left_out = f"left out, unchanged since {'' if selection is None else selection.ref}"
        for told, names in ((left_out, unchanged), ("deselected", deselected), ("not run", not_run)):
            if names and self._verbosity >= 0:
                self.say(table.fit(f"{told}: {', '.join(names)}", self._fitting_width()), yellow=True)
        unchecked = note_unchecked_needs(recorder.unchecked_needs)
        if unchecked and self._verbosity >= 0:
            self.say(f"note: {unchecked}", yellow=True)
        failed = sum(map(recorder.fails, recorder.results))
        counted = closing_count(recorder.results, failed, len(deselected), len(not_run))
        if self._floor.fails:
            counted += ", floor weakened"
        self.say(f"golden: {counted}", **({"red": True} if failed or self._floor.fails else {}))

    def _is_told_below(self, result: GoldenProjectResult) -> bool:
        """Tell whether pytest's short summary, which follows the table, has the reason too."""
        return self._recorder.fails(result) and self._reporter.hasopt(
            "E" if result.status is ResultStatus.ERROR else "f"
        )

    def _write_row(self, result: GoldenProjectResult, *, history: str = "", tells_reason: bool = True) -> None:
        status = table.padded_status(result)
        row = table.result_row(result, self._name_width, history=history, tells_reason=tells_reason)
        self._begin_line()
        quarantined = result.quarantined is not None
        self._writer.write(status, **(_MARKUP[ResultStatus.SKIPPED] if quarantined else _MARKUP[result.status]))
        self._writer.line(disarm(" " + table.fit(row, self._fitting_width() - len(status) - 1)))
        self._writer.flush()

    def _begin_line(self) -> None:
        self._erase_live()
        self._reporter.ensure_newline()
        if self._writer.width_of_current_line:
            self._writer.line()

    def _show_live(self) -> None:
        options = self._config.option
        if self._verbosity < -1 or options.collectonly or options.usepdb or not _is_watched():
            return
        self._live = LiveLine(os.dup(sys.stdout.fileno()), self._describe_running)
        self._live.start()

    def _erase_live(self) -> None:
        if self._live is not None:
            self._live.erase()

    def _hide_live(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _describe_running(self) -> str | None:
        if self._writer.width_of_current_line:
            return None  # the dots of other tests stand there
        with suppress(GoldenError):
            note_elsewhere(self._board, self._gateway)
        running = self._board.running()
        step = None
        if len(running) == 1:
            with suppress(GoldenError):
                step = self._gateway.call("present_step")
        text = table.running_text(running, step)
        return None if text is None else table.fit(text, self._width() - 3)

    def _fitting_width(self) -> int:
        # In a log file or a pipe, a cut line would lose what nobody can bring back by widening a window.
        isatty: Any = self._reporter.isatty  # a method since pytest 9, a property before
        return self._width() if (isatty() if callable(isatty) else isatty) else sys.maxsize

    def _width(self) -> int:
        return shutil.get_terminal_size().columns


def _needs_no_look(result: GoldenProjectResult) -> bool:
    return result.status is ResultStatus.PASSED or result.is_left_out_as_unchanged


def _is_watched() -> bool:
    if os.environ.get("GITHUB_ACTIONS") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        return os.isatty(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
