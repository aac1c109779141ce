"""Run golden items through the gate, in the process where pytest runs them, and make their reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.session.item import GoldenItem
from pytest_golden.session.live_line import Ticker
from pytest_golden.session.scheduler import is_worker
from pytest_golden.values.loading import set_aside

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_golden.gate.events import SecretHider
    from pytest_golden.gate.service import RegressionGuard
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult, Reason
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import GoldenSession

_XFAIL = (
    "an xfail mark does not apply to a golden project, so it was not run: remove the mark, "
    "or write `quarantine:` with a date and a reason in the manifest"
)
_FLAKY = "a `flaky` mark does not run a golden project again: set `retries:` in the manifest"
# How a mark or a hook leaves a test out.
_LEFT = (pytest.skip.Exception, pytest.xfail.Exception)


class GoldenExecution:
    """The hooks around running a golden item.

    What running needs is imported by the first item that runs: an xdist worker may be given ordinary tests only.
    """

    def __init__(self, session: GoldenSession, earlier: EarlierRuns) -> None:
        self._session = session
        self._gateway = session.gateway
        self._board = session.board
        self._earlier = earlier
        # Tests may change it.
        self._started_in = Path.cwd()
        self._hider: SecretHider | None = None
        self._guard: RegressionGuard | None = None
        self._items: Sequence[pytest.Item] = ()
        # Only this process can ask how far its pipeline is; without workers, the live row asks.
        self._steps = Ticker(session.note_present_step, name="golden-steps") if is_worker(session.config) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Set aside what an xdist worker has loaded, while it contains no garbage of any test."""
        if is_worker(self._session.config):
            set_aside()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let pytest run a golden item like any other, and end the session when the item was interrupted."""
        if not isinstance(item, GoldenItem):
            return (yield)
        self._items = item.session.items
        done = yield
        if item.result is not None and item.result.is_interrupted:
            _end_session(item)
        return done

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Leave a skip to the item's call, which raises a failure if skips fail the gate."""
        try:
            return (yield)
        except _LEFT as left:
            if not isinstance(item, GoldenItem):
                raise
            item.skip_reason = _reason_of(left)
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Do the same for a skip by a hook of the call, before the project has run."""
        try:
            return (yield)
        except _LEFT as left:
            if not isinstance(item, GoldenItem) or item.result is not None:
                raise
            item.skip_reason = _reason_of(left)
        item.runtest()
        return None

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """Make the reports of golden items; every other plug-in's hook reads these."""
        return item.make_report(call) if isinstance(item, GoldenItem) else None

    def pytest_unconfigure(self) -> None:
        """Note no more steps."""
        if self._steps is not None:
            self._steps.stop()

    def run_project(self, item: GoldenItem) -> GoldenProjectResult:
        """Run the project of an item once, judge it, and hide secrets in the result."""
        from pytest_golden.regression.model import ReasonKind, ResultStatus, error_result

        project = item.project
        if item.has_xfail_mark():
            self._board.note_ended(project.name, ResultStatus.ERROR)
            return error_result(project, ReasonKind.HARNESS, _XFAIL)
        left_out = self._earlier.find_left_out(project)
        if left_out is not None:
            return left_out
        statuses = self._board.statuses(project.needs)
        self._board.note_running(project.name)
        try:
            guard = self._get_guard()
            if self._steps is not None:
                self._steps.start()
            result = guard.check_one(project, statuses)
        except GoldenError as error:
            result = error_result(project, ReasonKind.HARNESS, str(error))
        except BaseException:
            # Such as the timeout of another plug-in, which ends this item and not the session.
            self._board.note_ended(project.name, ResultStatus.ERROR)
            raise
        self._board.note_ended(project.name, result.status)
        if item.asks_for_reruns():
            result = replace(result, warnings=(*result.warnings, _FLAKY))
        self._hider = self._hider or self._session.make_hider()
        return self._hider.hide_in_result(result)

    def _get_guard(self) -> RegressionGuard:
        if self._guard is None:
            from pytest_golden.gate.service import RegressionGuard
            from pytest_golden.session.gateway import keep_baselines

            baselines = keep_baselines(self._session, self._started_in)
            self._guard = RegressionGuard(
                self._gateway.get(),
                further_judge=self._ask_judges,
                baselines=baselines,
                slowdowns=self._earlier.slowdowns,
                narrowed=self._earlier.narrowed,
            )
            self._gateway.call("freeze", self._session.declared.projects.values())
            baselines.pin()
            self._gateway.call("start_ahead", self._list_side_by_side())
        return self._guard

    def _list_side_by_side(self) -> list[GoldenProjectConfig]:
        """List the selected projects that may run side by side, in order, so that a gateway can begin with them."""
        from pytest_golden.manifest.model import find_independent

        independent = find_independent(self._session.declared.projects.values())
        projects = [item.project for item in self._items if isinstance(item, GoldenItem) and item.name in independent]
        return [project for project in projects if self._earlier.find_left_out(project) is None]

    def _ask_judges(self, project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[Reason, ...]:
        answers: list[Any] = self._session.config.hook.pytest_golden_judge(project=project, outcome=outcome)
        return tuple(reason for answer in answers for reason in answer or ())


def _reason_of(left: BaseException) -> str:
    return getattr(left, "msg", None) or "no reason given"


def _end_session(item: GoldenItem) -> None:
    message = f"interrupted while {item.name} was running"
    if hasattr(item.config, "workerinput"):
        item.session.shouldstop = message
        return
    # Raised here, since with -x pytest looks at the failure first and would end with 1 instead of 2.
    raise item.session.Interrupted(message)
