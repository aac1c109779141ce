"""All results of this session, in declaration order, in the one process that shows and writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_golden.regression.model import ReasonKind, ResultStatus, error_result
from pytest_golden.regression.rules import blame_setting_for_skip
from pytest_golden.regression.verdict import RegressionCheckResult, fails_the_gate
from pytest_golden.session.item import find_category, place_crash, read_result, tell_known

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.board import RunBoard
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.sharding import SessionShard


class Kept(NamedTuple):
    """A result, with what earlier runs know about it, and its journal entry where the store took it."""

    result: GoldenProjectResult
    entry: JournalEntry | None


class GoldenRecorder:
    """Takes results off the reports, tells who listens, and knows what was left out.

    `skips_fail` names the setting that makes skips fail; empty if none does. `keep` stores a result before anyone else
    receives it, and may add to it.
    `shard` is the part that this session runs of what is declared; None means all.
    """

    def __init__(
        self,
        config: pytest.Config,
        declared: Declared,
        board: RunBoard,
        *,
        skips_fail: str,
        shard: SessionShard | None = None,
    ) -> None:
        self.config = config
        self.declared = declared
        self._board = board
        self._skips_fail = skips_fail
        self._shard = shard
        self._results: dict[str, GoldenProjectResult] = {}
        self._reported: dict[str, int] = {}
        self._selected: set[str] | None = None
        self.keep: Callable[[GoldenProjectResult], Kept] = _keep_nothing
        self.on_selected: list[Callable[[], None]] = []
        self.on_result: list[Callable[[GoldenProjectResult], None]] = []

    @property
    def results(self) -> tuple[GoldenProjectResult, ...]:
        """The results so far, in declaration order."""
        return tuple(self._results[name] for name in self.declared.projects if name in self._results)

    @property
    def check_result(self) -> RegressionCheckResult:
        """The results so far as one value."""
        return RegressionCheckResult(self.results)

    @property
    def is_gate_run(self) -> bool:
        """Tell whether any golden project was selected, or this is a shard, which tells the store too that it had none."""
        return bool(self._selected) or (self._shard is not None and self._selected is not None)

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selected projects, in declaration order; none before the collection has ended."""
        return tuple(name for name in self.declared.projects if name in (self._selected or ()))

    @property
    def deselected(self) -> tuple[str, ...]:
        """Names of the declared projects that were not selected; none before the collection has ended."""
        if self._selected is None:
            return ()
        return tuple(name for name in self.declared.projects if name not in self._selected)

    @property
    def of_other_shards(self) -> tuple[str, ...]:
        """Names of the declared projects that another shard runs, which are deselected here."""
        shard = self._shard
        return () if shard is None else tuple(name for name in self.declared.projects if not shard.has(name))

    @property
    def not_run(self) -> tuple[str, ...]:
        """Names of the selected projects without a result: the session ended before their turn."""
        selected = self._selected or set()
        return tuple(name for name in self.declared.projects if name in selected and name not in self._results)

    @property
    def unchecked_needs(self) -> dict[str, tuple[str, ...]]:
        """Names of deselected projects that others need, each with those that ran all the same."""
        users: dict[str, list[str]] = {name: [] for name in self.deselected}
        for result in self.results:
            if result.status is not ResultStatus.SKIPPED:
                for need in self.declared.projects[result.name].needs:
                    users.get(need, []).append(result.name)
        return {need: tuple(names) for need, names in users.items() if names}

    def fails(self, result: GoldenProjectResult) -> bool:
        """Tell whether this result fails the gate."""
        return fails_the_gate(result, skips_fail=bool(self._skips_fail))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """Record the result that a report brings, before anyone else reads the report."""
        project = self.declared.find_project(report.nodeid)
        result = read_result(report, project) if project is not None else None
        # If a plug-in runs an item again, its report has the same result.
        present = hash(getattr(report, "golden", None))
        if project is None or result is None or self._reported.get(project.name) == present:
            return (yield)
        if hasattr(report, "golden"):
            self._reported[project.name] = present
        # A project that a mark skipped has not passed through the gate.
        result = blame_setting_for_skip(result, self._skips_fail)
        result, entry = self._record(result)
        place_crash(report, project, self.declared.manifest.lines.get(project.name))
        tell_known(report, result)
        self._tell(result, entry)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a golden ERROR, and a worker that crashed, among pytest's errors; all else is counted as pytest does."""
        if not report.failed or self.declared.find_project(report.nodeid) is None:
            return None
        category = find_category(report)
        return None if category is None else (category, "E", "ERROR")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what was selected."""
        self._note_selected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Learn from a worker what was selected."""
        self._note_selected(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Record what began in this session and can report no more: an interrupted worker ends without a word."""
        for name in self._board.statuses(self.not_run):
            message = f"interrupted while {name} was running"
            interrupted = error_result(self.declared.projects[name], ReasonKind.INTERRUPTED, message)
            self._tell(*self._record(interrupted))

    def _record(self, result: GoldenProjectResult) -> Kept:
        kept = self.keep(result)
        self._results[result.name] = kept.result
        return kept

    def _tell(self, result: GoldenProjectResult, entry: JournalEntry | None) -> None:
        for listener in self.on_result:
            listener(result)
        self.config.hook.pytest_golden_result_recorded(result=result, entry=entry)

    def _note_selected(self, node_ids: Iterable[str]) -> None:
        if self._selected is not None:
            return
        projects = map(self.declared.find_project, node_ids)
        self._selected = {project.name for project in projects if project is not None}
        if self.is_gate_run:
            for listener in self.on_selected:
                listener()


def _keep_nothing(result: GoldenProjectResult) -> Kept:
    return Kept(result, None)
