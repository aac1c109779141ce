"""The full-text index of a SQLite store: FTS5, ranked by bm25. `storage.search` decides what is asked of it.

It holds no text; what is taken out of it must be what was put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import DatabaseError

from pytest_golden.storage.columns import find_words, separate, write_term
from pytest_golden.storage.engine import find_driver, is_index_damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

# Without a copy of the text. The place narrows a search and does not count in the rank.
_MAKE = (
    "CREATE VIRTUAL TABLE memory_words USING fts5(place, words, content='', tokenize='unicode61 remove_diacritics 2')",
    "INSERT INTO memory_words (memory_words, rank) VALUES ('rank', 'bm25(0.0, 1.0)')",
)
_ADD = "INSERT INTO memory_words (rowid, place, words) SELECT number, namespace, ? FROM memories WHERE number = ?"
_REMOVE = (
    "INSERT INTO memory_words (memory_words, rowid, place, words) "
    "SELECT 'delete', number, namespace, ? FROM memories WHERE number = ?"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ? LIMIT ?)"
_OLDEST_OF_NEWEST = (
    "SELECT min(rowid) FROM (SELECT rowid FROM memory_words WHERE memory_words MATCH ? ORDER BY rowid DESC LIMIT ?)"
)
_RANK = (
    "SELECT number, -rank FROM memory_words CROSS JOIN memories ON number = memory_words.rowid "
    "WHERE memory_words MATCH ? AND memory_words.rowid >= ? AND namespace >= ? AND namespace < ? ORDER BY rank LIMIT ?"
)
_DIFFERING = (
    "SELECT count(*) FROM memories FULL JOIN memory_words_docsize ON number = memory_words_docsize.id "
    "WHERE (words IS NULL) <> (memory_words_docsize.id IS NULL)"
)
_EVERYTHING = ("", "~")  # Percent-encoding leaves nothing that sorts after a tilde.


def make(connection: Connection) -> None:
    """Make the empty index."""
    for statement in _MAKE:
        connection.exec_driver_sql(statement)


def add(connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
    """Put memories, whose rows are there, into the index: each a number and its words."""
    find_driver(connection).executemany(_ADD, [(separate(words), number) for number, words in memories])


def remove(connection: Connection, number: int, words: str) -> None:
    """Take a memory, whose row is still there, out of the index; `words` are those that it was put in under."""
    connection.exec_driver_sql(_REMOVE, (separate(words), number))


def clear(connection: Connection) -> None:
    """Take everything out, also of an index that is damaged."""
    connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('delete-all')")


def count(connection: Connection, words: Sequence[str], most: int) -> dict[str, int]:
    """Count the memories in which each of these words stands, up to `most`."""
    return {word: connection.exec_driver_sql(_COUNT, (_write_match([word]), most)).scalar() or 0 for word in words}


def count_all(connection: Connection) -> int:
    """Count all memories that are in it."""
    return int(connection.exec_driver_sql("SELECT count(*) FROM memory_words_docsize").scalar() or 0)


def rank(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str] | None, limit: int
) -> dict[int, float]:
    """Return the best of the memories in which any of these words stands; their counts are bm25's own affair."""
    return _rank(connection, _write_match(counts), 0, span, limit)


def rank_in_place(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str], limit: int
) -> dict[int, float]:
    """Return the same, by way of the place instead of the words: for a place with few memories."""
    return _rank(connection, _write_match(counts, span[0]), 0, span, limit)


def rank_newest(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str] | None, limit: int, newest: int
) -> dict[int, float]:
    """Return the same of the newest memories alone, so many as `newest` says."""
    match = _write_match(counts, "" if span is None else span[0])
    oldest = connection.exec_driver_sql(_OLDEST_OF_NEWEST, (match, newest)).scalar()
    return {} if oldest is None else _rank(connection, match, int(oldest), span, limit)


def find_fault(connection: Connection) -> str | None:
    """Tell what is wrong with the index, if anything; the connection must be one that may write."""
    try:
        connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('integrity-check')")
    except DatabaseError as error:
        if not is_index_damage(error.orig):
            raise
        return "the search index is damaged"
    differing = connection.exec_driver_sql(_DIFFERING).scalar()
    return f"the search index differs from the memories in {differing} rows" if differing else None


def _rank(
    connection: Connection, match: str, oldest: int, span: tuple[str, str] | None, limit: int
) -> dict[int, float]:
    parameters = (match, oldest, *(span or _EVERYTHING), limit)
    return {row[0]: row[1] for row in connection.exec_driver_sql(_RANK, parameters)}


def _write_match(words: Iterable[str], place: str = "") -> str:
    """Write the words, and the beginning of a namespace, in FTS5's language: any word, at that place."""
    match = f"words : ({' OR '.join(map(write_term, words))})"
    # As words, the place is only nearly the namespace: the rows that are found are compared with it.
    elements = " ".join(find_words(place, keep_all=True))
    return f'{match} AND place : ^ "{elements}"' if elements else match
