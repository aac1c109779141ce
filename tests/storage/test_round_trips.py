"""How often a server is waited for, and what happens when it goes away while something waits to be sent."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import func, insert, select

from pytest_golden.errors import StorageError
from pytest_golden.journal.service import Journal
from pytest_golden.storage.postgresql import find_driver
from pytest_golden.storage.schema import documents
from pytest_golden.storage.statements import Prepared
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.postgres import PostgresServer

INSERT_DOCUMENT = Prepared(insert(documents), "digest", "body")
# With which a server ends its answer to all that was sent together.
_ANSWERED = "ReadyForQuery"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url) as store:
        yield store


@contextmanager
def traced(store: Store) -> Iterator[Callable[[], int]]:
    """Return what tells how often the writer has waited for its server since."""
    with store.write() as connection:
        driver = find_driver(connection).pgconn
    with tempfile.TemporaryFile("w+") as file:
        driver.trace(file.fileno())
        try:
            yield lambda: _count(driver, file)
        finally:
            driver.untrace()


def _count(driver: Any, file: Any) -> int:
    driver.untrace()
    file.seek(0)
    return int(file.read().count(_ANSWERED))


def expect(journal: Journal, number: int) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    hint = {"pr": number, "repository": "acme/repo", "sha": f"{number:040x}"}
    asked = [{"description": f"d{turn}", "match_hint": {**hint, "turn": turn}} for turn in range(3)]
    journal.log_outcome(entry.id, "success", "done", actions=[{"tool": "edit"}], expectations=asked)


def test_an_intent_is_two_trips(store: Store) -> None:
    with traced(store) as count:
        Journal(store).log_intent("load", agent_id="builder")
        assert count() == 2


def test_an_outcome_with_what_is_expected_is_few_trips(store: Store) -> None:
    journal = Journal(store)
    entry = journal.log_intent("load", agent_id="builder")
    asked = [{"description": f"d{turn}", "match_hint": {"pr": turn, "sha": f"{turn:040x}"}} for turn in range(3)]
    with traced(store) as count:
        journal.log_outcome(entry.id, "success", "done", actions=[{"tool": "edit"}], expectations=asked)
        assert count() <= 5


def test_a_signal_is_as_many_trips_however_many_keys_it_has(store: Store) -> None:
    journal, counts = Journal(store), []
    for number, more in enumerate((0, 40)):
        expect(journal, number)
        data = {"pr": number, "repository": "acme/repo", "sha": f"{number:040x}", "turn": 1}
        data |= {f"key{place}": place for place in range(more)}
        with traced(store) as count:
            kept = journal.add_signal("github", "positive", "merged", data=data, agent_id="builder")
            counts.append(count())
        assert kept.routed_by == "match_hint"
    assert counts == [4, 4]


def test_connection_lost_while_something_waits_is_said_and_leaves_nothing(
    postgres: PostgresServer, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def write() -> None:
        with store.write() as connection:
            INSERT_DOCUMENT.leave(connection, {"digest": "a", "body": 1})
            process = find_driver(connection).info.backend_pid
            postgres.execute(f"SELECT pg_terminate_backend({process}, 5000)")

    with pytest.raises(StorageError, match="its server cannot be used"):
        write()
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 0
    with store.write() as connection:
        INSERT_DOCUMENT.leave(connection, {"digest": "a", "body": 1})
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 1
    assert caplog.records == []


def test_error_that_was_passed_over_stops_what_waits(store: Store) -> None:
    def write() -> None:
        with store.write() as connection:
            INSERT_DOCUMENT.leave(connection, {"digest": "a", "body": 1})
            with pytest.raises(psycopg.Error, match="unique"):
                INSERT_DOCUMENT.run(connection, {"digest": "a", "body": 1})
            INSERT_DOCUMENT.leave(connection, {"digest": "b", "body": 1})

    with pytest.raises(StorageError, match="current transaction is aborted"):
        write()
    with store.read() as connection:
        assert connection.execute(documents.select()).all() == []
