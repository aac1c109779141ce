"""Memories put into a store and its search index by hand, and found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, text

from pytest_golden.storage.columns import write_namespace
from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import find_memories, index_memories

if TYPE_CHECKING:
    from pytest_golden.storage.search import SearchBounds
    from pytest_golden.storage.store import Store

OUTCOMES = ("outcomes", "etl")


def remember(store: Store, *texts: str, namespace: tuple[str, ...] = OUTCOMES) -> list[int]:
    """Put in a memory for each text, and give their numbers."""
    with store.write() as connection:
        first = connection.execute(text("SELECT coalesce(max(number), 0) FROM memories")).scalar_one() + 1
        numbers = list(range(first, first + len(texts)))
        rows = [
            {
                "number": number,
                "namespace": write_namespace(namespace),
                "key": f"key{number}",
                "version": 1,
                "is_newest": True,
                "value": {},
                "tags": [],
                "words": words,
                "created_at": 0,
                "updated_at": 0,
            }
            for number, words in zip(numbers, texts, strict=True)
        ]
        connection.execute(insert(memories), rows)
        index_memories(connection, list(zip(numbers, texts, strict=True)))
    return numbers


def find(
    store: Store, query: str, prefix: tuple[str, ...] = (), limit: int = 10, bounds: SearchBounds | None = None
) -> list[int]:
    """Return the numbers of what is found, best first."""
    with store.read() as connection:
        found = find_memories(connection, query, prefix, limit, bounds=bounds)
    assert found == sorted(found, key=lambda hit: -hit[1])
    return [number for number, _ in found]
