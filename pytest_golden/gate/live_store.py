"""Running gates read from their rows, with what is recorded of them. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, func, select

from pytest_golden.gate.live_model import FinishedProject, LiveGate, RunningProject
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import expectations, gate_live, gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Row, Select

# More than so many gates at once are not told of, the newest before others.
_MOST_GATES = 100
_RUNS: Select[Any] = select(
    gate_runs.c.number,
    gate_runs.c.entry_id,
    gate_runs.c.manifest,
    gate_runs.c.workspace_root,
    gate_runs.c.commit,
    gate_runs.c.branch,
    gate_runs.c.host,
    gate_runs.c.pid,
    gate_runs.c.started_at,
    gate_runs.c.finished_at,
    gate_runs.c.final_status,
    gate_live.c.beat_at,
    gate_live.c.pid.label("beating_pid"),
    gate_live.c.machine,
    gate_live.c.total_count,
    gate_live.c.running,
).join_from(gate_runs, gate_live, gate_live.c.run_id == gate_runs.c.entry_id, isouter=True)
_UNFINISHED = _RUNS.where(gate_runs.c.finished_at.is_(None)).order_by(gate_runs.c.number.desc()).limit(_MOST_GATES)
_NEWEST = select(func.max(gate_runs.c.number))
_FINISHED = (
    select(
        gate_results.c.number,
        gate_results.c.entry_id,
        gate_results.c.project,
        gate_results.c.status,
        gate_results.c.execution_time_seconds,
        gate_results.c.created_at,
    )
    .where(
        gate_results.c.run_id == bindparam("the_run", type_=gate_results.c.run_id.type),
        gate_results.c.number > bindparam("after", type_=gate_results.c.number.type),
    )
    .order_by(gate_results.c.number)
)


class SeenRun(NamedTuple):
    """A run with its row. `beat` is the moment of its last sign of life, by its own clock."""

    gate: LiveGate
    beat: int
    pid: int | None
    machine: str | None


def find_newest(connection: Connection) -> int:
    """Return the number of the newest run, 0 where there is none."""
    return connection.scalar(_NEWEST) or 0


def list_unfinished(connection: Connection) -> tuple[SeenRun, ...]:
    """Return the runs without an end, oldest first: those that run, and those that were killed."""
    rows = connection.execute(_UNFINISHED).all()
    return tuple(_read_seen(connection, row) for row in reversed(rows))


def list_ended(connection: Connection, after: int, since: int, most: int) -> tuple[LiveGate, ...]:
    """Return the newest runs that are newer than a number and ended since a moment, oldest first."""
    query = _RUNS.where(gate_runs.c.number > after, gate_runs.c.finished_at >= since)
    rows = connection.execute(query.order_by(gate_runs.c.number.desc()).limit(most)).all()
    return tuple(_read_ended(connection, row) for row in reversed(rows))


def find_run(connection: Connection, run_id: str) -> LiveGate | None:
    """Return a run without its results, whether or not it has ended; None where it is not."""
    row = connection.execute(_RUNS.where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_ended(connection, row)


def list_finished(connection: Connection, run_id: str, after: int) -> tuple[FinishedProject, ...]:
    """Return the results of a run that were recorded after the one of a number, in that order."""
    rows = connection.execute(_FINISHED, {"the_run": run_id, "after": after})
    return tuple(
        FinishedProject(number, entry_id, project, ResultStatus(status), seconds, from_ms(created_at))
        for number, entry_id, project, status, seconds, created_at in rows
    )


def _read_seen(connection: Connection, row: Row[Any]) -> SeenRun:
    beat = row.started_at if row.beat_at is None else row.beat_at
    return SeenRun(_read_gate(connection, row), beat, row.beating_pid, row.machine)


def _read_ended(connection: Connection, row: Row[Any]) -> LiveGate:
    return _read_gate(connection, row, is_interrupted=row.final_status == RunStatus.INTERRUPTED)


def _read_gate(connection: Connection, row: Row[Any], *, is_interrupted: bool = False) -> LiveGate:
    total = row.total_count
    if total is None:
        # Its row is not there yet, or no more; each project is an expectation.
        expected = select(func.count()).select_from(expectations).where(expectations.c.entry_id == row.entry_id)
        total = connection.scalar(expected)
    return LiveGate(
        number=row.number,
        run_id=row.entry_id,
        manifest=row.manifest,
        workspace_root=row.workspace_root,
        commit=row.commit,
        branch=row.branch,
        host=row.host,
        pid=row.pid,
        is_own=is_own_place(row.workspace_root),
        started_at=from_ms(row.started_at),
        finished_at=None if row.finished_at is None else from_ms(row.finished_at),
        final_status=row.final_status,
        is_interrupted=is_interrupted,
        total_count=total or 0,
        running=tuple(_read_running(row.running)),
    )


def _read_running(told: Any) -> Iterator[RunningProject]:
    for one in told if isinstance(told, list) else ():
        try:
            step = one["step"]
            yield RunningProject(str(one["project"]), from_ms(one["since"]), None if step is None else str(step))
        except (KeyError, TypeError, OverflowError):
            # Another version wrote it.
            continue
