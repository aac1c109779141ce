from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, update

from pytest_golden.storage.schema import ALL_AGENTS, entries, entry_tally
from tests.storage.filled import ENTRY

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

DAY_MS = 86_400_000


def make_entry(name: str, agent: str, kind: str | None, assessment: str, day: int = 0) -> dict[str, Any]:
    made = {
        "id": name,
        "agent_id": agent,
        "intent_type": kind,
        "assessment": assessment,
        "created_at": day * DAY_MS + 1,
    }
    return {**ENTRY, **made}


def read_sums(store: Store, agent: str) -> dict[tuple[int, str, str], int]:
    with store.read() as connection:
        rows = connection.execute(entry_tally.select().where(entry_tally.c.agent_id == agent)).all()
    return {(row.day, row.intent_type, row.assessment): row.amount for row in rows if row.amount}


def test_entries_are_counted_for_each_agent_and_for_all_with_each_write(store: Store) -> None:
    with store.write() as connection:
        first = make_entry("e1", "a", "deploy", "open"), make_entry("e2", "b", "deploy", "open")
        connection.execute(insert(entries), [*first, make_entry("e3", "b", None, "success", day=1)])
    assert read_sums(store, ALL_AGENTS) == {(0, "deploy", "open"): 2, (1, "", "success"): 1}
    with store.write() as connection:
        connection.execute(update(entries).where(entries.c.id == "e1").values(assessment="failure"))
        connection.execute(delete(entries).where(entries.c.id == "e2"))
    assert read_sums(store, "a") == {(0, "deploy", "failure"): 1}
    assert read_sums(store, "b") == {(1, "", "success"): 1}
    assert read_sums(store, ALL_AGENTS) == {(0, "deploy", "failure"): 1, (1, "", "success"): 1}
