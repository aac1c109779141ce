"""Points in a project's history as they are recorded. Works on an open connection and decides nothing.

The values are imported only if there is a row: on a green gate there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from pytest_golden.history.checkout import Checkout
from pytest_golden.history.inputs import RunInputs
from pytest_golden.journal.model import SignalType
from pytest_golden.learning.gate_learning import find_reason
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.schema import entries, gate_results, gate_runs, lesson_recalls, signals
from pytest_golden.storage.shared_documents import INPUTS_DIGEST, read_document
from pytest_golden.storage.statements import json_member, json_member_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Select

    from pytest_golden.gate.fixes import Correction, Point, State

_OF_RESULT = ("number", "entry_id", "run_id", "project", "is_flaky", "declaration_digest", "created_at")
_OF_RUN = ("commit", "branch", "dirty", "workspace_root", "environment_digest")
_LEARNING = json_member_text(gate_runs.c.facts, "learning", may_be_damaged=True)
_TAUGHT = frozenset({None, "on"})


def find_point(connection: Connection, entry_id: str) -> Point | None:
    """Return the result of this entry; None if there is none, or nothing may be learned from it."""
    rows = connection.execute(_points().where(gate_results.c.entry_id == entry_id)).all()
    return next((_point(row) for row in rows if row.learning in _TAUGHT), None)


def list_points_before(connection: Connection, point: Point, limit: int) -> tuple[Point, ...]:
    """Return the project's results before one, newest first, without those that nothing may be learned from."""
    query = _points().where(gate_results.c.project == point.project, gate_results.c.number < point.number)
    rows = connection.execute(query.order_by(gate_results.c.number.desc()).limit(limit))
    return tuple(_point(row) for row in rows if row.learning in _TAUGHT)


def list_points_after(connection: Connection, point: Point, limit: int) -> tuple[Point, ...]:
    """Return the project's results after one, oldest first, without those that nothing may be learned from."""
    query = _points().where(gate_results.c.project == point.project, gate_results.c.number > point.number)
    rows = connection.execute(query.order_by(gate_results.c.number).limit(limit))
    return tuple(_point(row) for row in rows if row.learning in _TAUGHT)


def read_state(connection: Connection, point: Point) -> State:
    """Return what a result ran on. The checkout's root is not kept."""
    from pytest_golden.gate.fixes import State
    from pytest_golden.history.past_store import OF_INPUTS, read_inputs

    files = connection.scalar(select(gate_runs.c.dirty_files).where(gate_runs.c.entry_id == point.run_id))
    of_inputs = connection.execute(select(*OF_INPUTS).where(gate_results.c.entry_id == point.entry_id)).one_or_none()
    return State(
        Checkout(point.commit, point.branch, point.dirty, files if isinstance(files, dict) else None),
        read_document(connection, point.declaration_digest) or {},
        read_document(connection, point.environment_digest) or {},
        RunInputs() if of_inputs is None else read_inputs(connection, of_inputs),
    )


def list_unsettled_projects(connection: Connection) -> tuple[str, ...]:
    """Return the projects with lessons shown for their failures and no outcome yet, the last shown first."""
    of_project = lesson_recalls.c.project
    query = select(of_project).where(lesson_recalls.c.settled_at.is_(None), of_project.is_not(None))
    return tuple(connection.scalars(query.group_by(of_project).order_by(func.max(lesson_recalls.c.number).desc())))


def list_corrections(connection: Connection, after: int, limit: int) -> tuple[Correction, ...]:
    """Return the corrections of entries whose signals were recorded after one, in the order of recording."""
    of_signal = (signals.c.number, signals.c.id, signals.c.summary, signals.c.source, signals.c.created_at)
    query = (
        select(*of_signal, signals.c.entry_id, entries.c.agent_id, entries.c.intent)
        .join(entries, entries.c.id == signals.c.entry_id)
        .where(signals.c.number > after, signals.c.signal_type == SignalType.CORRECTION.value)
        .order_by(signals.c.number)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    if not rows:
        return ()
    from pytest_golden.gate.fixes import Correction

    return tuple(Correction(*row) for row in rows)


def find_last_signal(connection: Connection) -> int:
    """Return the number of the newest signal; 0 if there is none."""
    return connection.scalar(select(signals.c.number).order_by(signals.c.number.desc()).limit(1)) or 0


def _points() -> Select[Any]:
    columns = [*(gate_results.c[name] for name in _OF_RESULT), *(gate_runs.c[name] for name in _OF_RUN)]
    reasons = json_member(gate_results.c.result, "reasons")
    message = json_member_text(gate_results.c.result, "error_message")
    inputs = json_member_text(gate_results.c.result, INPUTS_DIGEST)
    accepted = json_member(gate_results.c.result, "accepted")
    return select(*columns, gate_results.c.status, reasons, message, inputs, accepted, _LEARNING).join(
        gate_runs, gate_runs.c.entry_id == gate_results.c.run_id
    )


def _point(row: Row[Any]) -> Point:
    from pytest_golden.gate.fixes import Point

    reasons = [one for one in row.reasons or () if isinstance(one, dict)]
    fields = {name: getattr(row, name) for name in (*_OF_RESULT, *_OF_RUN)}
    return Point(
        **fields,
        status=ResultStatus(row.status),
        message=find_reason(row.status, {"reasons": reasons, "error_message": row.error_message}),
        reason_kind=reasons[0].get("kind") if reasons else None,
        inputs_digest=row.inputs_digest,
        is_accepted=row.accepted is not None,
    )
