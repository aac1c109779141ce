"""The last gate run of a store out of its rows. Works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from pytest_golden.gate.sharding.model import MANIFEST_DIGEST, SHARD
from pytest_golden.gate.sharding.union import LastGate
from pytest_golden.storage.own_runs import is_own_run
from pytest_golden.storage.schema import expectations, gate_results, gate_runs

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row


def read_last_gate(connection: Connection, where: str) -> LastGate | None:
    """Read a store's last gate run that was somebody's own; None where there is none."""
    row = connection.execute(
        select(gate_runs)
        .where(is_own_run())
        .order_by(gate_runs.c.started_at.desc(), gate_runs.c.number.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    facts = row.facts if isinstance(row.facts, dict) else {}
    found = select(gate_results.c.project, gate_results.c.status).where(gate_results.c.run_id == row.entry_id)
    statuses = {row.project: row.status for row in connection.execute(found)}
    selected = _read_selected(connection, row)
    left_out = [name for name in facts.get("deselected") or () if isinstance(name, str)]
    declared = tuple(dict.fromkeys([*selected, *left_out, *statuses]))
    return LastGate(where, row.commit, _text(facts.get(MANIFEST_DIGEST)), _text(facts.get(SHARD)), declared, statuses)


def _read_selected(connection: Connection, row: Row[Any]) -> list[str]:
    hints = connection.scalars(
        select(expectations.c.match_hint).where(expectations.c.entry_id == row.entry_id).order_by(expectations.c.number)
    )
    names = ((hint or {}).get("project") for hint in hints)
    return [name for name in names if isinstance(name, str)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
