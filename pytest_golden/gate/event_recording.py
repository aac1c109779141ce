"""Record the events of a gate run in the store.

The run is an entry, each project an expectation of it, each result a child entry and a signal on the run's entry. Recording
an event twice has no effect, so that a spool can be taken in again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.events import FOUND_KILLED, GATE_AGENT, FailureExplained, ResultJudged, RunBegun
from pytest_golden.gate.store import (
    finish_run,
    has_own_end,
    insert_result,
    insert_run,
    judge_killed,
    list_entries,
    list_interrupted,
    update_edits,
    update_known,
)
from pytest_golden.journal.assessment_store import close_expectations
from pytest_golden.journal.model import (
    Assessment,
    Expectation,
    ImmediateResult,
    JournalEntry,
    RoutedBy,
    Signal,
    SignalType,
)
from pytest_golden.journal.store import (
    Outcome,
    has_entry,
    insert_entry,
    insert_expectations,
    record_outcome,
    record_signal,
)
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.storage.columns import from_ms
from pytest_golden.trajectory.store import insert_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.gate.events import GateEvent, RunEnded
    from pytest_golden.history.changes import InterruptedRun

RUN_TYPE = "regression_check"
RESULT_TYPE = "golden_run"
_IMMEDIATE = {
    ResultStatus.PASSED: (ImmediateResult.SUCCESS, Assessment.SUCCESS),
    ResultStatus.FAILED: (ImmediateResult.FAILURE, Assessment.FAILURE),
    ResultStatus.ERROR: (ImmediateResult.FAILURE, Assessment.FAILURE),
    # Absence of news: it did not run, so nobody knows whether it would have passed.
    ResultStatus.SKIPPED: (ImmediateResult.UNKNOWN, Assessment.EXPIRED),
}


def record_event(connection: Connection, event: GateEvent) -> JournalEntry | None:
    """Record an event; return the entry of a result that was not recorded before.

    Raises:
        JournalError: the run of a result or of an end was never begun in this store.
    """
    if isinstance(event, RunBegun):
        _record_begin(connection, event)
        return None
    if isinstance(event, ResultJudged):
        return _record_result(connection, event)
    if isinstance(event, FailureExplained):
        update_known(connection, event.entry_id, event.known)
        return None
    _record_end(connection, event)
    return None


def record_missing(connection: Connection, events: Iterable[GateEvent]) -> int:
    """Record those of a run's results that its store has lost, and what explains them; return how many those are.

    Raises:
        JournalError: it has lost the run itself.
    """
    judged = {event.entry_id: event.run_id for event in events if isinstance(event, ResultJudged)}
    there = {entry_id for run_id in set(judged.values()) for entry_id in list_entries(connection, run_id)}
    lost = judged.keys() - there
    for event in events:
        if isinstance(event, ResultJudged | FailureExplained) and event.entry_id in lost:
            record_event(connection, event)
    return len(lost)


def has_run(connection: Connection, run_id: str) -> bool:
    """Tell whether a run was begun in this store."""
    return has_entry(connection, run_id)


def close_interrupted(
    connection: Connection, *, run_id: str, workspace_root: str, host: str, moment: int, is_own_store: bool
) -> tuple[InterruptedRun, ...]:
    """Close the runs that ended without their end, as `list_interrupted` finds them, and return them."""
    interrupted = list_interrupted(
        connection, run_id=run_id, workspace_root=workspace_root, host=host, moment=moment, is_own_store=is_own_store
    )
    for run in interrupted:
        told = f"interrupted after {run.recorded_count} of {run.expected_count} projects"
        verdict, not_run = judge_killed(connection, run.run_id)
        outcome = Outcome(ImmediateResult.PARTIAL, verdict.sentence)
        record_outcome(connection, run.run_id, outcome, from_ms(moment), who=GATE_AGENT)
        close_expectations(connection, run.run_id, from_ms(moment), who=GATE_AGENT, why=told)
        finish_run(connection, run.run_id, moment, verdict.to_dict(), {"not_run": not_run, FOUND_KILLED: True})
    return interrupted


def _record_begin(connection: Connection, begun: RunBegun) -> None:
    if has_entry(connection, begun.run_id):
        return
    moment = from_ms(begun.moment)
    count = len(begun.expectations)
    entry = JournalEntry(
        id=begun.run_id,
        agent_id=GATE_AGENT,
        session_key=begun.run_id,
        intent=f"check {count} golden project{'' if count == 1 else 's'} of {begun.manifest}",
        intent_type=RUN_TYPE,
        created_at=moment,
        updated_at=moment,
    )
    insert_entry(connection, entry)
    insert_run(connection, begun)
    expected = [_expect(begun, project, identity, moment) for project, identity in begun.expectations.items()]
    insert_expectations(connection, expected, by_hint_only=True)


def _expect(begun: RunBegun, project: str, identity: str, moment: datetime) -> Expectation:
    return Expectation(
        id=identity,
        entry_id=begun.run_id,
        description=f"{project} passes",
        match_hint={"source": GATE_AGENT, "run": begun.run_id, "project": project},
        created_at=moment,
    )


def _record_result(connection: Connection, judged: ResultJudged) -> JournalEntry | None:
    if has_entry(connection, judged.entry_id):
        return None
    entry = _make_entry(judged)
    insert_entry(connection, entry)
    record_signal(
        connection,
        _make_signal(judged),
        judged.expectation_id,
        from_ms(judged.moment),
        routed_by=RoutedBy.MATCH_HINT if judged.expectation_id is not None else RoutedBy.ENTRY,
        who=GATE_AGENT,
    )
    insert_result(connection, judged)
    result = judged.result
    if result.trajectory is not None:
        body = {**result.trajectory, "steps": result.steps}
        insert_trajectory(connection, body, entry_id=judged.entry_id, project=result.name, agent_id=GATE_AGENT)
    return entry


def _make_entry(judged: ResultJudged) -> JournalEntry:
    result, moment = judged.result, from_ms(judged.moment)
    immediate, assessment = _IMMEDIATE[result.status]
    return JournalEntry(
        id=judged.entry_id,
        parent_id=judged.run_id,
        agent_id=GATE_AGENT,
        session_key=judged.run_id,
        intent=f"run golden project {result.name}",
        intent_type=RESULT_TYPE,
        actions=(list(result.command),) if result.command else (),
        immediate_result=immediate,
        immediate_notes=result.error_message,
        assessment=assessment,
        closed_at=moment,
        created_at=moment,
        updated_at=moment,
    )


def _make_signal(judged: ResultJudged) -> Signal:
    result = judged.result
    if judged.fails:
        kind = SignalType.NEGATIVE
    else:
        kind = SignalType.POSITIVE if result.status is ResultStatus.PASSED else SignalType.NEUTRAL
    return Signal(
        id=judged.signal_id,
        entry_id=judged.run_id,
        source=GATE_AGENT,
        signal_type=kind,
        summary=_summarize(result),
        data={"run": judged.run_id, "project": result.name, "status": result.status.value, "result": judged.entry_id},
        external_id=judged.entry_id,
        created_at=from_ms(judged.moment),
    )


def _summarize(result: GoldenProjectResult) -> str:
    told = f"{result.name}: {result.status}"
    return f"{told}: {result.error_message}" if result.error_message else told


def _record_end(connection: Connection, ended: RunEnded) -> None:
    # Another gate may have taken it for killed, by a clock that was wrong or while this one's end waited in a spool: it knows better.
    if has_own_end(connection, ended.run_id) and not ended.is_correction:
        return
    moment = from_ms(ended.moment)
    for news in ended.news:
        record_signal(connection, _make_news(ended, news), None, moment, routed_by=RoutedBy.ENTRY, who=GATE_AGENT)
    outcome = Outcome(ImmediateResult(ended.immediate_result), ended.notes)
    record_outcome(connection, ended.run_id, outcome, moment, who=GATE_AGENT)
    close_expectations(connection, ended.run_id, moment, who=GATE_AGENT, why="the gate has ended")
    finish_run(connection, ended.run_id, ended.moment, ended.verdict, {**ended.facts, FOUND_KILLED: False})
    if ended.dirty_files is not None:
        update_edits(connection, ended.run_id, ended.dirty_files)


def _make_news(ended: RunEnded, news: Mapping[str, Any]) -> Signal:
    return Signal(
        id=news["id"],
        entry_id=ended.run_id,
        source=GATE_AGENT,
        signal_type=SignalType(news["signal_type"]),
        summary=news["summary"],
        data={"run": ended.run_id, **news["data"]},
        created_at=from_ms(ended.moment),
    )
