"""Read the gate's results for learning, and mark those that were learned from. Works on an open connection."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, case, cast, func, select, update

from pytest_golden.learning.model import Occasion, RecordedResult
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.schema import gate_results, gate_runs, trajectories
from pytest_golden.storage.shared_documents import is_own_run
from pytest_golden.storage.statements import json_member_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row

# The steps of a longer trajectory are not read.
_MOST_CHARACTERS = 4 * 1024 * 1024
_OCCASION: tuple[Any, ...] = (
    gate_results.c.created_at,
    gate_results.c.run_id,
    gate_results.c.entry_id,
    gate_runs.c.commit,
    gate_runs.c.dirty,
)
_OWN = [name for name in RecordedResult._fields if name in gate_results.c and name != "result"]
_TEXT = cast(trajectories.c.body, Text)
_READABLE_TEXT = case((func.length(_TEXT) <= _MOST_CHARACTERS, _TEXT))


def _entry_number(entry_id: Any) -> Any:
    return select(gate_results.c.number).where(gate_results.c.entry_id == entry_id).scalar_subquery()


_FIRST_PASS = (
    select(*_OCCASION)
    .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id, isouter=True)
    .where(
        gate_results.c.project == bindparam("wanted_project"),
        gate_results.c.status == ResultStatus.PASSED.value,
        gate_results.c.number > _entry_number(bindparam("after_entry")),
        is_own_run(),
    )
    .order_by(gate_results.c.number)
    .limit(1)
)

# Enough to look past skipped results and the runs of another branch.
_MOST_EARLIER = 10
_EARLIER = (
    select(gate_results.c.status, gate_runs.c.branch)
    .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id, isouter=True)
    .where(
        gate_results.c.project == bindparam("of_project"),
        gate_results.c.number < bindparam("before_number", type_=BigInteger()),
        is_own_run(),
    )
    .order_by(gate_results.c.number.desc())
    .limit(_MOST_EARLIER)
)


def list_unlearned(connection: Connection, limit: int) -> tuple[RecordedResult, ...]:
    """Return results that were not learned from yet, oldest first."""
    query = (
        select(
            *(gate_results.c[name] for name in _OWN),
            *_OCCASION,
            cast(gate_results.c.result, Text).label("result"),
            gate_runs.c.branch,
            # Damaged facts must not stop the query.
            json_member_text(gate_runs.c.facts, "learning", may_be_damaged=True),
        )
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id, isouter=True)
        .where(gate_results.c.learned_at.is_(None))
        .order_by(gate_results.c.number)
        .limit(limit)
    )
    return tuple(map(_recorded, connection.execute(query)))


def count_unlearned(connection: Connection) -> int:
    """Return how many results of all runs were not learned from yet."""
    query = select(func.count()).select_from(gate_results).where(gate_results.c.learned_at.is_(None))
    return connection.scalar(query) or 0


def mark_learned(connection: Connection, numbers: Sequence[int], timestamp: int) -> None:
    """Mark results as learned from."""
    if numbers:
        connection.execute(update(gate_results).where(gate_results.c.number.in_(numbers)).values(learned_at=timestamp))


def read_trajectory_text(connection: Connection, trajectory_id: str) -> str | None:
    """Return a trajectory's JSON text; None when it does not exist, or has more than four million characters."""
    text: str | None = connection.scalar(select(_READABLE_TEXT).where(trajectories.c.id == trajectory_id))
    return text


def find_pass(connection: Connection, project: str, *, after: str, before: str | None = None) -> Occasion | None:
    """Return a project's first pass, in runs that people started, between the results of two entries."""
    wanted = {"wanted_project": project, "after_entry": after}
    query = _FIRST_PASS if before is None else _FIRST_PASS.where(gate_results.c.number < _entry_number(before))
    row = connection.execute(query, wanted).one_or_none()
    return None if row is None else _occasion(row)


def list_earlier(connection: Connection, project: str, number: int) -> tuple[tuple[str, str | None], ...]:
    """Return status and branch of a project's last ten results before this number, in runs that people started, newest first."""
    rows = connection.execute(_EARLIER, {"of_project": project, "before_number": number})
    return tuple((status, branch) for status, branch in rows)


def read_results(connection: Connection, entries: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the gate's results of these entries that exist and can be read."""
    query = select(gate_results.c.entry_id, cast(gate_results.c.result, Text).label("result"))
    rows = connection.execute(query.where(gate_results.c.entry_id.in_(entries)))
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        with suppress(ValueError):
            result = json.loads(row.result)
            if isinstance(result, dict):
                found[row.entry_id] = result
    return found


def _recorded(row: Any) -> RecordedResult:
    named = {name: getattr(row, name) for name in RecordedResult._fields if name != "occasion"}
    return RecordedResult(occasion=_occasion(row), **named)


def _occasion(row: Row[Any]) -> Occasion:
    return Occasion(row.created_at, row.run_id, row.entry_id, row.commit, row.dirty)
