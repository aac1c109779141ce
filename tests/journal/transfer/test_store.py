from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, select

from pytest_golden.journal.transfer.store import number_by_time, page_by_time, take_numbers
from pytest_golden.storage.schema import trajectories
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STARTED, KEY = trajectories.c.started_at, trajectories.c.id


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as store:
        yield store


def add(store: Store, *times: int) -> None:
    rows = [{"id": f"t{time:05d}", "started_at": time, "steps_total": 0, "body": {}} for time in times]
    with store.write() as connection:
        connection.execute(insert(trajectories), rows)


def list_by_number(store: Store) -> list[int]:
    with store.read() as connection:
        return list(connection.scalars(select(STARTED).order_by(trajectories.c.number)))


def test_rows_are_numbered_by_time_since(store: Store) -> None:
    add(store, 50, 10, 40, 30, 20)
    with store.write() as connection:
        number_by_time(connection, STARTED, KEY, 20)
    assert list_by_number(store) == [10, 20, 30, 40, 50]
    add(store, 60)
    assert list_by_number(store)[-1] == 60


def test_numbers_that_are_taken_are_new_and_rise(store: Store) -> None:
    add(store, 1, 2, 3)
    with store.write() as connection:
        before = set(connection.scalars(select(trajectories.c.number)))
        numbers = take_numbers(connection, trajectories, 3)
    assert numbers == sorted(numbers)
    assert min(numbers) > max(before)


def test_rows_are_given_by_time_some_at_once(store: Store) -> None:
    add(store, *range(1200, 0, -1))
    with store.read() as connection:
        pages = list(page_by_time(connection, STARTED, KEY, (trajectories.c.id,)))
        later = list(page_by_time(connection, STARTED, KEY, (trajectories.c.id,), STARTED >= 1100, STARTED < 1105))
    assert [len(page) for page in pages] == [500, 500, 200]
    assert [row.page_time for page in pages for row in page] == list(range(1, 1201))
    assert [row.page_time for row in later[0]] == [1100, 1101, 1102, 1103, 1104]


def test_an_empty_table_has_no_page(store: Store) -> None:
    with store.read() as connection:
        assert list(page_by_time(connection, STARTED, KEY, (trajectories.c.id,))) == []
