from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, update

from pytest_golden.journal import receiving as rerouting
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.storage.schema import signals

if TYPE_CHECKING:
    import pytest

    from pytest_golden.journal.service import Journal
    from pytest_golden.storage.store import Store
    from tests.journal.conftest import Clock


def expect_pull_requests(journal: Journal, count: int) -> None:
    for number in range(count):
        entry = journal.log_intent(f"merge {number}", agent_id="builder")
        asked = [{"description": "merged", "match_hint": {"pr": number}}]
        journal.log_outcome(entry.id, "success", expectations=asked)


def let_fit(store: Store, ids: list[str]) -> None:
    """Let orphans carry what would have found them a place, as those do that came by an import."""
    with store.write() as connection:
        for number, signal_id in enumerate(ids):
            connection.execute(update(signals).where(signals.c.id == signal_id).values(data={"pr": number}))


def test_very_many_orphans_find_their_places_some_at_once(
    journal: Journal, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerouting, "_READ_AT_ONCE", 3)
    monkeypatch.setattr(rerouting, "_TAKEN_AT_ONCE", 2)
    expect_pull_requests(journal, 5)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(12)]
    let_fit(store, lost[4:9])
    assert journal.reroute_orphans() == 5
    assert {one.id for one in journal.orphans()} == {*lost[:4], *lost[9:]}
    assert journal.reroute_orphans() == 0


def test_heartbeat_routes_again_when_something_is_new(journal: Journal, store: Store, clock: Clock) -> None:
    expect_pull_requests(journal, 2)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(2)]
    heart = Heartbeat(journal)
    assert heart.beat().rerouted == 0
    let_fit(store, lost)
    assert heart.beat().rerouted == 0
    journal.log_outcome(journal.log_intent("more", agent_id="builder").id, "success")
    assert heart.beat().rerouted == 0
    clock.move(minutes=59)
    journal.add_signal("ci", "positive", "other news", data={"x": 9})
    # What was there at the last look is not looked at again each time that something comes.
    assert heart.beat().rerouted == 0
    clock.move(minutes=1)
    assert heart.beat().rerouted == 0
    journal.add_signal("ci", "positive", "more news", data={"x": 10})
    assert heart.beat().rerouted == 2


def test_heartbeat_finds_a_place_for_an_orphan_that_has_come(journal: Journal, store: Store, clock: Clock) -> None:
    heart = Heartbeat(journal)
    expect_pull_requests(journal, 2)
    assert heart.beat().rerouted == 0
    clock.move(minutes=1)
    let_fit(store, [journal.add_signal("ci", "positive", f"news {n}", data={"x": n}).id for n in range(2)])
    assert heart.beat().rerouted == 2


def test_heartbeat_gives_an_expectation_that_has_come_what_was_there(
    journal: Journal, store: Store, clock: Clock
) -> None:
    """As with an entry that comes by an import, and began before its orphan was heard here."""
    clock.move(minutes=-10)
    begun = [journal.log_intent(f"merge {number}", agent_id="builder") for number in range(3)]
    clock.move(minutes=10)
    lost = [journal.add_signal("ci", "positive", f"news {n}", data={"x": n}).id for n in range(3)]
    heart = Heartbeat(journal)
    assert heart.beat().rerouted == 0
    for number, entry in enumerate(begun):
        asked = [{"description": "merged", "match_hint": {"pr": number}}]
        journal.log_outcome(entry.id, "success", expectations=asked)
    let_fit(store, lost[:2])
    assert heart.beat().rerouted == 2
    assert {one.id for one in journal.orphans()} == {lost[2]}


def test_heartbeat_looks_at_everything_in_a_store_that_has_less(journal: Journal, store: Store, clock: Clock) -> None:
    heart = Heartbeat(journal)
    expect_pull_requests(journal, 2)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(3)]
    assert heart.beat().rerouted == 0
    with store.write() as connection:
        connection.execute(delete(signals).where(signals.c.id == lost.pop()))
    let_fit(store, lost)
    assert heart.beat().rerouted == 2
