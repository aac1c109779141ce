"""The row of a gate that runs. It works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.schema import gate_live, gate_runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.gate.live.model import Beat


def write_beat(connection: Connection, beat: Beat) -> None:
    """Keep what a run does now, in the place of what it did before; nothing of one that has ended or is not there."""
    values = {
        "beat_at": to_ms(beat.moment),
        "pid": beat.pid,
        "machine": beat.machine,
        "total_count": beat.total_count,
        "running": [{"project": one.name, "since": to_ms(one.since), "step": one.step} for one in beat.running],
    }
    kept = connection.execute(update(gate_live).where(gate_live.c.run_id == beat.run_id).values(values))
    if kept.rowcount:
        return
    is_open = select(gate_runs.c.number).where(gate_runs.c.entry_id == beat.run_id, gate_runs.c.finished_at.is_(None))
    if connection.execute(is_open).first() is not None:
        connection.execute(insert(gate_live).values(run_id=beat.run_id, **values))
