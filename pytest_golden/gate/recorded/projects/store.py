"""The newest results of many projects, read at once. Works on an open connection and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import Text, literal, select, union_all

from pytest_golden.gate.past import PastResult
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.json_member import json_member, json_member_text
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_run
from pytest_golden.storage.schema import gate_results, gate_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import Connection, Row

_T = TypeVar("_T")
# SQLite takes no more than 500 parts of one union.
_MOST_ASKED = 250
_EARLIER = gate_results.alias("earlier")
_REASONS = json_member(gate_results.c.result, "reasons")
# Not to be read, only whether it is there.
_ACCEPTED = json_member_text(gate_results.c.result, "accepted")
_OF_RESULT = (
    *("number", "entry_id", "run_id", "project", "status", "exit_code", "execution_time_seconds", "attempts"),
    *("is_flaky", "is_regression", "pass_streak", "created_at", "trajectory_id"),
)
_RECENT = (*(gate_results.c[name] for name in _OF_RESULT), gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty)


def list_recent_results(
    connection: Connection, projects: Collection[str], limit: int
) -> dict[str, tuple[PastResult, ...]]:
    """Give the last results of many projects in people's own runs, newest first, without messages, by the projects' names.

    Which of them a person accepted is told only where results on one commit differ.
    """
    found: dict[str, list[Row[Any]]] = {}
    for names in _cut(sorted(projects), _MOST_ASKED):
        asked = union_all(*(select(literal(name, Text).label("name")) for name in names)).subquery("asked")
        newest = (
            select(_EARLIER.c.number)
            .join(gate_runs, gate_runs.c.entry_id == _EARLIER.c.run_id)
            .where(_EARLIER.c.project == asked.c.name, is_own_run())
            .order_by(_EARLIER.c.number.desc())
            .limit(limit)
            .correlate(asked)
        )
        query = (
            select(*_RECENT)
            .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
            .join(asked, gate_results.c.number.in_(newest))
        )
        for row in connection.execute(query.order_by(gate_results.c.number.desc())).all():
            found.setdefault(row.project, []).append(row)
    # To look into a result costs more than all the rest.
    mixed = [row.number for rows in found.values() if _differ_on_a_commit(rows) for row in rows]
    failed = [row.number for rows in found.values() for row in rows if row.status == ResultStatus.ERROR.value]
    marks = _Marks(_find_interrupted(connection, failed), _find_accepted(connection, mixed))
    return {name: tuple(_recent_result(row, marks) for row in rows) for name, rows in found.items()}


class _Marks(NamedTuple):
    """The numbers of results that did not run to their end, and of those that a person accepted."""

    interrupted: frozenset[int]
    accepted: frozenset[int]


def _differ_on_a_commit(rows: Sequence[Row[Any]]) -> bool:
    """Tell whether results on one commit differ: only there it counts what a person accepted in between."""
    known: dict[str, str] = {}
    clean = [(row.commit, row.status) for row in rows if row.commit is not None and row.dirty is False]
    return any(known.setdefault(commit, status) != status for commit, status in clean)


def _find_interrupted(connection: Connection, numbers: Sequence[int]) -> frozenset[int]:
    rows = _read_members(connection, numbers, _REASONS)
    return frozenset(number for number, reasons in rows if _was_interrupted(reasons))


def _find_accepted(connection: Connection, numbers: Sequence[int]) -> frozenset[int]:
    return frozenset(
        number for number, accepted in _read_members(connection, numbers, _ACCEPTED) if accepted is not None
    )


def _read_members(connection: Connection, numbers: Sequence[int], member: Any) -> Iterator[tuple[int, Any]]:
    for some in _cut(numbers, _MOST_ASKED):
        query = select(gate_results.c.number, member).where(gate_results.c.number.in_(some))
        yield from map(tuple, connection.execute(query).all())


def _recent_result(row: Sequence[Any], marks: _Marks) -> PastResult:
    # By their places, which are those of `_RECENT`: so many are made at once that each name that is looked up is felt.
    number, entry_id, run_id, project, status, exit_code, seconds, attempts, is_flaky, is_regression, *others = row
    pass_streak, created_at, trajectory_id, commit, branch, dirty = others
    return PastResult(
        entry_id,
        run_id,
        project,
        ResultStatus(status),
        exit_code,
        seconds,
        attempts,
        is_flaky,
        is_regression,
        pass_streak,
        commit,
        branch,
        dirty,
        from_ms(created_at),
        trajectory_id,
        None,
        number in marks.interrupted,
        number in marks.accepted,
    )


def _was_interrupted(reasons: Any) -> bool:
    return any(isinstance(reason, dict) and reason.get("kind") == ReasonKind.INTERRUPTED for reason in reasons or ())


def _cut(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    return (items[start : start + most] for start in range(0, len(items), most))
