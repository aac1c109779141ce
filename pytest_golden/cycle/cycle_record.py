"""What a cycle records in the journal and the learning store, and the regression checks that it runs or accepts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import new_id
from pytest_golden.cycle.rules import ERROR, FAILURE, SUCCESS, get_final_status
from pytest_golden.errors import GoldenError
from pytest_golden.gate.events import GATE_AGENT
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gate.state_folder import choose_log_folder, hold_gate_lock, prepare_state_folder
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.model import ImmediateResult, SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcomes import Report, make_outcome, write_outcome
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.cycle.model import CycleConfig, CycleState
    from pytest_golden.gateway.model import Gateway


CYCLE_TYPE = "cycle"
_PATIENCE_SECONDS = 5.0
_FLOOR, _DECISION = "floor", "decision"
_IMMEDIATE = {SUCCESS: ImmediateResult.SUCCESS, FAILURE: ImmediateResult.FAILURE}
_LOG = logging.getLogger(__name__)


class CycleRecord:
    """Records a cycle in the store at `location`; None records nothing."""

    def __init__(self, location: str | Path | None) -> None:
        self._location = location

    @property
    def is_kept(self) -> bool:
        """Tell whether anything is recorded."""
        return self._location is not None

    def begin(self, cycle_id: str, task: str) -> str | None:
        """Begin the cycle's entry and return its id.

        Raises:
            GoldenError: the store does not accept it.
        """
        if self._location is None:
            return None
        with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store:
            entry = Journal(store).log_intent(redact(task), CYCLE_TYPE, agent_id=GATE_AGENT, session_key=cycle_id)
        return entry.id

    def end(self, state: CycleState, task: str, entry_id: str | None, elapsed_seconds: float) -> str | None:
        """Record how the cycle ended: its entry's outcome, a signal for each expectation, and an outcome to learn from.

        Return the entry's id. What was recorded already is not recorded again.

        Raises:
            GoldenError: the store does not accept it.
        """
        if self._location is None:
            return None
        entry_id = entry_id or self.begin(state.cycle_id, task)
        with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store:
            self._tell_journal(Journal(store), state, str(entry_id))
            self._tell_learning(store, state, task, elapsed_seconds)
        return entry_id

    def _tell_journal(self, journal: Journal, state: CycleState, entry_id: str) -> None:
        if journal.get(entry_id).closed_at is not None:
            return
        news = list(_list_news(state))
        journal.log_outcome(
            entry_id,
            _IMMEDIATE.get(_final(state), ImmediateResult.PARTIAL),
            f"{_final(state)}, verdict {state.verdict}",
            actions=[redact(_note(state))],
            expectations=[
                {"description": told, "match_hint": {"source": GATE_AGENT, **hint}} for told, hint, _, _ in news
            ],
            agent_id=GATE_AGENT,
        )
        for _, hint, is_good, summary in news:
            journal.add_signal(
                GATE_AGENT,
                SignalType.POSITIVE if is_good else SignalType.NEGATIVE,
                redact(summary),
                data=hint,
                external_id=":".join(hint.values()),
                agent_id=GATE_AGENT,
                entry_id=entry_id,
            )

    def _tell_learning(self, store: Store, state: CycleState, task: str, elapsed_seconds: float) -> None:
        final = _final(state)
        errors = [record.reason for record in state.steps if record.status == ERROR]
        report = Report(
            task=redact(task),
            result=redact({"final_status": final, **_note(state)}),
            success=final == SUCCESS,
            execution_path=[str(record.step) for record in state.steps if record.status == "done"],
            agent_name=GATE_AGENT,
            execution_time=elapsed_seconds,
            error_message=redact("; ".join(errors)) or None,
            context={"cycle_id": state.cycle_id},
        )
        # The id is derived from the cycle's, so that an outcome recorded twice is stored once.
        outcome = replace(make_outcome(report), outcome_id=state.cycle_id.replace(CYCLE_TYPE, "outcome", 1))
        MemoryStore(store).save_memories(write_outcome(outcome))


def _final(state: CycleState) -> str:
    """Return the final status of a cycle of which only the last steps remain."""
    return get_final_status(replace(state, completed=True))


def _note(state: CycleState) -> dict[str, Any]:
    return {
        "cycle_id": state.cycle_id,
        "verdict": str(state.verdict),
        "improvements_approved": state.improvements_approved,
        "improvements_rejected": state.improvements_rejected,
        "regressions_detected": state.regressions_detected,
        "weakened_floor": [dict(one) for one in state.weakened_floor],
        "warnings": list(state.warnings),
    }


def _list_news(state: CycleState) -> Iterator[tuple[str, Mapping[str, str], bool, str]]:
    """Yield each expectation: its description, its match hint, whether it is met, and the signal's summary."""
    if state.exit_status == ERROR or not (state.improvements_approved or state.improvements_rejected):
        return
    hint = {"cycle": state.cycle_id}
    is_approved = state.improvements_approved > 0
    told = f"{state.improvements_approved} approved, {state.improvements_rejected} rejected"
    yield "an improvement is approved", {**hint, "check": _DECISION}, is_approved, told
    is_lower = bool(state.weakened_floor)
    if state.regression_check is not None:
        shown = "; ".join(str(one.get("message", one)) for one in state.weakened_floor) or "nothing of it was loosened"
        yield "the floor holds", {**hint, "check": _FLOOR}, not is_lower, shown
        for result in state.regression_check.results:
            if result.is_regression or result.status is ResultStatus.PASSED:
                summary = f"{result.name}: {result.status}"
                yield f"{result.name} passes", {**hint, "project": result.name}, not result.is_regression, summary


class CheckedFloor(NamedTuple):
    """What the regression checks found: all results, how the floor is weakened, and warnings."""

    check: RegressionCheckResult
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


def check_projects(config: CycleConfig, gateway: Gateway | None) -> RegressionCheckResult:
    """Run and judge the cycle's golden projects, through `gateway` or a new one for the project root."""
    root = config.project_root
    with hold_gate_lock(root, _LOG.info):
        if gateway is not None:
            return RegressionGuard(gateway).check(config.golden_projects)
        logs = choose_log_folder(prepare_state_folder(root), new_id("gate"))
        with ExecutionGateway(root, log_folder=logs) as own:
            return RegressionGuard(own).check(config.golden_projects)


def read_check(given: Any, config: CycleConfig) -> CheckedFloor:
    """Read what a step of regression checks returned.

    Raises:
        GoldenError: it is not a check, or it has no result for a configured project.
    """
    weakened: Any = ()
    warnings: Any = ()
    check = given
    if isinstance(given, Mapping):
        check, weakened = given.get("regression_check"), given.get("weakened_floor") or ()
        warnings = given.get("warnings") or ()
    if not isinstance(check, RegressionCheckResult):
        raise GoldenError(f"the regression checks gave {check!r:.100}, and not a RegressionCheckResult")
    told = {result.name for result in check.results}
    untold = [project.name for project in config.golden_projects if project.name not in told]
    if untold:
        raise GoldenError(f"the regression checks say nothing of {', '.join(untold)}")
    return CheckedFloor(check, tuple(dict(one) for one in weakened), tuple(map(str, warnings)))
