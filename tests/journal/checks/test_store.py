from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from pytest_golden.journal import assessment_store as rows
from pytest_golden.journal.checks.store import claim_check, end_claim, give_back, list_due
from pytest_golden.journal.service import Journal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from tests.journal.checks.conftest import expect

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.journal.checks.store import Claim
    from tests.journal.conftest import Clock

LEASE = 90_000
COMMAND = {"command": "true"}


def find_due(store: Store, clock: Clock, most: int = 10) -> list[str]:
    with store.read() as connection:
        return [one.id for one in list_due(connection, to_ms(clock.now), most)]


def claim(store: Store, clock: Clock, expectation_id: str) -> Claim | None:
    with store.write() as connection:
        return claim_check(connection, expectation_id, to_ms(clock.now), to_ms(clock.now) + LEASE)


def test_a_check_is_due_from_its_moment_on_until_its_expectation_expires(
    journal: Journal, store: Store, clock: Clock
) -> None:
    entry = expect(journal, COMMAND, {"after": 2, **COMMAND}, expires_minutes=3)
    first, second = (one.id for one in entry.expectations)
    assert find_due(store, clock) == []
    clock.move(minutes=1)
    assert find_due(store, clock) == [first]
    clock.move(minutes=1)
    assert find_due(store, clock) == [first, second]
    assert find_due(store, clock, most=1) == [first]
    clock.move(minutes=1)
    assert find_due(store, clock) == []


def test_an_answered_expectation_is_not_checked(journal: Journal, store: Store, clock: Clock) -> None:
    entry = expect(journal, COMMAND, match_hint={"pr": 1})
    clock.move(minutes=1)
    journal.add_signal("ci", "positive", "green", data={"pr": 1}, agent_id="builder")
    assert find_due(store, clock) == []
    assert claim(store, clock, entry.expectations[0].id) is None


def test_a_claim_is_for_one_alone_until_its_lease_is_over(journal: Journal, store: Store, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    first = claim(store, clock, entry.expectations[0].id)
    assert first is not None
    assert (first.expectation_id, first.entry_id, first.agent_id) == (entry.expectations[0].id, entry.id, "builder")
    assert (first.check, first.tries) == ({"after": "1m", "command": ["true"]}, 1)
    clock.move(seconds=89)
    assert claim(store, clock, entry.expectations[0].id) is None
    clock.move(seconds=1)
    second = claim(store, clock, entry.expectations[0].id)
    assert second is not None
    assert second.tries == 2
    with store.write() as connection:
        assert not end_claim(connection, first, None)
        assert end_claim(connection, second, None)
        assert not end_claim(connection, second, None)
    clock.move(days=1)
    assert find_due(store, clock) == []


def test_what_was_given_back_is_due_as_if_never_taken(journal: Journal, store: Store, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    taken = claim(store, clock, entry.expectations[0].id)
    assert taken is not None
    with store.write() as connection:
        give_back(connection, taken, to_ms(clock.now))
    again = claim(store, clock, entry.expectations[0].id)
    assert again is not None
    assert again.tries == 1
    with store.write() as connection:
        give_back(connection, taken._replace(until=1), to_ms(clock.now))
    assert claim(store, clock, entry.expectations[0].id) is None


def test_many_who_claim_at_once_share_what_is_due(journal: Journal, store: Store, clock: Clock) -> None:
    entry = expect(journal, *[COMMAND] * 12)
    clock.move(minutes=1)
    taken: list[str] = []

    def take() -> None:
        taken.extend(one for one in find_due(store, clock, 20) if claim(store, clock, one))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(one.id for one in entry.expectations)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_what_is_due_is_found_by_its_index(store: Store) -> None:
    asked = (
        "SELECT number FROM expectations WHERE status = 'open' AND check_due_at <= 5 "
        "AND (expires_at IS NULL OR expires_at > 5) ORDER BY check_due_at, number LIMIT 10"
    )
    with store.read() as connection:
        plan = " ".join(str(row) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")))
    assert "ix_expectations_check_due" in plan
    assert "TEMP B-TREE" not in plan


def test_a_check_that_was_imported_is_due_as_before(journal: Journal, clock: Clock, tmp_path: Path) -> None:
    entry = expect(journal, COMMAND, {"after": 5, **COMMAND})
    file = tmp_path / "journal.jsonl"
    journal.export(file)
    with Store.open(tmp_path / "other.db") as other:
        Journal(other, clock=clock).import_(file, with_checks=True)
        clock.move(minutes=1)
        assert find_due(other, clock) == [entry.expectations[0].id]
        clock.move(minutes=4)
        assert len(find_due(other, clock)) == 2


@pytest.mark.parametrize("check", [{}, {"after": "soon"}, {"after": None}, {"ping": "x"}])
def test_what_is_no_check_here_is_never_due(check: dict[str, Any]) -> None:
    assert rows.find_due(check, 1000) is None
    assert rows.find_due(None, 1000) is None
    assert rows.find_due({"after": "2s"}, 1000) == 3000
