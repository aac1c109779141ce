from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.copying import copy_store
from pytest_golden.storage.integrity import check_store, repair_store
from pytest_golden.storage.schema import memories, memory_vectors
from pytest_golden.storage.search import count_indexed, unindex_memory
from pytest_golden.storage.store import Store
from pytest_golden.verify.merging_store import merge_stores
from tests.learning.conftest import BOTH
from tests.learning.vectors.embedders import Told, embed

if TYPE_CHECKING:
    import pytest

    from tests.postgres import PostgresServer

PLACE = ("notes", "etl")


def fill(location: str | Path, texts: dict[str, str]) -> None:
    with MemoryStore.open(location, embedder=embed) as memories:
        memories.save_memories({"namespace": PLACE, "key": key, "value": {"text": text}} for key, text in texts.items())
        assert memories.hybrid_search((), "late").method == "hybrid"


def count(store: Store) -> int:
    with store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(memory_vectors)) or 0)


def search(location: str | Path, query: str) -> tuple[list[str], int]:
    """Return what is found, and how many texts were embedded for it."""
    embedder = Told(embed, model=f"{embed.__module__}.{embed.__qualname__}")
    with MemoryStore.open(location, embedder=embedder) as memories:
        answer = memories.hybrid_search((), query)
        assert answer.method == "hybrid"
        return [hit.memory.key for hit in answer.hits], embedder.count


@BOTH
def test_copy_has_the_vectors_on_either_database(
    location: str | Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fill(location, {"a": "column", "b": "timeout"})
    there: str | Path = tmp_path / "copy.db"
    if isinstance(location, Path):
        server: PostgresServer = request.getfixturevalue("postgres")
        there = server.make_empty_database()
    copied = copy_store(location, there)
    assert copied.problems == ()
    assert copied.tables["memory_vectors"].rows == 2
    assert search(there, "field") == (["a"], 1)
    checked = check_store(there)
    assert (checked.problems, checked.tables["memory_vectors"]) == ((), 2)


@BOTH
def test_merged_memories_are_embedded_again_where_something_came_in(location: str | Path, tmp_path: Path) -> None:
    source = tmp_path / "source.db"
    fill(location, {"both": "column", "old": "timeout"})
    fill(source, {"new": "ram", "both": "column heap"})
    merge_stores(location, [source], rules={}, progress=lambda _: None)
    with Store.open(location) as store:
        assert count(store) == 1
    assert check_store(location).problems == ()
    found, embedded = search(location, "memory")
    assert (set(found), embedded) == ({"new", "both"}, 1 + 2)


@BOTH
def test_memory_that_leaves_the_index_leaves_its_vector(location: str | Path) -> None:
    fill(location, {"a": "column", "b": "timeout"})
    with Store.open(location) as store:
        assert count(store) == 2
        with store.write() as connection:
            assert count_indexed(connection) == 2
            row = connection.execute(select(memories.c.number, memories.c.words).limit(1)).one()
            unindex_memory(connection, row.number, row.words)
            assert count_indexed(connection) == 1
        assert count(store) == 1
        repair_store(store)
        with store.write() as connection:
            connection.execute(delete(memories))
        assert count(store) == 0
