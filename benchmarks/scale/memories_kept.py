"""What the number of memories costs: saving one more, and searching by rare words and by whole error messages."""

from __future__ import annotations

import itertools
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memories import AT_ONCE, memories, queries, sync
from side_by_side import seconds

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.store import Store
from scale.model import Floor, Point, Study, make_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_ROUNDS = 60
_MOST = 1_000_000
_BARE_SEARCH = "SELECT rowid FROM memory_words WHERE memory_words MATCH ? ORDER BY rank LIMIT 10"
_BARE_TOLD = Floor("FTS5's own ranked search for the same words")


@contextmanager
def _on_sqlite(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    waiting = memories(_MOST, random.Random(1))
    fresh = memories(_MOST, random.Random(3))
    with Store.open(folder / "memories.db") as store, (folder / "flushed").open("wb") as file:
        kept = MemoryStore(store)
        flush = sync(file)
        filled = 0

        def save(one: Mapping[str, object]) -> float:
            return seconds(lambda: kept.save_memory(("new",), str(one["key"]), one["value"]))

        def search(words: str) -> tuple[float, float]:
            asked = " OR ".join(f'"{word}"' for word in words.replace('"', " ").split())

            def bare() -> None:
                with store.read() as connection:
                    connection.exec_driver_sql(_BARE_SEARCH, (asked,)).all()

            return seconds(bare), seconds(lambda: kept.search_memories((), words))

        def measure_size(size: int) -> Mapping[str, Point]:
            nonlocal filled
            while filled < size:
                some = list(itertools.islice(waiting, min(AT_ONCE, size - filled)))
                kept.save_memories(some)
                filled += len(some)
            asked = queries(_ROUNDS)
            return {
                "save": make_point(size, [(seconds(flush), save(one)) for one in itertools.islice(fresh, _ROUNDS)]),
                "search, rare words": make_point(size, [search(words) for words in asked["rare words"]]),
                "search, error messages": make_point(size, [search(words) for words in asked["whole error messages"]]),
            }

        yield measure_size


def list_studies() -> list[Study]:
    """Return the studies of this module."""
    floors = {
        "save": Floor("a bare write and fdatasync", 0),
        "search, rare words": _BARE_TOLD,
        "search, error messages": _BARE_TOLD,
    }
    return [Study("memories", "memories", (1_000, 10_000, 100_000, 1_000_000), floors, _on_sqlite)]
