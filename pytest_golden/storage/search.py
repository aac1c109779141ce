"""Full-text search over the newest versions of memories: SQLite's FTS5, ranked by bm25.

The index holds no text; what is taken out of it must be what was put in. A query is words, never operators.
bm25 costs microseconds for each row that it ranks, so words that stand in very many memories choose no rows as long as
rarer ones do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.exc import DatabaseError

from pytest_golden.storage.engine import find_driver, is_index_damage
from pytest_golden.storage.namespaces import namespace_range
from pytest_golden.storage.words import find_words, separate, write_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

_INDEX = "INSERT INTO memory_words (rowid, place, words) SELECT number, namespace, ? FROM memories WHERE number = ?"
_UNINDEX = (
    "INSERT INTO memory_words (memory_words, rowid, place, words) "
    "SELECT 'delete', number, namespace, ? FROM memories WHERE number = ?"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ? LIMIT ?)"
_SIZE = "SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace >= ? AND namespace < ? LIMIT ?)"
_OLDEST_OF_NEWEST = (
    "SELECT min(rowid) FROM (SELECT rowid FROM memory_words WHERE memory_words MATCH ? ORDER BY rowid DESC LIMIT ?)"
)
_FIND = (
    "SELECT number, -rank FROM memory_words CROSS JOIN memories ON number = memory_words.rowid "
    "WHERE memory_words MATCH ? AND memory_words.rowid >= ? AND namespace >= ? AND namespace < ? ORDER BY rank LIMIT ?"
)
_DIFFERING = (
    "SELECT count(*) FROM memories FULL JOIN memory_words_docsize ON number = memory_words_docsize.id "
    "WHERE (words IS NULL) <> (memory_words_docsize.id IS NULL)"
)
_EVERYTHING = ("", "~")  # Percent-encoding leaves nothing that sorts after a tilde.
_COMMON = 5_000
_MOST_RANKED = 10_000
_NEWEST_RANKED = 3_000
_SMALL_PLACE = 2_000
_MOST_WORDS = 12
_MOST_COMMON_WORDS = 2


class _Chosen(NamedTuple):
    """The words of a query: rare ones, and common ones, which stand in too many memories to rank them all."""

    rare: Sequence[str]
    common: Sequence[str]


def index_memory(connection: Connection, number: int, words: str) -> None:
    """Put a memory, whose row is there, into the index under these words."""
    find_driver(connection).execute(_INDEX, (separate(words), number))


def index_memories(connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
    """Put many memories, each a number and its words, into the index at once."""
    if memories:
        connection.exec_driver_sql(_INDEX, [(separate(words), number) for number, words in memories])


def unindex_memory(connection: Connection, number: int, words: str) -> None:
    """Take a memory, whose row is still there, out of the index; `words` are those that it was put in under."""
    connection.exec_driver_sql(_UNINDEX, (separate(words), number))


def find_memories(connection: Connection, query: str, prefix: Iterable[str], limit: int) -> list[tuple[int, float]]:
    """Find memories in which any word of the query stands: their numbers with a score, best first.

    Only namespaces that begin with the whole elements of `prefix` are searched. Among equals the newest comes first.
    """
    span = namespace_range(prefix)
    chosen = _choose_words(connection, find_words(query))
    if limit < 1 or not (chosen.rare or chosen.common):
        return []
    if span is not None and _is_small(connection, span):
        found = _find(connection, (*chosen.rare, *chosen.common), span, limit, place=span[0])
    else:
        found = _find_in_many(connection, chosen, span, limit)
    return sorted(found.items(), key=lambda item: (-item[1], -item[0]))[:limit]


def _find_in_many(
    connection: Connection, chosen: _Chosen, span: tuple[str, str] | None, limit: int
) -> dict[int, float]:
    found = _find(connection, chosen.rare, span, limit) if chosen.rare else {}
    if len(found) >= limit or not chosen.common:
        return found
    place = "" if span is None else span[0]
    match = _write_match(chosen.common, place)
    oldest = connection.exec_driver_sql(_OLDEST_OF_NEWEST, (match, _NEWEST_RANKED)).scalar()
    if oldest is None:
        return found
    return _find(connection, chosen.common, span, limit, place=place, oldest=int(oldest)) | found


def _find(
    connection: Connection,
    words: Sequence[str],
    span: tuple[str, str] | None,
    limit: int,
    *,
    place: str = "",
    oldest: int = 0,
) -> dict[int, float]:
    parameters = (_write_match(words, place), oldest, *(span or _EVERYTHING), limit)
    return {row[0]: row[1] for row in connection.exec_driver_sql(_FIND, parameters)}


def _choose_words(connection: Connection, words: Sequence[str]) -> _Chosen:
    """Choose the words that tell most: the rarest, as long as the memories in which they stand can all be ranked."""
    counts = {word: connection.exec_driver_sql(_COUNT, (_write_match([word]), _COMMON)).scalar() or 0 for word in words}
    rare: list[str] = []
    ranked = 0
    for word in sorted(filter(counts.get, words), key=counts.__getitem__):
        ranked += counts[word]
        if counts[word] == _COMMON or len(rare) == _MOST_WORDS or (rare and ranked > _MOST_RANKED):
            break
        rare.append(word)
    # How common is not known; a longer word is likelier to tell something.
    common = sorted((word for word in words if counts[word] == _COMMON), key=len, reverse=True)
    return _Chosen(rare, common[:_MOST_COMMON_WORDS])


def _is_small(connection: Connection, span: tuple[str, str]) -> bool:
    size = connection.exec_driver_sql(_SIZE, (*span, _SMALL_PLACE)).scalar() or 0
    return size < _SMALL_PLACE


def _write_match(words: Sequence[str], place: str = "") -> str:
    """Write the words, and the beginning of a namespace, in FTS5's language: any word, at that place."""
    match = f"words : ({' OR '.join(map(write_term, words))})"
    # As words, the place is only nearly the namespace: the rows that are found are compared with it.
    elements = " ".join(find_words(place, keep_all=True))
    return f'{match} AND place : ^ "{elements}"' if elements else match


def find_index_fault(connection: Connection) -> str | None:
    """Tell what is wrong with the index, if anything; the connection must be one that may write."""
    try:
        connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('integrity-check')")
    except DatabaseError as error:
        if not is_index_damage(error.orig):
            raise
        return "the search index is damaged"
    differing = connection.exec_driver_sql(_DIFFERING).scalar()
    return f"the search index differs from the memories in {differing} rows" if differing else None


def rebuild_index(connection: Connection) -> None:
    """Build the index again from the memories."""
    connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('delete-all')")
    rows = connection.exec_driver_sql("SELECT number, words FROM memories WHERE words IS NOT NULL")
    index_memories(connection, [(number, words) for number, words in rows])
