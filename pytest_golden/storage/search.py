"""Full-text search over the newest versions of memories. `storage/search_index.py` is the index of each database.

A query is words, never operators. Ranking a memory costs microseconds, so words of very many memories are used only if
rarer words find too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import BigInteger, bindparam, delete, text

from pytest_golden.storage.columns import find_words, namespace_range
from pytest_golden.storage.schema import memory_vectors
from pytest_golden.storage.search_index import choose_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from pytest_golden.storage.search_index import SearchIndex, Span

_SIZE = text("""
SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace >= :low AND namespace < :high LIMIT :most) AS found
""")
_INDEXED = text("""
SELECT number, words FROM memories WHERE words IS NOT NULL AND number > :last ORDER BY number LIMIT :most
""")
_DROP_VECTOR = delete(memory_vectors).where(memory_vectors.c.number == bindparam("the_number", type_=BigInteger()))
_INDEXED_AT_ONCE = 2_000
_MOST_WORDS = 12
_MOST_COMMON_WORDS = 2


class SearchBounds(NamedTuple):
    """Limits on how many memories a search looks at.

    A word in `common` memories is common. At most `ranked` memories are ranked for rare words, and the `newest` ones for
    common words. A namespace with fewer than `small` memories is ranked as a whole.
    """

    common: int = 5_000
    ranked: int = 10_000
    newest: int = 3_000
    small: int = 2_000


_BOUNDS = SearchBounds()
# PostgreSQL takes several times as long to rank one.
_BOUNDS_ON_SERVER = SearchBounds(common=2_500, ranked=5_000, newest=1_000)


class _Chosen(NamedTuple):
    """The words of a query with their counts: rare words, and those of too many memories to rank them all."""

    rare: Mapping[str, int]
    common: Mapping[str, int]


def index_memory(connection: Connection, number: int, words: str) -> None:
    """Add a memory that is stored already to the index, under these words."""
    choose_index(connection).add(connection, [(number, words)])


def index_memories(connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
    """Add many memories to the index at once, each a number and its words."""
    if memories:
        choose_index(connection).add(connection, memories)


def unindex_memory(connection: Connection, number: int, words: str) -> None:
    """Remove a memory that is still stored from the index; `words` are those that it was added with.

    Its vector, which was made from these words, is removed too.
    """
    choose_index(connection).remove(connection, number, words)
    connection.execute(_DROP_VECTOR, {"the_number": number})


def count_indexed(connection: Connection) -> int:
    """Count the memories in the index: all newest versions."""
    return choose_index(connection).count_all(connection)


def find_memories(
    connection: Connection, query: str, prefix: Iterable[str], limit: int, *, bounds: SearchBounds | None = None
) -> list[tuple[int, float]]:
    """Find memories that contain any word of the query: their numbers with a score, best first.

    Only namespaces that begin with the whole elements of `prefix` are searched. Among equal scores the newest comes first.
    """
    span = namespace_range(prefix)
    index = choose_index(connection)
    bounds = bounds or (_BOUNDS if connection.dialect.name == "sqlite" else _BOUNDS_ON_SERVER)
    chosen = _choose_words(connection, index, find_words(query), bounds)
    if limit < 1 or not (chosen.rare or chosen.common):
        return []
    if span is not None and _is_small(connection, span, bounds.small):
        found = index.rank_in_place(connection, {**chosen.rare, **chosen.common}, span, limit)
    else:
        found = index.rank(connection, chosen.rare, span, limit) if chosen.rare else {}
        if len(found) < limit and chosen.common:
            found = index.rank_newest(connection, chosen.common, span, limit, bounds.newest) | found
    return sorted(found.items(), key=lambda item: (-item[1], -item[0]))[:limit]


def find_index_fault(connection: Connection) -> str | None:
    """Return what is wrong with the index; None if nothing is. On SQLite the transaction must be one that writes."""
    return choose_index(connection).find_fault(connection)


def rebuild_index(connection: Connection, *, at_once: int = _INDEXED_AT_ONCE) -> None:
    """Build the index again from the memories, `at_once` of them at a time."""
    index = choose_index(connection)
    index.clear(connection)
    last = -1
    while rows := connection.execute(_INDEXED, {"last": last, "most": at_once}).all():
        index.add(connection, [(row.number, row.words) for row in rows])
        last = rows[-1].number


def _choose_words(connection: Connection, index: SearchIndex, words: Sequence[str], bounds: SearchBounds) -> _Chosen:
    """Choose the words that tell most: the rarest, as long as all memories that contain them can be ranked."""
    counts = index.count(connection, words, bounds.common) if words else {}
    rare: dict[str, int] = {}
    ranked = 0
    for word in sorted(filter(counts.get, words), key=counts.__getitem__):
        ranked += counts[word]
        if counts[word] == bounds.common or len(rare) == _MOST_WORDS or (rare and ranked > bounds.ranked):
            break
        rare[word] = counts[word]
    # Their exact counts are unknown; a longer word is likely to tell more.
    common = sorted((word for word in words if counts[word] == bounds.common), key=len, reverse=True)
    return _Chosen(rare, dict.fromkeys(common[:_MOST_COMMON_WORDS], bounds.common))


def _is_small(connection: Connection, span: Span, most: int) -> bool:
    found = connection.execute(_SIZE, {"low": span[0], "high": span[1], "most": most})
    return int(found.scalar_one()) < most
