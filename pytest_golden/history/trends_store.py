"""The durations of recent passes, read from the store: one query for all projects, and one for the runs they were in."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Text, literal, select, union_all

from pytest_golden.history.run_environment import describe_environment
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import MOST_PASSES, describe_durations
from pytest_golden.storage.schema import gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_run
from pytest_golden.storage.statements import json_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Row

    from pytest_golden.regression.slowdown import DurationTrend

_T = TypeVar("_T")
#: Members of a run's facts: where it ran, and whether it accepted what it saw.
ENVIRONMENT, ACCEPTS = "environment", "accepts"
# In a shared store, passes in other environments stand between.
_MOST_LOOKED_AT = 60
# SQLite takes no more than 500 parts of one union.
_MOST_ASKED = 250


def read_trends(
    connection: Connection, venvs: Mapping[str, str | None], facts: Mapping[str, Any]
) -> dict[str, DurationTrend]:
    """Return the trend of each project's last passes in the environment of `facts`; projects without any are left out.

    Passes before one that a person accepted do not count, and neither do those in worktrees made for another commit.

    Args:
        connection: an open one.
        venvs: the projects' names, each with its `venv:`.
        facts: what `describe_run_environment` returned for this run or an earlier one.
    """
    rows = _list_passes(connection, venvs)
    runs = _read_facts(connection, {row.run_id for row in rows})
    accepted = _find_accepted(connection, [row for row in rows if runs[row.run_id].get(ACCEPTS)])
    found: dict[str, list[float]] = {name: [] for name in venvs}
    ended: set[str] = set()
    wanted = {name: describe_environment(facts, venv) for name, venv in venvs.items()}
    for row in rows:
        name = row.project
        there = runs[row.run_id].get(ENVIRONMENT)
        if name in ended or not there or describe_environment(there, venvs[name]) != wanted[name]:
            continue
        found[name].append(row.execution_time_seconds)
        if row.number in accepted or len(found[name]) == MOST_PASSES:
            ended.add(name)
    trends = {name: describe_durations(seconds) for name, seconds in found.items()}
    return {name: trend for name, trend in trends.items() if trend is not None}


def read_medians(connection: Connection, projects: Collection[str]) -> dict[str, float]:
    """Return the median seconds of each project's last passes, wherever they ran; one without any is left out."""
    passes: dict[str, list[float]] = {}
    for row in _list_passes(connection, projects):
        seconds = passes.setdefault(row.project, [])
        if len(seconds) < MOST_PASSES:
            seconds.append(row.execution_time_seconds)
    return {name: median(seconds) for name, seconds in passes.items()}


def find_last_environment(connection: Connection, project: str) -> dict[str, Any] | None:
    """Return what is known of where a project passed last; None without a pass, or of a run that did not keep it."""
    facts = connection.scalar(
        select(gate_runs.c.facts)
        .join(gate_results, gate_results.c.run_id == gate_runs.c.entry_id)
        .where(gate_results.c.project == project, gate_results.c.status == ResultStatus.PASSED.value, is_own_run())
        .order_by(gate_results.c.number.desc())
        .limit(1)
    )
    found = _as_mapping(facts).get(ENVIRONMENT)
    return found if isinstance(found, dict) and found else None


def _list_passes(connection: Connection, names: Collection[str]) -> list[Row[Any]]:
    """Return the last passes of each project, newest first."""
    return [row for some in _cut(sorted(names)) for row in _ask(connection, some)]


def _ask(connection: Connection, names: Sequence[str]) -> Iterator[Row[Any]]:
    asked = union_all(*(select(literal(name, Text).label("name")) for name in names)).subquery("asked")
    earlier = gate_results.alias("earlier")
    newest = (
        select(earlier.c.number)
        .join(gate_runs, gate_runs.c.entry_id == earlier.c.run_id)
        .where(earlier.c.project == asked.c.name, earlier.c.status == ResultStatus.PASSED.value, is_own_run())
        .order_by(earlier.c.number.desc())
        .limit(_MOST_LOOKED_AT)
        .correlate(asked)
    )
    columns = (gate_results.c[name] for name in ("number", "project", "run_id", "execution_time_seconds"))
    query = select(*columns).select_from(asked.join(gate_results, gate_results.c.number.in_(newest)))
    yield from connection.execute(query.order_by(gate_results.c.number.desc()))


def _read_facts(connection: Connection, runs: Collection[str]) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {run: {} for run in runs}
    for some in _cut(sorted(runs)):
        rows = connection.execute(select(gate_runs.c.entry_id, gate_runs.c.facts).where(gate_runs.c.entry_id.in_(some)))
        known |= {row.entry_id: _as_mapping(row.facts) for row in rows}
    return known


def _find_accepted(connection: Connection, rows: Sequence[Row[Any]]) -> frozenset[int]:
    """Find the results that were accepted, among those of runs that accept."""
    accepted = json_member(gate_results.c.result, "accepted")
    found: set[int] = set()
    for some in _cut([row.number for row in rows]):
        answers = connection.execute(select(gate_results.c.number, accepted).where(gate_results.c.number.in_(some)))
        found |= {row.number for row in answers if row.accepted is not None}
    return frozenset(found)


def _cut(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + _MOST_ASKED] for start in range(0, len(items), _MOST_ASKED))


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
