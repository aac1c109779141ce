"""Gate runs, their results and their live state as rows, and back. Each function works on an open connection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from pytest_golden.errors import JournalError
from pytest_golden.gate.events import was_found_killed
from pytest_golden.history.changes import VERDICT, InterruptedRun
from pytest_golden.history.past_store import IGNORED, IGNORED_DIGEST, INPUTS_DIGEST, list_expected
from pytest_golden.regression.model import GoldenProjectResult, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.storage.columns import from_ms, storable, to_ms
from pytest_golden.storage.schema import expectations, gate_live, gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_run, keep_document
from pytest_golden.storage.statements import Prepared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

    from pytest_golden.gate.events import ResultJudged, RunBegun
    from pytest_golden.gate.live_model import Beat
    from pytest_golden.regression.verdict import RunVerdict

_MOST_OF_KNOWN = 32 * 1024
_LONGEST_ABSENCE_MS = 24 * 60 * 60 * 1000
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


def insert_run(connection: Connection, begun: RunBegun) -> None:
    """Keep the facts of a run that begins."""
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


def update_edits(connection: Connection, run_id: str, dirty_files: Mapping[str, str | None]) -> None:
    """Store the uncommitted files of the checkout after a run that changed them."""
    of_run = gate_runs.c.entry_id == run_id
    values = {"dirty": bool(dirty_files), "dirty_files": dict(dirty_files)}
    connection.execute(update(gate_runs).where(of_run, gate_runs.c.dirty_files.is_not(None)).values(values))


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
    facts = connection.scalar(select(gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)) or {}
    plain = connection.scalars(select(gate_results.c.result).where(gate_results.c.run_id == run_id))
    results = tuple(map(GoldenProjectResult.from_dict, plain))
    names = {result.name for result in results}
    not_run = tuple(name for name in list_expected(connection, run_id) if name not in names)
    skips_fail = facts.get("require") is True
    return judge_run(results, skips_fail=skips_fail, not_run=not_run, is_interrupted=True), not_run


def insert_result(connection: Connection, judged: ResultJudged) -> int:
    """Store a result, and return how many passes in a row there are up to it; a failure ends them."""
    result = judged.result
    streak = _count_streak(connection, result)
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
            "status": result.status.value,
            "exit_code": result.exit_code,
            "execution_time_seconds": result.execution_time_seconds,
            "attempts": result.attempts,
            "is_flaky": result.is_flaky,
            "is_regression": result.is_regression,
            "regression_kind": result.regression_kind,
            "pass_streak": streak,
            "declaration_digest": keep_document(connection, dict(judged.declaration)),
            "trajectory_id": result.trajectory_id,
            "created_at": judged.moment,
            "result": plain,
        },
    )
    return streak


def list_entries(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Return the entries of a run's results."""
    return tuple(connection.scalars(select(gate_results.c.entry_id).where(gate_results.c.run_id == run_id)))


def update_known(connection: Connection, entry_id: str, known: Iterable[Mapping[str, Any]]) -> None:
    """Store with a result what was known of its failure; if that is long, only the lines for people."""
    told = [dict(one) for one in known]
    if len(json.dumps(told)) > _MOST_OF_KNOWN:
        told = [{key: one[key] for key in ("kind", "lines") if key in one} for one in told]
    of_entry = gate_results.c.entry_id == entry_id
    plain = connection.scalar(select(gate_results.c.result).where(of_entry))
    if plain is not None and len(json.dumps(told)) <= _MOST_OF_KNOWN:
        connection.execute(update(gate_results).where(of_entry).values(result={**plain, "known": told}))


def _count_streak(connection: Connection, result: GoldenProjectResult) -> int:
    is_interrupted = any(reason.kind == ReasonKind.INTERRUPTED for reason in result.reasons)
    if result.status.is_failure and not is_interrupted:
        return 0
    last = _LAST_STREAK.first(connection, {"project_name": result.name})
    before = 0 if last is None else int(last.pass_streak)
    return before + 1 if result.status is ResultStatus.PASSED else before


def list_interrupted(
    connection: Connection, *, run_id: str, workspace_root: str, host: str, moment: int, is_own_store: bool
) -> tuple[InterruptedRun, ...]:
    """Return the runs that can no longer be running although they have no end, oldest first.

    The caller holds its workspace's gate lock: no other run of this workspace lives. In a store of this workspace alone
    that is every other run; in a shared one those of the same machine and folder, and any that began a day ago.
    """
    unfinished = and_(gate_runs.c.finished_at.is_(None), gate_runs.c.entry_id != run_id)
    if not is_own_store:
        here = and_(gate_runs.c.workspace_root == storable(workspace_root), gate_runs.c.host == host)
        unfinished = and_(unfinished, or_(here, gate_runs.c.started_at < moment - _LONGEST_ABSENCE_MS))
    rows = connection.execute(
        select(gate_runs.c.entry_id, gate_runs.c.started_at).where(unfinished).order_by(gate_runs.c.number)
    ).all()
    return tuple(
        InterruptedRun(
            row.entry_id,
            from_ms(row.started_at),
            recorded_count=_count(connection, gate_results.c.run_id, row.entry_id),
            expected_count=_count(connection, expectations.c.entry_id, row.entry_id),
        )
        for row in rows
    )


def _count(connection: Connection, column: Any, value: str) -> int:
    return connection.scalar(select(func.count()).where(column == value)) or 0


def write_beat(connection: Connection, beat: Beat) -> None:
    """Store what a run does now, instead of what it did before. Ignore a run that has ended or is not there."""
    values = {
        "beat_at": to_ms(beat.moment),
        "pid": beat.pid,
        "machine": beat.machine,
        "total_count": beat.total_count,
        "running": [{"project": one.name, "since": to_ms(one.since), "step": one.step} for one in beat.running],
    }
    kept = connection.execute(update(gate_live).where(gate_live.c.run_id == beat.run_id).values(values))
    if kept.rowcount:
        return
    is_open = select(gate_runs.c.number).where(gate_runs.c.entry_id == beat.run_id, gate_runs.c.finished_at.is_(None))
    if connection.execute(is_open).first() is not None:
        connection.execute(insert(gate_live).values(run_id=beat.run_id, **values))
