"""Gate runs and their results out of their rows, a page at a time. Works on an open connection and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, func, or_, select

from pytest_golden.gate.recorded.runs.model import ListedResult, ListedRun, StatusCounts
from pytest_golden.gate.recording import INTERRUPTED
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.json_member import json_member, json_member_text
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_place, is_own_run
from pytest_golden.storage.schema import entries, gate_results, gate_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

_OF_RUN = (
    *("number", "entry_id", "started_at", "finished_at", "final_status", "commit", "branch", "dirty", "manifest"),
    *("host", "workspace_root"),
)
_EXPECTED = (entries.c.open_count, entries.c.met_count, entries.c.unmet_count, entries.c.expired_count)
_OF_RESULT = (
    *("number", "entry_id", "project", "status", "is_regression", "exit_code", "execution_time_seconds", "attempts"),
    *("is_flaky", "regression_kind", "pass_streak", "created_at"),
)
_MESSAGE = json_member_text(gate_results.c.result, "error_message")
_QUARANTINED = json_member_text(gate_results.c.result, "quarantined")
_WAS_INTERRUPTED = json_member(gate_runs.c.facts, "interrupted")


def list_runs(
    connection: Connection, *, before: int | None, limit: int, own_only: bool
) -> tuple[tuple[int, ListedRun], ...]:
    """Give the newest runs with their numbers, newest first; with `before`, those that were recorded before this number."""
    query = _runs().order_by(gate_runs.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(gate_runs.c.number < before)
    if own_only:
        query = query.where(is_own_run())
    rows = connection.execute(query).all()
    counts = _count_results(connection, [row.entry_id for row in rows])
    return tuple((row.number, _read_run(row, counts.get(row.entry_id, StatusCounts()))) for row in rows)


def find_listed_run(connection: Connection, run_id: str) -> ListedRun | None:
    """Give the run with exactly this entry; None: there is no such run."""
    row = connection.execute(_runs().where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_run(row, _count_results(connection, [run_id]).get(run_id, StatusCounts()))


def list_results_of(
    connection: Connection, run_id: str, *, after: tuple[bool, int] | None, limit: int
) -> tuple[tuple[int, ListedResult], ...]:
    """Give a run's results with their numbers, those that fail the gate first, then in the order of recording.

    With `after`, whether it fails and its number, those behind that one.
    """
    number, fails = gate_results.c.number, gate_results.c.is_regression
    wanted = [gate_results.c.run_id == run_id]
    if after is not None:
        later = and_(fails.is_(after[0]), number > after[1])
        wanted.append(or_(later, fails.is_(False)) if after[0] else later)
    # First which, then what they hold: to sort long rows would carry all of them.
    chosen = select(number).where(*wanted).order_by(fails.desc(), number).limit(limit).subquery("chosen")
    columns = (*(gate_results.c[name] for name in _OF_RESULT), _MESSAGE, _QUARANTINED)
    query = select(*columns).join(chosen, chosen.c.number == number).order_by(fails.desc(), number)
    return tuple((row.number, _read_result(row)) for row in connection.execute(query))


def _runs() -> Any:
    columns = (*(gate_runs.c[name] for name in _OF_RUN), _WAS_INTERRUPTED, *_EXPECTED)
    return select(*columns).join(entries, entries.c.id == gate_runs.c.entry_id)


def _count_results(connection: Connection, run_ids: Sequence[str]) -> dict[str, StatusCounts]:
    counted = (
        func.sum(case((gate_results.c.status == status.value, 1), else_=0)).label(status.value.lower())
        for status in ResultStatus
    )
    query = select(gate_results.c.run_id, *counted).where(gate_results.c.run_id.in_(run_ids))
    rows = connection.execute(query.group_by(gate_results.c.run_id))
    return {row.run_id: StatusCounts(row.passed, row.failed, row.error, row.skipped) for row in rows}


def _read_run(row: Row[Any], counts: StatusCounts) -> ListedRun:
    return ListedRun(
        entry_id=row.entry_id,
        started_at=from_ms(row.started_at),
        finished_at=None if row.finished_at is None else from_ms(row.finished_at),
        final_status=row.final_status,
        commit=row.commit,
        branch=row.branch,
        dirty=row.dirty,
        manifest=row.manifest,
        host=row.host,
        counts=counts,
        selected_count=max(row.open_count + row.met_count + row.unmet_count + row.expired_count, counts.total),
        is_interrupted=row.final_status == INTERRUPTED or bool(row.interrupted),
        is_own=is_own_place(row.workspace_root),
    )


def _read_result(row: Row[Any]) -> ListedResult:
    fields = {name: getattr(row, name) for name in _OF_RESULT if name not in {"project", "created_at"}}
    fields |= {"name": row.project, "status": ResultStatus(row.status), "created_at": from_ms(row.created_at)}
    return ListedResult(**fields, message=row.error_message, quarantined=row.quarantined)
