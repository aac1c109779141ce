"""How SQLite finds what is looked for: by an index that holds it in its order, so that a look costs the same in a large journal."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.journal.review import FILTERS, JournalPages
from pytest_golden.storage.paging import Listing
from pytest_golden.storage.schema import VERSION_TABLE
from pytest_golden.storage.store import Store
from tests.journal.conftest import BEGIN, Clock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.journal.service import Journal

SORTS = "USE TEMP B-TREE"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "golden.db") as store:
        yield store


@contextmanager
def heard(store: Store) -> Iterator[list[str]]:
    """Return what the store says to SQLite inside the with-block."""
    said: list[str] = []
    drivers: list[sqlite3.Connection] = []
    # The writer keeps the connection that it takes.
    for begin in (store.write, store.read):
        with begin() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            drivers.append(driver)
            driver.set_trace_callback(said.append)
    yield said
    for driver in drivers:
        driver.set_trace_callback(None)


def find_plans(store: Store, look: Callable[[], object]) -> list[str]:
    with heard(store) as said:
        look()
    looks = [statement for statement in said if statement.lstrip().startswith("SELECT")]
    # Each transaction asks for it, and its table has one row.
    asked = [statement for statement in looks if VERSION_TABLE not in statement]
    assert asked
    with store.read() as connection:
        return [
            str(row[-1]) for statement in asked for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")
        ]


@pytest.mark.parametrize(
    ("word", "kind", "agent"),
    [(word, kind, agent) for word, kind, agent in itertools.product(FILTERS, (None, "deploy"), (None, "builder"))],
)
def test_a_review_goes_by_all_that_is_asked_for(
    store: Store, journal: Journal, word: str, kind: str | None, agent: str | None
) -> None:
    plans = find_plans(store, lambda: journal.review_journal(word, kind, agent_id=agent))
    chosen = [plan for plan in plans if "entries" in plan]
    wanted = [name for name, value in (("agent_id", agent), ("intent_type", kind)) if value]
    wanted += ["assessment"] if word not in {"all", "success"} else []
    assert chosen
    assert not [plan for plan in chosen if SORTS in plan]
    assert all(f"{name}=?" in plan for plan in chosen for name in wanted), chosen


@pytest.mark.parametrize("agent", [None, "builder"])
def test_other_looks_read_a_range(store: Store, journal: Journal, clock: Clock, agent: str | None) -> None:
    journal.log_intent("load", agent_id="builder")
    since = clock.now - timedelta(days=90, hours=3)
    summed = find_plans(store, lambda: journal.summary(agent, since))
    assert "SEARCH entry_tally USING PRIMARY KEY (agent_id=? AND day>?)" in summed
    assert [plan for plan in summed if "ix_entries_created_at (created_at>? AND created_at<?)" in plan]
    asked = find_plans(store, lambda: journal.open_expectations(agent))
    assert all("ix_expectations_open" in plan for plan in asked if SORTS not in plan)


def test_a_hint_is_looked_up_for_its_agent(store: Store, journal: Journal) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    journal.log_outcome(entry.id, "success", expectations=[{"description": "d", "match_hint": {"pr": 1}}])
    plans = find_plans(store, lambda: journal.add_signal("ci", "positive", "x", data={"pr": 1}, agent_id="builder"))
    assert [plan for plan in plans if "ix_expectations_open_agent_anchor (hint_anchor=? AND agent_id=?)" in plan]
    assert [plan for plan in plans if "ix_expectations_agent_anchor (hint_anchor=? AND agent_id=?)" in plan]
    assert journal.get(entry.id).created_at == BEGIN


def test_what_is_expected_is_held_against_no_orphan_from_before_its_entry(store: Store, journal: Journal) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    asked = [{"description": "d", "match_hint": {"pr": 1}}]
    plans = find_plans(store, lambda: journal.log_outcome(entry.id, "success", expectations=asked))
    assert "SEARCH signals USING INDEX ix_signals_orphans (routed_by=? AND created_at>?)" in plans
    assert not [plan for plan in plans if SORTS in plan]


@pytest.mark.parametrize("rule", [None, "orphan", "time_window"])
@pytest.mark.parametrize("agent", [None, "builder"])
def test_a_page_of_signals_goes_by_an_index_to_its_place(store: Store, rule: str | None, agent: str | None) -> None:
    pages = JournalPages(store)
    cursor = Listing("signals", rule, agent, kinds=(int,)).write_cursor((7,))
    plans = find_plans(store, lambda: pages.list_signals(rule, agent, cursor=cursor))
    wanted = [f"{name}=?" for name, value in (("agent_id", agent), ("routed_by", rule)) if value]
    looked = [plan for plan in plans if "signals" in plan]
    assert looked
    assert not [plan for plan in looked if plan.startswith("SCAN")]
    found = [
        plan for plan in looked if all(one in plan for one in wanted) and ("number<?" in plan or "rowid<?" in plan)
    ]
    assert found, plans


@pytest.mark.parametrize("agent", [None, "builder"])
def test_a_page_of_entries_goes_to_its_place(store: Store, agent: str | None) -> None:
    pages = JournalPages(store)
    cursor = Listing("entries", agent, "failure", "deploy", None, kinds=(int,)).write_cursor((7,))
    plans = find_plans(store, lambda: pages.list_entries(agent, "failure", "deploy", cursor=cursor))
    assert [plan for plan in plans if "entries" in plan and "assessment=?" in plan and "number<?" in plan], plans
