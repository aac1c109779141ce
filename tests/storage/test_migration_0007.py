"""A store of the sixth version: its runs stay, and a running one has a row that goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import command
from sqlalchemy import create_engine, delete, insert, inspect, select

from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import entries, gate_live, gate_runs
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

ENTRY: dict[str, Any] = {
    "id": "entry_1",
    "agent_id": "golden",
    "intent": "check",
    "actions": [],
    "immediate_result": "unknown",
    "assessment": "open",
    "created_at": 1,
    "updated_at": 1,
}
RUN: dict[str, Any] = {
    "entry_id": "entry_1",
    "workspace_root": "/work",
    "manifest": "golden_projects.yaml",
    "command_line": [],
    "environment_digest": "x",
    "host": "here",
    "pid": 1,
    "started_at": 1,
}
ROW: dict[str, Any] = {"run_id": "entry_1", "beat_at": 1, "pid": 1, "machine": "here", "total_count": 1, "running": []}


def begin(connection: Connection) -> None:
    connection.execute(insert(entries), ENTRY)
    connection.execute(insert(gate_runs), RUN)


def test_runs_stay_and_a_running_one_has_a_place_for_its_row(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0006")
        begin(connection)
        assert not inspect(connection).has_table("gate_live")
    engine.dispose()
    with Store.open(path) as store, store.write() as connection:
        assert connection.scalars(select(gate_runs.c.entry_id)).all() == ["entry_1"]
        assert connection.execute(select(gate_live)).all() == []
    assert check_store(path).tables["gate_live"] == 0


def test_row_goes_with_its_run(store: Store) -> None:
    with store.write() as connection:
        begin(connection)
        connection.execute(insert(gate_live), ROW)
        connection.execute(delete(gate_runs))
        assert connection.execute(select(gate_live)).all() == []
