from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import JournalError
from pytest_golden.journal.model import Assessment, RoutedBy
from pytest_golden.journal.review import JournalPages, SuccessRate, summarize
from tests.journal.conftest import BEGIN, Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.journal.service import Journal
    from pytest_golden.storage.paging import Page
    from pytest_golden.storage.store import Store


@pytest.fixture
def pages(store: Store, clock: Clock) -> JournalPages:
    return JournalPages(store, clock)


def read_all(ask: Callable[..., Page[Any]], limit: int = 2) -> list[dict[str, Any]]:
    """Read a list to its end, page by page."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = ask(limit=limit, cursor=cursor)
        assert 0 < len(page.items) <= limit or not found
        found += page.to_dict()["items"]
        cursor = page.next_cursor
        if cursor is None:
            return found


def log(journal: Journal, count: int, agent: str = "builder", *, kind: str | None = None) -> list[str]:
    return [journal.log_intent(f"load {number}", kind, agent_id=agent).id for number in range(count)]


def test_entries_come_newest_first_each_once(journal: Journal, pages: JournalPages) -> None:
    mine, others = log(journal, 5), log(journal, 2, "other", kind="deploy")
    assert [one["id"] for one in read_all(pages.list_entries)] == [*reversed(others), *reversed(mine)]
    assert [one["id"] for one in read_all(lambda **more: pages.list_entries("builder", **more))] == mine[::-1]
    assert [
        one["id"] for one in read_all(lambda **more: pages.list_entries("other", "open", "deploy", **more))
    ] == others[::-1]
    assert read_all(lambda **more: pages.list_entries("builder", "failure", **more)) == []


def test_intents_are_found_by_words_whatever_their_case_the_newest_first(journal: Journal, pages: JournalPages) -> None:
    older = journal.log_intent("Load 100% of the Orders", agent_id="builder")
    newer = journal.log_intent("ORDERS are late", agent_id="other")
    journal.log_intent("Load 1000 of them", agent_id="builder")
    assert [one.id for one in pages.search_entries("orders")] == [newer.id, older.id]
    assert [one.id for one in pages.search_entries("orders", limit=1)] == [newer.id]
    # Signs of a pattern are words.
    assert [one.agent_id for one in pages.search_entries("100%")] == ["builder"]
    assert pages.search_entries("o_ders") == ()
    with pytest.raises(ValueError, match="words"):
        pages.search_entries(" ")


def test_what_is_added_meanwhile_moves_nothing(journal: Journal, pages: JournalPages) -> None:
    mine = log(journal, 4)
    first = pages.list_entries(limit=2)
    log(journal, 3)
    second = pages.list_entries(limit=2, cursor=first.next_cursor)
    assert [one.entry.id for one in (*first.items, *second.items)] == mine[::-1]


def test_an_entry_is_listed_with_its_first_expectations_and_their_count(journal: Journal, pages: JournalPages) -> None:
    log(journal, 1)
    (entry_id,) = log(journal, 1)
    asked = [{"description": f"part {number}"} for number in range(23)]
    journal.log_outcome(entry_id, "success", expectations=asked)
    listed, bare = pages.list_entries().items
    assert listed.expectation_count == 23
    assert [one.description for one in listed.entry.expectations] == [f"part {number}" for number in range(20)]
    assert (bare.expectation_count, bare.entry.expectations) == (0, ())
    assert listed.to_dict()["expectation_count"] == 23


def test_entry_is_got_with_the_newest_of_what_belongs_to_it(journal: Journal, pages: JournalPages) -> None:
    (entry_id,) = log(journal, 1)
    children = [journal.log_intent("part", agent_id="builder", parent_id=entry_id).id for _ in range(2)]
    journal.log_outcome(entry_id, "success", expectations=[{"description": "merged"}])
    for number in range(5):
        journal.add_signal("ci", "neutral", f"news {number}", entry_id=entry_id)
    whole = pages.get_entry(entry_id)
    assert whole.entry == journal.get(entry_id)
    assert whole.counts == {"expectations": 1, "signals": 5, "history": len(whole.entry.history)}
    cut = pages.get_entry(entry_id, most=2).to_dict()
    assert [one["summary"] for one in cut["signals"]] == ["news 3", "news 4"]
    assert cut["counts"]["signals"] == 5
    assert cut["children"] == children[::-1]


def test_open_expectations_come_soonest_first_and_lasting_ones_last(
    journal: Journal, pages: JournalPages, clock: Clock
) -> None:
    for minutes in (30, None, 10, 10, None, 20, 1):
        (entry_id,) = log(journal, 1)
        expected = {"description": f"{minutes}", **({"expires_minutes": minutes} if minutes else {})}
        journal.log_outcome(entry_id, "success", expectations=[expected])
    (other,) = log(journal, 1, "other")
    journal.log_outcome(other, "success", expectations=[{"description": "other", "expires_minutes": 15}])
    clock.move(minutes=5)
    for limit in (1, 2, 3, 50):
        found = read_all(pages.list_expectations, limit)
        assert [one["description"] for one in found] == ["10", "10", "other", "20", "30", "None", "None"]
    assert len({one["id"] for one in found}) == 7
    (mine,) = pages.list_expectations("other").items
    assert (mine.agent_id, mine.expectation.description) == ("other", "other")


def test_signals_are_listed_by_rule_and_agent(journal: Journal, pages: JournalPages) -> None:
    (entry_id,) = log(journal, 1)
    hints = [{"description": f"pr {number}", "match_hint": {"pr": number}} for number in range(3)]
    journal.log_outcome(entry_id, "success", expectations=hints)
    hinted = [journal.add_signal("ci", "positive", "green", data={"pr": number}).id for number in range(3)]
    named = [journal.add_signal("ci", "neutral", f"{number}", entry_id=entry_id).id for number in range(2)]
    lost = journal.add_signal("ci", "positive", "lost", data={"pr": 99}, agent_id="builder").id
    stranger = journal.add_signal("ci", "positive", "lost too", data={"pr": 98}).id
    all_of_them = [stranger, lost, *named[::-1], *hinted[::-1]]

    def ids(rule: str | None = None, agent: str | None = None) -> list[str]:
        return [one["id"] for one in read_all(lambda **more: pages.list_signals(rule, agent, **more))]

    assert ids() == all_of_them
    assert ids("orphan") == [stranger, lost]
    assert ids("match_hint", "builder") == hinted[::-1]
    assert ids(None, "builder") == all_of_them[1:]
    assert ids("orphan", "builder") == [lost]
    assert ids(None, "nobody") == []
    assert pages.list_signals("entry").items[0].agent_id == "builder"


def test_signal_is_got_with_its_routing_and_what_the_candidates_expect(journal: Journal, pages: JournalPages) -> None:
    (entry_id,) = log(journal, 1)
    hints = [{"description": f"pr {number}", "match_hint": {"pr": number}} for number in range(2)]
    journal.log_outcome(entry_id, "success", expectations=hints)
    signal = journal.add_signal("ci", "positive", "green", data={"pr": 1}, agent_id="builder")
    found = pages.get_signal(signal.id)
    assert found.signal == signal
    assert found.routing == journal.explain_routing(signal.id)
    told = found.to_dict()
    assert told["routing"]["rule"] == RoutedBy.MATCH_HINT
    taken, beaten = told["routing"]["candidates"]
    assert (taken["taken"], taken["description"], taken["entry_id"], taken["status"]) == (True, "pr 1", entry_id, "met")
    assert (beaten["taken"], beaten["description"], beaten["status"]) == (False, "pr 0", "open")
    orphan = pages.get_signal(journal.add_signal("ci", "neutral", "lost", data={"x": 1}).id).to_dict()
    assert (orphan["routing"]["rule"], orphan["agent_id"], orphan["is_late"]) == ("orphan", None, False)


def test_agents_come_by_name_with_their_newest_entry(journal: Journal, pages: JournalPages) -> None:
    newest = {name: log(journal, 3, name)[-1] for name in ("zoe", "ada", "mo", "Bo")}
    found = read_all(pages.list_agents)
    assert [one["agent_id"] for one in found] == sorted(newest)
    assert {one["agent_id"]: one["last_entry_id"] for one in found} == newest
    assert pages.list_agents().items[0].last_entry_at == BEGIN


def test_empty_journal_gives_empty_pages(pages: JournalPages) -> None:
    for ask in (pages.list_entries, pages.list_expectations, pages.list_signals, pages.list_agents):
        assert ask().to_dict() == {"items": [], "next_cursor": None}


def test_what_is_not_there_is_said(pages: JournalPages) -> None:
    with pytest.raises(JournalError, match="entry_no"):
        pages.get_entry("entry_no")
    with pytest.raises(JournalError, match="the journal has no signal 'signal_no'"):
        pages.get_signal("signal_no")


def test_what_is_not_allowed_is_refused(journal: Journal, pages: JournalPages) -> None:
    log(journal, 3)
    cursor = pages.list_entries(limit=1).next_cursor
    for ask in (pages.list_agents, pages.list_signals, lambda **more: pages.list_entries("builder", **more)):
        with pytest.raises(ValueError, match="cursor is not one that this list gave"):
            ask(cursor=cursor)
    with pytest.raises(ValueError, match="filter 'good' is unknown"):
        pages.list_entries(filter="good")
    with pytest.raises(ValueError, match="routed_by 'magic' is unknown"):
        pages.list_signals("magic")
    with pytest.raises(ValueError, match="limit"):
        pages.list_expectations(limit=201)
    with pytest.raises(ValueError, match="agent"):
        pages.list_entries(" ")


def log_ended(journal: Journal, result: str, kind: str | None = "etl", agent: str = "builder") -> str:
    entry = journal.log_intent("x", kind, agent_id=agent)
    journal.log_outcome(entry.id, result)
    return entry.id


def test_the_rate_is_over_what_is_decided(journal: Journal, clock: Clock) -> None:
    for result in ("success", "success", "failure", "unknown"):
        log_ended(journal, result)
    journal.assess(log_ended(journal, "unknown"), "partial", by="ada")
    entry = journal.log_intent("x", None, agent_id="builder")
    journal.log_outcome(entry.id, "success", expectations=[{"description": "d", "expires_minutes": 1}])
    log_ended(journal, "failure", agent="critic")
    clock.move(minutes=1)
    journal.sweep()
    told = journal.summary("builder")
    assert (told.n, told.success_rate, told.open, told.expired) == (4, 0.5, 1, 1)
    assert dict(told.by_intent_type) == {"": SuccessRate(0, None, 0, 1), "etl": SuccessRate(4, 0.5, 1, 0)}
    assert dict(told.by_time) == {"2026-03-01": SuccessRate(4, 0.5, 1, 1)}
    assert journal.summary().n == 5
    assert journal.summary("nobody").to_dict() == {
        "n": 0,
        "success_rate": None,
        "open": 0,
        "expired": 0,
        "by_intent_type": {},
        "by_time": [],
    }


def test_only_what_began_since_is_counted_to_the_moment(journal: Journal, clock: Clock) -> None:
    for hours in (0, 6, 18, 24):
        clock.now = BEGIN + timedelta(hours=hours)
        log_ended(journal, "success")
        log_ended(journal, "failure", agent="critic")

    def count(since: datetime, agent: str | None = None) -> int:
        return journal.summary(agent, since).n

    assert [count(BEGIN + timedelta(hours=hours)) for hours in (0, 1, 6, 7, 18, 19, 25)] == [8, 6, 6, 4, 4, 2, 0]
    assert count(BEGIN + timedelta(hours=1), "critic") == 3
    assert count(BEGIN.replace(hour=0)) == 8
    assert list(journal.summary(since=BEGIN + timedelta(hours=6)).by_time) == ["2026-03-01", "2026-03-02"]
    with pytest.raises(ValueError, match="since must be an aware datetime"):
        journal.summary(since=datetime(2026, 3, 1))  # noqa: DTZ001 - what is refused


def test_what_changes_later_is_counted_as_it_is_then(journal: Journal, store: Store) -> None:
    entry = log_ended(journal, "success")
    journal.add_signal("ci", "negative", "broke", entry_id=entry)
    told = journal.summary()
    assert (told.n, told.success_rate) == (1, 0.0)
    assert hash(told) == hash(journal.summary())


def test_sums_are_made_of_counts_alone() -> None:
    days = [(0, Assessment.SUCCESS, 2), (1, Assessment.FAILURE, 1), (1, Assessment.OPEN, 3)]
    kinds = [("etl", Assessment.SUCCESS, 2), ("etl", Assessment.FAILURE, 1), ("", Assessment.OPEN, 3)]
    told = summarize(days, kinds).to_dict()
    assert told["by_time"] == [
        {"day": "1970-01-01", "n": 2, "success_rate": 1.0, "open": 0, "expired": 0},
        {"day": "1970-01-02", "n": 1, "success_rate": 0.0, "open": 3, "expired": 0},
    ]


def test_a_review_finds_what_is_rare_and_what_is_common(journal: Journal) -> None:
    common = [log_ended(journal, "success") for _ in range(5)]
    rare = log_ended(journal, "failure", agent="critic")
    assert [one.id for one in journal.review_journal("success", limit=2)] == common[:2:-1]
    assert [one.id for one in journal.review_journal("failure", agent_id="critic")] == [rare]
    assert journal.review_journal("failure", agent_id="builder") == ()
