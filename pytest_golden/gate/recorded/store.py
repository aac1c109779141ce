"""One recorded gate run out of its rows: facts, floor and results with their steps. Works on an open connection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from pytest_golden.clock import iso_utc
from pytest_golden.gate.lessons.model import DAMAGE
from pytest_golden.gate.recording import INTERRUPTED
from pytest_golden.gate.sharding.model import SHARD
from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult
from pytest_golden.regression.weakening import Weakening, WeakeningKind
from pytest_golden.storage.documents import read_document
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_run
from pytest_golden.storage.schema import expectations, gate_results, gate_runs
from pytest_golden.trajectory.store import find_dict_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row

_LEAST_OF_ID = 10
_SURROUNDINGS = ("python", "implementation", "platform", "golden")


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A gate run: `gate` are the facts of its report. Without `finished_at` it still runs, or was killed.

    `entry_ids` are those of the results, in their order.
    """

    check: RegressionCheckResult
    gate: Mapping[str, Any]
    weakened_floor: tuple[Weakening, ...]
    entry_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The same without its results."""

    gate: Mapping[str, Any]
    weakened_floor: tuple[Weakening, ...]


def read_run(connection: Connection, entry: str | None = None, *, has_steps: bool = True) -> RecordedRun | None:
    """Read the run with this entry, or with a result of this entry; people's own last run where none is named.

    The beginning of an entry's id is enough where it names one run. None: there is no such run. `has_steps` tells whether
    the results have their steps and trajectories, which are long.
    """
    row = _find_run(connection, entry)
    if row is None:
        return None
    found = _read_results(connection, row.entry_id, has_steps=has_steps)
    facts = _read_facts(connection, row)
    return RecordedRun(RegressionCheckResult(tuple(found.values())), facts.gate, facts.weakened_floor, tuple(found))


def read_run_facts(connection: Connection, run_id: str) -> RunFacts | None:
    """Read what is known of the run with exactly this entry, without its results; None: there is no such run."""
    row = connection.execute(select(gate_runs).where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_facts(connection, row)


def read_result(connection: Connection, row: Row[Any], *, has_steps: bool = True) -> GoldenProjectResult:
    """Make a result of its row and its trajectory, as far as that is there and can be read."""
    own = row.result if isinstance(row.result, dict) else {}
    result = GoldenProjectResult.from_dict({"name": row.project, "path": "", "status": row.status, **own})
    if not has_steps or row.trajectory_id is None:
        return result
    try:
        about = find_dict_form(connection, row.trajectory_id)
    except DAMAGE as error:
        return replace(result, warnings=(*result.warnings, f"its steps cannot be read: {error}"))
    if about is None:
        return result
    return replace(result, steps=tuple(about.pop("steps")), trajectory=about)


def _read_facts(connection: Connection, row: Row[Any]) -> RunFacts:
    facts = row.facts or {}
    weakened = tuple(map(_read_weakening, facts.get("weakened_floor") or ()))
    return RunFacts(_describe_gate(connection, row, facts), weakened)


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
        "shard": facts.get(SHARD),
        "deselected": facts.get("deselected") or [],
        "not_run": facts.get("not_run") or [],
        "floor_base": facts.get("floor_base"),
        "floor_accepted": facts.get("floor_accepted") is True,
    }


def _read_results(connection: Connection, run_id: str, *, has_steps: bool) -> dict[str, GoldenProjectResult]:
    """Give the results by their entries, in the order of their expectations, which is that of their declaration."""
    order = _read_order(connection, run_id)
    columns = (gate_results.c[name] for name in ("entry_id", "project", "status", "result", "trajectory_id"))
    query = select(*columns).where(gate_results.c.run_id == run_id).order_by(gate_results.c.number)
    rows = sorted(connection.execute(query).all(), key=lambda row: order.get(row.project, len(order)))
    return {row.entry_id: read_result(connection, row, has_steps=has_steps) for row in rows}


def _read_order(connection: Connection, run_id: str) -> dict[str, int]:
    hints = connection.scalars(
        select(expectations.c.match_hint).where(expectations.c.entry_id == run_id).order_by(expectations.c.number)
    )
    return {str((hint or {}).get("project")): place for place, hint in enumerate(hints)}


def _read_weakening(plain: Mapping[str, Any]) -> Weakening:
    return Weakening(
        plain.get("project"),
        WeakeningKind(plain["kind"]),
        str(plain.get("message", "")),
        plain.get("base"),
        plain.get("head"),
    )
