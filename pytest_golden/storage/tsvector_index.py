"""The full-text index of a PostgreSQL store: a tsvector for each memory, and a GIN index over them.

`storage.search` decides what is asked of it. The words are ours and not those of a text search configuration, so that
both databases find the same. A place is a word too, of a form that no other has: a digest of its namespace.
PostgreSQL's own rank does not know which words are rare: each word's rank is weighted here.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from sqlalchemy import text

from pytest_golden.storage.columns import begins_pairs, find_words, fold, separate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

# With the option the index takes new memories at once. Without it they wait in a list that every search reads through.
_MAKE = (
    "CREATE TABLE memory_words (number BIGINT CONSTRAINT pk_memory_words PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX ix_memory_words_words ON memory_words USING gin (words) WITH (fastupdate = off)",
)
# The digest is that of `_write_place`.
_ADD = text("""
INSERT INTO memory_words (number, words)
SELECT memories.number, CAST(given.words AS tsvector) || array_to_tsvector(ARRAY(
    SELECT '/' || left(encode(sha256(pg_catalog.convert_to(left(namespace, position), 'UTF8')), 'hex'), 32)
    FROM generate_series(1, length(namespace)) AS position WHERE substr(namespace, position, 1) = '/'
))
FROM unnest(CAST(:numbers AS bigint[]), CAST(:words AS text[])) AS given (number, words)
JOIN memories ON memories.number = given.number
""")
_REMOVE = text("DELETE FROM memory_words WHERE number = :number")
_CLEAR = text("DELETE FROM memory_words")
_COUNT = (
    "(SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE words @@ CAST(:word{0} AS tsquery) LIMIT :most) AS found)"
)
# What ANALYZE, which servers run by themselves, has found to stand in so many; what is no longer true is not asked.
_KNOWN_AS_COMMON = text("""
SELECT element FROM pg_catalog.pg_class AS index
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_catalog.pg_stats ON schemaname = nspname AND tablename = relname AND attname = 'words',
unnest(CAST(CAST(most_common_elems AS text) AS text[]), most_common_elem_freqs) AS known (element, frequency)
WHERE index.oid = to_regclass('memory_words') AND frequency * reltuples >= :most AND element = ANY(:words)
AND pg_stat_get_mod_since_analyze(index.oid) < reltuples / 5
""")
_COUNT_ALL = text("SELECT count(*) FROM memory_words")
_SIZE = text("SELECT coalesce(max(number), 0) FROM memory_words")
_RANK = """
SELECT number, {score} AS score FROM memory_words WHERE words @@ CAST(:match AS tsquery)
ORDER BY score DESC, number DESC LIMIT :limit
"""
_RANK_NEWEST = """
SELECT number, {score} AS score FROM (
    SELECT number, words FROM memory_words WHERE words @@ CAST(:match AS tsquery) ORDER BY number DESC LIMIT :newest
) AS newest ORDER BY score DESC, number DESC LIMIT :limit
"""
# By its estimates the planner would rather find all memories with a common word, and sort them: here it cannot.
_RANK_LATELY_ADDED = """
SELECT number, {score} AS score FROM (
    SELECT number, words FROM (SELECT number, words FROM memory_words ORDER BY number DESC LIMIT :looked_at) AS lately
    WHERE words @@ CAST(:match AS tsquery) ORDER BY number DESC LIMIT :newest
) AS newest ORDER BY score DESC, number DESC LIMIT :limit
"""
# So many rows are read for each that is ranked, before the index is asked.
_MOST_LOOKED_AT = 20
# Divided by one more than the logarithm of the memory's length.
_SCORE = "CAST(:weight{0} AS double precision) * ts_rank(words, CAST(:word{0} AS tsquery), 1)"
_DIFFERING = text("""
SELECT count(*) FROM memories FULL JOIN memory_words ON memory_words.number = memories.number
WHERE (memories.words IS NULL) <> (memory_words.number IS NULL)
""")
# How rows are found best depends on how common the words are, which a plan for any words does not know.
_PLAN_ANEW = text("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
# Limits of the type: https://www.postgresql.org/docs/current/textsearch-limitations.html
_MOST_LETTERS = 500
_MOST_PLACES, _LAST_PLACE = 255, 16_383
_MOST_BYTES = 500_000


def make(connection: Connection) -> None:
    """Make the empty index."""
    for statement in _MAKE:
        connection.exec_driver_sql(statement)


def add(connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
    """Put memories, whose rows are there, into the index: each a number and its words."""
    numbers = [number for number, _ in memories]
    connection.execute(_ADD, {"numbers": numbers, "words": [_write_vector(words) for _, words in memories]})


def remove(connection: Connection, number: int, words: str) -> None:  # noqa: ARG001 - the other index needs them
    """Take a memory out of the index."""
    connection.execute(_REMOVE, {"number": number})


def clear(connection: Connection) -> None:
    """Take everything out."""
    connection.execute(_CLEAR)


def count(connection: Connection, words: Sequence[str], most: int) -> dict[str, int]:
    """Count the memories in which each of these words stands, up to `most`.

    To count a common word costs as much as to rank as many memories, and most words of a message are common.
    """
    known = _find_common(connection, words, most)
    connection.execute(_PLAN_ANEW)
    asked = [word for word in words if word not in known]
    counts = dict.fromkeys(words, most)
    if asked:
        sums = text(f"SELECT {', '.join(_COUNT.format(position) for position in range(len(asked)))}")
        terms = {f"word{position}": _write_term(word) for position, word in enumerate(asked)}
        counts.update(zip(asked, connection.execute(sums, {"most": most, **terms}).one(), strict=True))
    return counts


def count_all(connection: Connection) -> int:
    """Count all memories that are in it."""
    return int(connection.execute(_COUNT_ALL).scalar_one())


def rank(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str] | None, limit: int
) -> dict[int, float]:
    """Return the best of the memories in which any of these words stands, each worth more the lower its count is."""
    return _rank(connection, _RANK, counts, span, limit=limit)


def rank_in_place(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str], limit: int
) -> dict[int, float]:
    """Return the same; the database finds by itself whether the place or the words are rarer."""
    return rank(connection, counts, span, limit)


def rank_newest(
    connection: Connection, counts: Mapping[str, int], span: tuple[str, str] | None, limit: int, newest: int
) -> dict[int, float]:
    """Return the same of the newest memories alone, so many as `newest` says."""
    bounds = {"limit": limit, "newest": newest}
    found = _rank(connection, _RANK_LATELY_ADDED, counts, span, **bounds, looked_at=newest * _MOST_LOOKED_AT)
    return found if len(found) >= limit else _rank(connection, _RANK_NEWEST, counts, span, **bounds)


def find_fault(connection: Connection) -> str | None:
    """Tell what is wrong with the index, if anything."""
    differing = connection.execute(_DIFFERING).scalar()
    return f"the search index differs from the memories in {differing} rows" if differing else None


def _find_common(connection: Connection, words: Iterable[str], most: int) -> set[str]:
    """Find the words that are known to stand in so many memories, without looking for them."""
    each = {_cut(word): word for word in words if not begins_pairs(word)}
    known = connection.execute(_KNOWN_AS_COMMON, {"words": list(each), "most": most}).scalars()
    return {each[element] for element in known}


def _rank(
    connection: Connection, query: str, counts: Mapping[str, int], span: tuple[str, str] | None, **limits: int
) -> dict[int, float]:
    size = connection.execute(_SIZE).scalar_one()
    words = list(enumerate(counts))
    score = " + ".join(_SCORE.format(position) for position, _ in words)
    values = {"match": _write_match(counts, "" if span is None else span[0]), **limits}
    terms = {f"word{position}": _write_term(word) for position, word in words}
    weights = {f"weight{position}": math.log1p(size / max(1, counts[word])) for position, word in words}
    rows = connection.execute(text(query.format(score=score)), {**values, **terms, **weights})
    return {row.number: row.score for row in rows}


def _write_vector(words: str) -> str:
    """Write the words of a memory in PostgreSQL's language for vectors, each with the places where it stands."""
    places: dict[str, list[int]] = {}
    room = _MOST_BYTES
    for place, word in enumerate(map(_cut, find_words(separate(words), keep_all=True)), 1):
        if word not in places:
            room -= len(word.encode())
            if room < 0:
                break
        stands = places.setdefault(word, [])
        if len(stands) < _MOST_PLACES:
            stands.append(min(place, _LAST_PLACE))
    return " ".join(f"'{word}':{','.join(map(str, stands))}" for word, stands in places.items())


def _write_match(words: Iterable[str], place: str = "") -> str:
    """Write the words, and the beginning of a namespace, in PostgreSQL's language: any word, at that place."""
    match = " | ".join(map(_write_term, words))
    return f"({match}) & {_write_place(place)}" if place else match


def _write_term(word: str) -> str:
    return f"'{_cut(word)}':*" if begins_pairs(word) else f"'{_cut(word)}'"


def _write_place(place: str) -> str:
    return f"'/{hashlib.sha256(place.encode()).hexdigest()[:32]}'"


def _cut(word: str) -> str:
    return fold(word)[:_MOST_LETTERS]
