"""Run golden items through the gate, in the process that pytest runs them in, and put their results on the reports."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from pytest_golden.errors import GoldenError
from pytest_golden.gate import RegressionGuard
from pytest_golden.gate.order import find_independent
from pytest_golden.gate.service import error_result
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.report.shown_run import fails_the_gate
from pytest_golden.session.board import note_present_step
from pytest_golden.session.distribution import is_worker
from pytest_golden.session.item import GoldenItem
from pytest_golden.session.reports import dress_report
from pytest_golden.session.ticking import Ticker

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_golden.gate.baselines import BaselineKeeper
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult, Reason
    from pytest_golden.session.board import RunBoard
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import SessionGateway


class GoldenExecution:
    """The hooks around running a golden item."""

    def __init__(
        self,
        config: pytest.Config,
        declared: Declared,
        gateway: SessionGateway,
        board: RunBoard,
        *,
        baselines: BaselineKeeper,
        earlier: EarlierRuns,
        skips_fail: bool,
    ) -> None:
        self._config = config
        self._declared = declared
        self._gateway = gateway
        self._board = board
        self._baselines = baselines
        self._earlier = earlier
        self._skips_fail = skips_fail
        self._guard: RegressionGuard | None = None
        self._items: Sequence[pytest.Item] = ()
        # Only this process can ask how far its pipeline is; without workers, whoever keeps the live row asks.
        self._steps = (
            Ticker(partial(note_present_step, board, gateway), name="golden-steps") if is_worker(config) else None
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a golden item like any other, but without the terminal's own line for it: ours says more."""
        if not isinstance(item, GoldenItem):
            return None
        item.run = self._run
        self._items = item.session.items
        runtestprotocol(item, nextitem=nextitem)
        if item.result is not None and _was_interrupted(item.result):
            _end_session(item)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the result on the report as text: a value that execnet cannot carry would end the session."""
        report = yield
        if isinstance(item, GoldenItem) and call.when == "call" and item.result is not None:
            report.golden = json.dumps(item.result.to_dict())  # type: ignore[attr-defined]
            fails = fails_the_gate(item.result, skips_fail=self._skips_fail)
            command = self._declared.shell_command(item.name)
            dress_report(report, item.result, fails=fails, shell_command=command)
        return report

    def pytest_unconfigure(self) -> None:
        """Note no more steps."""
        if self._steps is not None:
            self._steps.stop()

    def _run(self, project: GoldenProjectConfig) -> GoldenProjectResult:
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
        return result

    def _get_guard(self) -> RegressionGuard:
        if self._guard is None:
            self._guard = RegressionGuard(
                self._gateway.get(),
                further_judge=self._ask_judges,
                baselines=self._baselines,
                slowdowns=self._earlier.slowdowns,
            )
            self._gateway.call("freeze", self._declared.projects.values())
            self._baselines.pin()
            self._gateway.call("start_ahead", self._list_side_by_side())
        return self._guard

    def _list_side_by_side(self) -> list[GoldenProjectConfig]:
        """List what may run beside others and is asked for, in order: a gateway with places for several can begin with them."""
        independent = find_independent(self._declared.projects.values())
        projects = [item.project for item in self._items if isinstance(item, GoldenItem) and item.name in independent]
        return [project for project in projects if self._earlier.find_left_out(project) is None]

    def _ask_judges(self, project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[Reason, ...]:
        answers: list[Any] = self._config.hook.pytest_golden_judge(project=project, outcome=outcome)
        return tuple(reason for answer in answers for reason in answer or ())


def _was_interrupted(result: GoldenProjectResult) -> bool:
    return any(reason.kind == ReasonKind.INTERRUPTED for reason in result.reasons)


def _end_session(item: GoldenItem) -> None:
    message = f"interrupted while {item.name} was running"
    if hasattr(item.config, "workerinput"):
        item.session.shouldstop = message
        return
    # Raised here, since with -x pytest looks at the failure first and would end with 1 instead of 2.
    raise item.session.Interrupted(message)
