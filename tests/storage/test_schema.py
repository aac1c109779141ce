from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from pytest_golden.storage.schema import entries, gate_live, gate_runs
from tests.storage.filled import ENTRY

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

RUN: dict[str, Any] = {
    "entry_id": ENTRY["id"],
    "workspace_root": "/work",
    "manifest": "golden_projects.yaml",
    "command_line": [],
    "environment_digest": "x",
    "host": "here",
    "pid": 1,
    "started_at": 1,
}
LIVE: dict[str, Any] = {
    "run_id": ENTRY["id"],
    "beat_at": 1,
    "pid": 1,
    "machine": "here",
    "total_count": 1,
    "running": [],
}


def test_live_row_goes_with_its_run(store: Store) -> None:
    with store.write() as connection:
        for table, row in ((entries, ENTRY), (gate_runs, RUN), (gate_live, LIVE)):
            connection.execute(insert(table), row)
        connection.execute(delete(gate_runs))
        assert connection.execute(select(gate_live)).all() == []
