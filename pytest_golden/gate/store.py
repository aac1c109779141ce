"""The events of a gate run as rows of the store, and its live state. Each function works on an open connection.

The run is an entry, each project an expectation of it, each result a child entry and a signal on the run's entry. Recording
an event twice has no effect, so that a spool can be taken in again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from pytest_golden.errors import JournalError
from pytest_golden.gate.events import (
    FOUND_KILLED,
    GATE_AGENT,
    FailureExplained,
    ResultJudged,
    RunBegun,
    was_found_killed,
)
from pytest_golden.history.run_environment import IGNORED, VERDICT
from pytest_golden.journal import model as journal
from pytest_golden.journal import store as journal_store
from pytest_golden.journal.assessment_store import close_expectations
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.storage.columns import from_ms, storable, to_ms
from pytest_golden.storage.schema import expectations, gate_live, gate_results, gate_runs
from pytest_golden.storage.shared_documents import IGNORED_DIGEST, INPUTS_DIGEST, is_own_run, keep_document
from pytest_golden.storage.statements import Prepared
from pytest_golden.trajectory.store import insert_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.gate.events import GateEvent, RunEnded
    from pytest_golden.gate.live import RunningProject
    from pytest_golden.regression.verdict import RunVerdict

RUN_TYPE = "regression_check"
RESULT_TYPE = "golden_run"
CYCLE_TYPE = "cycle"
_IMMEDIATE = {
    ResultStatus.PASSED: (journal.ImmediateResult.SUCCESS, journal.Assessment.SUCCESS),
    ResultStatus.FAILED: (journal.ImmediateResult.FAILURE, journal.Assessment.FAILURE),
    ResultStatus.ERROR: (journal.ImmediateResult.FAILURE, journal.Assessment.FAILURE),
    # It did not run, so it is unknown whether it would have passed.
    ResultStatus.SKIPPED: (journal.ImmediateResult.UNKNOWN, journal.Assessment.EXPIRED),
}
_MOST_OF_KNOWN = 32 * 1024
_LONGEST_ABSENCE_MS = 24 * 60 * 60 * 1000
# Columns with the same name in a result and in its row.
_ALIKE = (
    *("exit_code", "execution_time_seconds", "attempts", "is_flaky", "is_regression", "regression_kind"),
    *("trajectory_id", "is_narrowed"),
)
_INSERT_RUN = insert(gate_runs)
_INSERT_RESULT = Prepared(
    insert(gate_results), *(column.name for column in gate_results.c if column.name not in {"number", "learned_at"})
)
_LAST_STREAK = Prepared(
    select(gate_results.c.pass_streak)
    .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
    .where(gate_results.c.project == bindparam("project_name"), is_own_run())
    .order_by(gate_results.c.number.desc())
    .limit(1)
)


def record_event(connection: Connection, event: GateEvent) -> journal.JournalEntry | None:
    """Record an event; return the entry of a result that was not recorded before.

    Raises:
        JournalError: the run of a result or of an end was never begun in this store.
    """
    if isinstance(event, ResultJudged):
        return _record_result(connection, event)
    if isinstance(event, RunBegun):
        _record_begin(connection, event)
    elif isinstance(event, FailureExplained):
        update_known(connection, event.entry_id, event.known)
    else:
        _record_end(connection, event)
    return None


def record_missing(connection: Connection, events: Iterable[GateEvent]) -> int:
    """Record again the results of a run, with their explanations, that the store has lost; return how many.

    Raises:
        JournalError: the store has lost the run itself.
    """
    judged = {event.entry_id: event.run_id for event in events if isinstance(event, ResultJudged)}
    of_runs = gate_results.c.run_id.in_(set(judged.values()))
    lost = judged.keys() - set(connection.scalars(select(gate_results.c.entry_id).where(of_runs)))
    for event in events:
        if isinstance(event, ResultJudged | FailureExplained) and event.entry_id in lost:
            record_event(connection, event)
    return len(lost)


class InterruptedRun(NamedTuple):
    """A gate run that ended without its end, and how many of its projects have a result."""

    run_id: str
    started_at: datetime
    recorded_count: int
    expected_count: int


def close_interrupted(connection: Connection, begun: RunBegun, *, is_own_store: bool) -> tuple[InterruptedRun, ...]:
    """Close the runs that can no longer be running although they have no end, and return them, oldest first.

    The caller begins a run and holds its workspace's gate lock: no other run of this workspace lives. In a store of this
    workspace alone that is every other run; in a shared one those of the same machine and folder, and any that began a day
    ago.
    """
    unfinished = and_(gate_runs.c.finished_at.is_(None), gate_runs.c.entry_id != begun.run_id)
    if not is_own_store:
        here = and_(gate_runs.c.workspace_root == storable(begun.workspace_root), gate_runs.c.host == begun.host)
        unfinished = and_(unfinished, or_(here, gate_runs.c.started_at < begun.moment - _LONGEST_ABSENCE_MS))
    of_run = select(gate_runs.c.entry_id, gate_runs.c.started_at).where(unfinished).order_by(gate_runs.c.number)
    interrupted = tuple(
        InterruptedRun(
            row.entry_id,
            from_ms(row.started_at),
            recorded_count=_count(connection, gate_results.c.run_id, row.entry_id),
            expected_count=_count(connection, expectations.c.entry_id, row.entry_id),
        )
        for row in connection.execute(of_run).all()
    )
    moment = from_ms(begun.moment)
    for run in interrupted:
        told = f"interrupted after {run.recorded_count} of {run.expected_count} projects"
        verdict, not_run = judge_killed(connection, run.run_id)
        outcome = journal_store.Outcome(journal.ImmediateResult.PARTIAL, verdict.sentence)
        journal_store.record_outcome(connection, run.run_id, outcome, moment, who=GATE_AGENT)
        close_expectations(connection, run.run_id, moment, who=GATE_AGENT, why=told)
        finish_run(connection, run.run_id, begun.moment, verdict.to_dict(), {"not_run": not_run, FOUND_KILLED: True})
    return interrupted


def _count(connection: Connection, column: Any, value: str) -> int:
    return connection.scalar(select(func.count()).where(column == value)) or 0


def _record_begin(connection: Connection, begun: RunBegun) -> None:
    if journal_store.has_entry(connection, begun.run_id):
        return
    moment = from_ms(begun.moment)
    count = len(begun.expectations)
    entry = journal.JournalEntry(
        id=begun.run_id,
        agent_id=GATE_AGENT,
        session_key=begun.run_id,
        intent=f"check {count} golden project{'' if count == 1 else 's'} of {begun.manifest}",
        intent_type=RUN_TYPE,
        created_at=moment,
        updated_at=moment,
    )
    journal_store.insert_entry(connection, entry)
    _insert_run(connection, begun)
    expected = [
        journal.Expectation(
            id=identity,
            entry_id=begun.run_id,
            description=f"{project} passes",
            match_hint={"source": GATE_AGENT, "run": begun.run_id, "project": project},
            created_at=moment,
        )
        for project, identity in begun.expectations.items()
    ]
    journal_store.insert_expectations(connection, expected)


def _record_result(connection: Connection, judged: ResultJudged) -> journal.JournalEntry | None:
    if journal_store.has_entry(connection, judged.entry_id):
        return None
    entry = _make_entry(judged)
    journal_store.insert_entry(connection, entry)
    rule = journal.RoutedBy.ENTRY if judged.expectation_id is None else journal.RoutedBy.MATCH_HINT
    journal_store.take_signal(connection, _make_signal(judged), judged.expectation_id, journal_store.Received(rule))
    insert_result(connection, judged)
    result = judged.result
    if result.trajectory is not None:
        body = {**result.trajectory, "steps": result.steps}
        insert_trajectory(connection, body, entry_id=judged.entry_id, project=result.name, agent_id=GATE_AGENT)
    return entry


def _make_entry(judged: ResultJudged) -> journal.JournalEntry:
    result, moment = judged.result, from_ms(judged.moment)
    immediate, assessment = _IMMEDIATE[result.status]
    return journal.JournalEntry(
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


def _make_signal(judged: ResultJudged) -> journal.Signal:
    result = judged.result
    if judged.fails:
        kind = journal.SignalType.NEGATIVE
    else:
        kind = journal.SignalType.POSITIVE if result.status is ResultStatus.PASSED else journal.SignalType.NEUTRAL
    return journal.Signal(
        id=judged.signal_id,
        entry_id=judged.run_id,
        source=GATE_AGENT,
        signal_type=kind,
        summary=f"{result.name}: {result.status}" + (f": {result.error_message}" if result.error_message else ""),
        data={"run": judged.run_id, "project": result.name, "status": result.status.value, "result": judged.entry_id},
        external_id=judged.entry_id,
        created_at=from_ms(judged.moment),
    )


def _record_end(connection: Connection, ended: RunEnded) -> None:
    # Another gate may have taken it for killed, by a clock that was wrong or while this one's end waited in a spool: it knows better.
    if has_own_end(connection, ended.run_id) and not ended.is_correction:
        return
    moment = from_ms(ended.moment)
    for news in ended.news:
        signal = journal.Signal(
            id=news["id"],
            entry_id=ended.run_id,
            source=GATE_AGENT,
            signal_type=journal.SignalType(news["signal_type"]),
            summary=news["summary"],
            data={"run": ended.run_id, **news["data"]},
            created_at=moment,
        )
        journal_store.take_signal(connection, signal, None, journal_store.Received(journal.RoutedBy.ENTRY))
    outcome = journal_store.Outcome(journal.ImmediateResult(ended.immediate_result), ended.notes)
    journal_store.record_outcome(connection, ended.run_id, outcome, moment, who=GATE_AGENT)
    close_expectations(connection, ended.run_id, moment, who=GATE_AGENT, why="the gate has ended")
    finish_run(connection, ended.run_id, ended.moment, ended.verdict, {**ended.facts, FOUND_KILLED: False})
    if ended.dirty_files is not None:
        of_run = and_(gate_runs.c.entry_id == ended.run_id, gate_runs.c.dirty_files.is_not(None))
        values = {"dirty": bool(ended.dirty_files), "dirty_files": dict(ended.dirty_files)}
        connection.execute(update(gate_runs).where(of_run).values(values))


def _insert_run(connection: Connection, begun: RunBegun) -> None:
    checkout, facts = begun.checkout, dict(begun.facts)
    ignored = facts.pop(IGNORED, None)
    if ignored is not None:
        facts[IGNORED_DIGEST] = keep_document(connection, dict(ignored))
    connection.execute(
        _INSERT_RUN,
        {
            "entry_id": begun.run_id,
            "workspace_root": storable(begun.workspace_root),
            "manifest": storable(begun.manifest),
            "command_line": list(begun.command_line),
            "commit": checkout.get("commit"),
            "branch": storable(branch) if (branch := checkout.get("branch")) else None,
            "dirty": checkout.get("dirty"),
            "dirty_files": checkout.get("dirty_files"),
            "environment_digest": keep_document(connection, dict(begun.surroundings)),
            "host": begun.host,
            "pid": begun.pid,
            "started_at": begun.moment,
            "facts": facts,
        },
    )


def finish_run(
    connection: Connection, run_id: str, moment: int, verdict: Mapping[str, Any], more_facts: Mapping[str, Any]
) -> None:
    """Store the verdict of a run that has ended, and remove the state of its running projects."""
    facts = connection.scalar(select(gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)) or {}
    connection.execute(
        update(gate_runs)
        .where(gate_runs.c.entry_id == run_id)
        .values(
            finished_at=moment,
            final_status=verdict["final_status"],
            facts={**facts, **more_facts, VERDICT: dict(verdict)},
        )
    )
    connection.execute(delete(gate_live).where(gate_live.c.run_id == run_id))


def has_own_end(connection: Connection, run_id: str) -> bool:
    """Tell whether a run has recorded its own end. Being marked as killed by another gate does not count.

    Raises:
        JournalError: it was never begun in this store.
    """
    of_run = select(gate_runs.c.finished_at, gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)
    row = connection.execute(of_run).one_or_none()
    if row is None:
        raise JournalError(f"the gate run {run_id} was never begun in this store")
    return row.finished_at is not None and not was_found_killed(row.facts)


def judge_killed(connection: Connection, run_id: str) -> tuple[RunVerdict, tuple[str, ...]]:
    """Judge a killed run by the results that it recorded; return its verdict, and the projects that were not run."""
    from pytest_golden.history.past_store import list_expected

    facts = connection.scalar(select(gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)) or {}
    plain = connection.scalars(select(gate_results.c.result).where(gate_results.c.run_id == run_id))
    results = tuple(map(GoldenProjectResult.from_dict, plain))
    names = {result.name for result in results}
    not_run = tuple(name for name in list_expected(connection, run_id) if name not in names)
    skips_fail = facts.get("require") is True
    return judge_run(results, skips_fail=skips_fail, not_run=not_run, is_interrupted=True), not_run


def insert_result(connection: Connection, judged: ResultJudged) -> int:
    """Store a result, and return its pass streak."""
    result = judged.result
    last = _LAST_STREAK.first(connection, {"project_name": result.name})
    before = 0 if last is None else int(last.pass_streak)
    streak = count_streak(before, result.status, is_interrupted=result.is_interrupted)
    # The steps are in the trajectory.
    plain = {key: value for key, value in result.to_dict().items() if key not in {"steps", "trajectory"}}
    if judged.inputs:
        plain[INPUTS_DIGEST] = keep_document(connection, dict(judged.inputs))
    _INSERT_RESULT.leave(
        connection,
        {
            "entry_id": judged.entry_id,
            "run_id": judged.run_id,
            "project": result.name,
            **{name: getattr(result, name) for name in _ALIKE},
            "status": result.status.value,
            "pass_streak": streak,
            "declaration_digest": keep_document(connection, dict(judged.declaration)),
            "created_at": judged.moment,
            "result": plain,
        },
    )
    return streak


def update_known(connection: Connection, entry_id: str, known: Iterable[Mapping[str, Any]]) -> None:
    """Store what was known about a failure with its result; if that is long, only the lines for people."""
    told = [dict(one) for one in known]
    if len(json.dumps(told)) > _MOST_OF_KNOWN:
        told = [{key: one[key] for key in ("kind", "lines") if key in one} for one in told]
    of_entry = gate_results.c.entry_id == entry_id
    plain = connection.scalar(select(gate_results.c.result).where(of_entry))
    if plain is not None and len(json.dumps(told)) <= _MOST_OF_KNOWN:
        connection.execute(update(gate_results).where(of_entry).values(result={**plain, "known": told}))


def count_streak(before: int, status: ResultStatus, *, is_interrupted: bool) -> int:
    """Count the consecutive passes up to a result; skipped and interrupted ones do not break the streak."""
    if status is ResultStatus.PASSED:
        return before + 1
    return 0 if status.is_failure and not is_interrupted else before


def write_beat(
    connection: Connection, run_id: str, moment: datetime, running: Iterable[RunningProject], **process: str | int
) -> None:
    """Replace what is stored about what a run does now. Ignore a run that has ended or does not exist.

    `process` has its `pid`, the `machine` where that is valid, and the `total_count` of its projects.
    """
    values = {"beat_at": to_ms(moment), "running": [one.to_dict() for one in running], **process}
    kept = connection.execute(update(gate_live).where(gate_live.c.run_id == run_id).values(values))
    if kept.rowcount:
        return
    is_open = select(gate_runs.c.number).where(gate_runs.c.entry_id == run_id, gate_runs.c.finished_at.is_(None))
    if connection.execute(is_open).first() is not None:
        connection.execute(insert(gate_live).values(run_id=run_id, **values))
