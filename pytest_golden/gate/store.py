"""Gate runs and their results as rows, and back. Each function works on an open connection and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, func, insert, or_, select, update

from pytest_golden.errors import StorageError
from pytest_golden.gate.past import InterruptedRun, PastPass, PastResult
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.documents import keep_document, read_document
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.schema import expectations, gate_results, gate_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.gate.events import ResultJudged, RunBegun

_LONGEST_ABSENCE_MS = 24 * 60 * 60 * 1000
_INSERT_RUN = insert(gate_runs)
_INSERT_RESULT = insert(gate_results)
_LAST_STREAK = (
    select(gate_results.c.pass_streak)
    .where(gate_results.c.project == bindparam("project_name"))
    .order_by(gate_results.c.number.desc())
    .limit(1)
)


def insert_run(connection: Connection, begun: RunBegun) -> None:
    """Keep the facts of a run that begins."""
    checkout = begun.checkout
    connection.execute(
        _INSERT_RUN,
        {
            "entry_id": begun.run_id,
            "workspace_root": begun.workspace_root,
            "manifest": begun.manifest,
            "command_line": list(begun.command_line),
            "commit": checkout.get("commit"),
            "branch": checkout.get("branch"),
            "dirty": checkout.get("dirty"),
            "dirty_files": checkout.get("dirty_files"),
            "environment_digest": keep_document(connection, dict(begun.surroundings)),
            "host": begun.host,
            "pid": begun.pid,
            "started_at": begun.moment,
            "facts": dict(begun.facts),
        },
    )


def finish_run(
    connection: Connection, run_id: str, moment: int, final_status: str, more_facts: Mapping[str, Any]
) -> None:
    """Keep how a run ended."""
    facts = connection.scalar(select(gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)) or {}
    connection.execute(
        update(gate_runs)
        .where(gate_runs.c.entry_id == run_id)
        .values(finished_at=moment, final_status=final_status, facts={**facts, **more_facts})
    )


def has_ended(connection: Connection, run_id: str) -> bool:
    """Tell whether the end of a run is recorded.

    Raises:
        StorageError: it was never begun in this store.
    """
    row = connection.execute(select(gate_runs.c.finished_at).where(gate_runs.c.entry_id == run_id)).one_or_none()
    if row is None:
        raise StorageError(f"the gate run {run_id} was never begun in this store")
    return row.finished_at is not None


def insert_result(connection: Connection, judged: ResultJudged) -> int:
    """Keep a result, and give how many passes in a row end with it (0 when it is no pass)."""
    result = judged.result
    streak = 0
    if result.status is ResultStatus.PASSED:
        streak = 1 + (connection.scalar(_LAST_STREAK, {"project_name": result.name}) or 0)
    # The steps are in the trajectory.
    plain = {key: value for key, value in result.to_dict().items() if key not in {"steps", "trajectory"}}
    connection.execute(
        _INSERT_RESULT,
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


def list_interrupted(
    connection: Connection, *, run_id: str, workspace_root: str, host: str, moment: int, is_own_store: bool
) -> tuple[InterruptedRun, ...]:
    """Give the runs that can no longer be running although they have no end, oldest first.

    The caller holds its workspace's gate lock: no other run of this workspace lives. In a store of this workspace alone
    that is every other run; in a shared one those of the same machine and folder, and any that began a day ago.
    """
    unfinished = and_(gate_runs.c.finished_at.is_(None), gate_runs.c.entry_id != run_id)
    if not is_own_store:
        here = and_(gate_runs.c.workspace_root == workspace_root, gate_runs.c.host == host)
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


def list_projects(connection: Connection) -> tuple[str, ...]:
    """Give the names of all projects with a result, sorted."""
    # The index holds the names in order: each look skips to the next one, however many results a project has.
    names: list[str] = []
    while True:
        after = gate_results.c.project > names[-1] if names else gate_results.c.project.is_not(None)
        name = connection.scalar(select(func.min(gate_results.c.project)).where(after))
        if name is None:
            return tuple(names)
        names.append(name)


def list_results(connection: Connection, project: str, limit: int) -> tuple[PastResult, ...]:
    """Give a project's last results, newest first."""
    rows = connection.execute(_past_results().where(gate_results.c.project == project).limit(limit))
    return tuple(map(_past_result, rows))


def find_last_pass(connection: Connection, project: str) -> PastPass | None:
    """Give a project's last pass and what it ran in, or None."""
    query = _past_results(gate_runs.c.dirty_files, gate_runs.c.environment_digest, gate_results.c.declaration_digest)
    passed = and_(gate_results.c.project == project, gate_results.c.status == ResultStatus.PASSED.value)
    row = connection.execute(query.where(passed).limit(1)).one_or_none()
    if row is None:
        return None
    return PastPass(
        _past_result(row),
        row.dirty_files,
        declaration=read_document(connection, row.declaration_digest) or {},
        surroundings=read_document(connection, row.environment_digest) or {},
    )


def _past_results(*more: Any) -> Select[Any]:
    columns = [gate_results.c[name] for name in _RESULT_COLUMNS]
    message = gate_results.c.result["error_message"].as_string().label("message")
    return (
        select(*columns, message, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, *more)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .order_by(gate_results.c.number.desc())
    )


_RESULT_COLUMNS = (
    "entry_id",
    "run_id",
    "project",
    "status",
    "exit_code",
    "execution_time_seconds",
    "attempts",
    "is_flaky",
    "is_regression",
    "pass_streak",
    "created_at",
    "trajectory_id",
)


def _past_result(row: Row[Any]) -> PastResult:
    fields = {name: getattr(row, name) for name in (*_RESULT_COLUMNS, "commit", "branch", "dirty", "message")}
    return PastResult(**{**fields, "status": ResultStatus(row.status), "created_at": from_ms(row.created_at)})


def _count(connection: Connection, column: Any, value: str) -> int:
    return connection.scalar(select(func.count()).where(column == value)) or 0
