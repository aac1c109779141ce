"""Full-text search over the newest versions of memories. What each database does for it is in a module of its own.

A query is words, never operators. To rank a memory costs microseconds, so words that stand in very many memories choose
none as long as rarer ones do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import BigInteger, bindparam, delete, text

from pytest_golden.storage import fts5_index, tsvector_index
from pytest_golden.storage.columns import find_words, namespace_range
from pytest_golden.storage.schema import memory_vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    Span = tuple[str, str]

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
    """How many memories are looked at.

    A word that stands in `common` of them is common; so many at most are `ranked` for rare words, so many of the `newest`
    for common ones; and a place with fewer than `small` is ranked whole.
    """

    common: int = 5_000
    ranked: int = 10_000
    newest: int = 3_000
    small: int = 2_000


_BOUNDS = SearchBounds()
# PostgreSQL takes several times as long to look at one.
_BOUNDS_ON_SERVER = SearchBounds(common=2_500, ranked=5_000, newest=1_000)


class _Index(Protocol):
    """The index of one database. `counts` are words with the number of memories in which each stands."""

    def add(self, connection: Connection, memories: Sequence[tuple[int, str]], /) -> None: ...
    def remove(self, connection: Connection, number: int, words: str, /) -> None: ...
    def clear(self, connection: Connection, /) -> None: ...
    def count(self, connection: Connection, words: Sequence[str], most: int, /) -> dict[str, int]: ...
    def count_all(self, connection: Connection, /) -> int: ...
    def rank(
        self, connection: Connection, counts: Mapping[str, int], span: Span | None, limit: int, /
    ) -> dict[int, float]: ...
    def rank_in_place(
        self, connection: Connection, counts: Mapping[str, int], span: Span, limit: int, /
    ) -> dict[int, float]: ...
    def rank_newest(
        self, connection: Connection, counts: Mapping[str, int], span: Span | None, limit: int, newest: int, /
    ) -> dict[int, float]: ...
    def find_fault(self, connection: Connection, /) -> str | None: ...


class _Chosen(NamedTuple):
    """The words of a query with their counts: rare ones, and those that stand in too many memories to rank them all."""

    rare: Mapping[str, int]
    common: Mapping[str, int]


def index_memory(connection: Connection, number: int, words: str) -> None:
    """Put a memory, whose row is there, into the index under these words."""
    _index_of(connection).add(connection, [(number, words)])


def index_memories(connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
    """Put many memories, each a number and its words, into the index at once."""
    if memories:
        _index_of(connection).add(connection, memories)


def unindex_memory(connection: Connection, number: int, words: str) -> None:
    """Take a memory, whose row is still there, out of the index; `words` are those that it was put in under.

    The vector that was made of these words goes too.
    """
    _index_of(connection).remove(connection, number, words)
    connection.execute(_DROP_VECTOR, {"the_number": number})


def count_indexed(connection: Connection) -> int:
    """Count the memories that can be found: all newest versions."""
    return _index_of(connection).count_all(connection)


def find_memories(
    connection: Connection, query: str, prefix: Iterable[str], limit: int, *, bounds: SearchBounds | None = None
) -> list[tuple[int, float]]:
    """Find memories in which any word of the query stands: their numbers with a score, best first.

    Only namespaces that begin with the whole elements of `prefix` are searched. Among equals the newest comes first.
    """
    span = namespace_range(prefix)
    index = _index_of(connection)
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
    """Tell what is wrong with the index, if anything; on SQLite the connection must be one that may write."""
    return _index_of(connection).find_fault(connection)


def rebuild_index(connection: Connection, *, at_once: int = _INDEXED_AT_ONCE) -> None:
    """Build the index again from the memories, so many of them at once."""
    index = _index_of(connection)
    index.clear(connection)
    last = -1
    while rows := connection.execute(_INDEXED, {"last": last, "most": at_once}).all():
        index.add(connection, [(row.number, row.words) for row in rows])
        last = rows[-1].number


def _index_of(connection: Connection) -> _Index:
    return fts5_index if connection.dialect.name == "sqlite" else tsvector_index


def _choose_words(connection: Connection, index: _Index, words: Sequence[str], bounds: SearchBounds) -> _Chosen:
    """Choose the words that tell most: the rarest, as long as the memories in which they stand can all be ranked."""
    counts = index.count(connection, words, bounds.common) if words else {}
    rare: dict[str, int] = {}
    ranked = 0
    for word in sorted(filter(counts.get, words), key=counts.__getitem__):
        ranked += counts[word]
        if counts[word] == bounds.common or len(rare) == _MOST_WORDS or (rare and ranked > bounds.ranked):
            break
        rare[word] = counts[word]
    # How common is not known; a longer word is likelier to tell something.
    common = sorted((word for word in words if counts[word] == bounds.common), key=len, reverse=True)
    return _Chosen(rare, dict.fromkeys(common[:_MOST_COMMON_WORDS], bounds.common))


def _is_small(connection: Connection, span: Span, most: int) -> bool:
    found = connection.execute(_SIZE, {"low": span[0], "high": span[1], "most": most})
    return int(found.scalar_one()) < most
