"""A store of the third version: its entries are summed up over all agents too, and counted from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import command
from sqlalchemy import create_engine, delete, insert, update

from pytest_golden.storage.schema import ALL_AGENTS, entries, entry_tally
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config

if TYPE_CHECKING:
    from pathlib import Path

ENTRY: dict[str, Any] = {"actions": [], "immediate_result": "success", "intent": "x", "updated_at": 1}


def add(name: str, agent: str, kind: str | None, assessment: str) -> dict[str, Any]:
    return {**ENTRY, "id": name, "agent_id": agent, "intent_type": kind, "assessment": assessment, "created_at": 1}


def read_sums(store: Store, agent: str) -> dict[tuple[str, str], int]:
    with store.read() as connection:
        rows = connection.execute(entry_tally.select().where(entry_tally.c.agent_id == agent)).all()
    return {(row.intent_type, row.assessment): row.amount for row in rows if row.amount}


def test_entries_are_summed_up_of_each_agent_and_of_all(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0003")
        connection.execute(insert(entries), [add("e1", "a", "deploy", "open"), add("e2", "b", "deploy", "open")])
    engine.dispose()
    with Store.open(path) as store:
        assert read_sums(store, ALL_AGENTS) == {("deploy", "open"): 2}
        with store.write() as connection:
            connection.execute(insert(entries), [add("e3", "b", None, "success")])
            connection.execute(update(entries).where(entries.c.id == "e1").values(assessment="failure"))
            connection.execute(delete(entries).where(entries.c.id == "e2"))
        assert read_sums(store, "a") == {("deploy", "failure"): 1}
        assert read_sums(store, "b") == {("", "success"): 1}
        assert read_sums(store, ALL_AGENTS) == {("deploy", "failure"): 1, ("", "success"): 1}
