"""A store of the first version: what was expected in it is found by signals afterwards, and its entries are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import command
from sqlalchemy import create_engine, insert, text

from pytest_golden.journal.service import Journal
from pytest_golden.storage.schema import entries, entry_tally, expectations
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config

if TYPE_CHECKING:
    from pathlib import Path

ENTRY: dict[str, Any] = {
    "actions": [],
    "immediate_result": "success",
    "assessment": "open",
    "intent": "x",
    "updated_at": 1,
}


def fill(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0001")
        for name, kind, moment in (("e1", "deploy", 1), ("e2", None, 90_000_000), ("run", "regression_check", 1)):
            told = {**ENTRY, "id": name, "agent_id": "a", "session_key": "s", "intent_type": kind, "created_at": moment}
            connection.execute(insert(entries), {**told, "open_count": 1})
        for number, (entry, hint, expiry) in enumerate(
            [("e1", {"source": "ci", "pr": 42}, 10**14), ("e2", None, None), ("run", {"source": "golden"}, None)]
        ):
            told = {
                "id": f"x{number}",
                "entry_id": entry,
                "description": "d",
                "polarity": "positive",
                "critical": False,
            }
            hinted = {"status": "open", "match_hint": hint, "expires_at": expiry, "created_at": 1}
            connection.execute(insert(expectations), {**told, **hinted})
    engine.dispose()


def test_signals_find_what_was_expected_before(path: Path) -> None:
    fill(path)
    with Journal.open(path) as journal:
        assert journal.add_signal("ci", "positive", "green", data={"pr": "42"}).entry_id == "e1"
        told = journal.add_signal("chat", "positive", "fine", agent_id="a", session_key="s")
        assert (told.entry_id, told.routed_by) == ("e2", "session_key")
        assert [one.id for one in journal.open_expectations("a")] == ["x2"]
        summary = journal.summary("a")
        assert (summary.n, summary.open, dict(summary.by_intent_type)["deploy"].n) == (2, 1, 1)


def test_entries_are_counted_by_triggers_from_then_on(path: Path) -> None:
    fill(path)
    with Store.open(path) as store:
        with store.write() as connection:
            connection.execute(text("UPDATE entries SET assessment = 'failure' WHERE id = 'e1'"))
            connection.execute(text("DELETE FROM expectations WHERE entry_id = 'e2'"))
            connection.execute(text("DELETE FROM entries WHERE id = 'e2'"))
        with store.read() as connection:
            rows = connection.execute(entry_tally.select().where(entry_tally.c.agent_id == "a")).all()
    assert {(row.day, row.intent_type, row.assessment): row.amount for row in rows} == {
        (0, "deploy", "open"): 0,
        (0, "deploy", "failure"): 1,
        (0, "regression_check", "open"): 1,
        (1, "", "open"): 0,
    }
