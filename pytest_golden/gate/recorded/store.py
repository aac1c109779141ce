"""One recorded gate run out of its rows: facts, floor and results with their steps. Works on an open connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from pytest_golden.clock import iso_utc
from pytest_golden.gate.recording import INTERRUPTED
from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult
from pytest_golden.regression.weakening import Weakening, WeakeningKind
from pytest_golden.storage.documents import read_document
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_run
from pytest_golden.storage.schema import expectations, gate_results, gate_runs
from pytest_golden.trajectory.store import find_trajectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row

_LEAST_OF_ID = 10
_SURROUNDINGS = ("python", "implementation", "platform", "golden")


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A gate run: `gate` are the facts of its report. Without `finished_at` it still runs, or was killed."""

    check: RegressionCheckResult
    gate: Mapping[str, Any]
    weakened_floor: tuple[Weakening, ...]


def read_run(connection: Connection, entry: str | None = None) -> RecordedRun | None:
    """Read the run with this entry, or with a result of this entry; people's own last run where none is named.

    The beginning of an entry's id is enough where it names one run. None: there is no such run.
    """
    row = _find_run(connection, entry)
    if row is None:
        return None
    facts = row.facts or {}
    return RecordedRun(
        RegressionCheckResult(_read_results(connection, row.entry_id)),
        _describe_gate(connection, row, facts),
        tuple(map(_read_weakening, facts.get("weakened_floor") or ())),
    )


def _find_run(connection: Connection, entry: str | None) -> Row[Any] | None:
    query = select(gate_runs)
    if entry is None:
        own_last = query.where(is_own_run()).order_by(gate_runs.c.number.desc()).limit(1)
        return connection.execute(own_last).one_or_none()
    if not (entry.isascii() and entry.isprintable()):
        # No id is like that, and a database may not even take it for a text.
        return None
    own = select(gate_results.c.run_id).where(gate_results.c.entry_id == entry)
    found = connection.execute(query.where(or_(gate_runs.c.entry_id == entry, gate_runs.c.entry_id.in_(own)))).first()
    if found is not None or len(entry) < _LEAST_OF_ID:
        return found
    begins = gate_runs.c.entry_id.startswith(entry, autoescape=True)
    rows = connection.execute(query.where(begins).limit(2)).all()
    return rows[0] if len(rows) == 1 else None


def _describe_gate(connection: Connection, row: Row[Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    surroundings = read_document(connection, row.environment_digest) or {}
    environment = {name: surroundings[name] for name in _SURROUNDINGS if surroundings.get(name)}
    return {
        "entry_id": row.entry_id,
        "commit": row.commit,
        "branch": row.branch,
        "dirty": row.dirty,
        "manifest": row.manifest,
        "mode": facts.get("mode", ""),
        "require": facts.get("require") is True,
        "command_line": row.command_line,
        "environment": {**environment, "host": row.host},
        "started_at": iso_utc(from_ms(row.started_at)),
        "finished_at": None if row.finished_at is None else iso_utc(from_ms(row.finished_at)),
        "interrupted": row.final_status == INTERRUPTED or facts.get("interrupted") is True,
        "deselected": facts.get("deselected") or [],
        "not_run": facts.get("not_run") or [],
        "floor_base": facts.get("floor_base"),
        "floor_accepted": facts.get("floor_accepted") is True,
    }


def _read_results(connection: Connection, run_id: str) -> tuple[GoldenProjectResult, ...]:
    """Give the results in the order of their expectations, which is that of their declaration."""
    order = _read_order(connection, run_id)
    rows = connection.execute(
        select(gate_results.c.project, gate_results.c.result, gate_results.c.trajectory_id)
        .where(gate_results.c.run_id == run_id)
        .order_by(gate_results.c.number)
    ).all()
    rows = sorted(rows, key=lambda row: order.get(row.project, len(order)))
    return tuple(_read_result(connection, row.result, row.trajectory_id) for row in rows)


def _read_order(connection: Connection, run_id: str) -> dict[str, int]:
    hints = connection.scalars(
        select(expectations.c.match_hint).where(expectations.c.entry_id == run_id).order_by(expectations.c.number)
    )
    return {str((hint or {}).get("project")): place for place, hint in enumerate(hints)}


def _read_result(connection: Connection, plain: Mapping[str, Any], trajectory_id: str | None) -> GoldenProjectResult:
    trajectory = None if trajectory_id is None else find_trajectory(connection, trajectory_id)
    if trajectory is None:
        return GoldenProjectResult.from_dict(plain)
    about = trajectory.to_dict()
    steps = about.pop("steps")
    return GoldenProjectResult.from_dict({**plain, "steps": steps, "trajectory": about})


def _read_weakening(plain: Mapping[str, Any]) -> Weakening:
    return Weakening(
        plain.get("project"),
        WeakeningKind(plain["kind"]),
        str(plain.get("message", "")),
        plain.get("base"),
        plain.get("head"),
    )
