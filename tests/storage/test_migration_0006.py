"""A store of the fifth version: what was in the full-text index is found, and no list of new words is kept any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import command
from sqlalchemy import create_engine, insert, text

from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import memories
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

MEMORY: dict[str, Any] = {
    "number": 1,
    "namespace": "outcomes/etl/",
    "key": "a",
    "version": 1,
    "is_newest": True,
    "value": {},
    "tags": [],
    "words": "load",
    "created_at": 1,
    "updated_at": 1,
}


def test_words_that_waited_to_be_indexed_are_found(postgres: PostgresServer) -> None:
    url = postgres.make_empty_database()
    engine = create_engine(parse_location(url).url)
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0005")
        connection.execute(insert(memories), MEMORY)
        connection.execute(text("INSERT INTO memory_words VALUES (1, 'load:1')"))
    engine.dispose()
    with Store.open(url, upgrades=True) as store:
        remember(store, "load")
        assert sorted(find(store, "load")) == [1, 2]
        with store.read() as connection:
            options = connection.execute(
                text("SELECT reloptions FROM pg_class WHERE relname = 'ix_memory_words_words'")
            )
            assert options.scalar_one() == ["fastupdate=off"]
    postgres.drop(url)
