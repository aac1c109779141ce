"""Full-text search over the newest versions of memories, and its index on each database.

A query is words, never operators. Ranking a memory costs microseconds, so words of very many memories are used only if
rarer words find too few.

Both databases split text into our own words, not those of a text search configuration, so both find the same memories.
PostgreSQL has a namespace as a word too, in a form that no other word has: its digest. PostgreSQL's rank does not know which
words are rare, so each word's rank is weighted here.
"""

from __future__ import annotations

import hashlib
import math
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, delete, text
from sqlalchemy.exc import DatabaseError

from pytest_golden.storage.columns import find_words, fold, is_beginning, namespace_range, separate, write_term
from pytest_golden.storage.engine import find_driver, is_index_damage
from pytest_golden.storage.schema import memory_vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    Span = tuple[str, str]
    Counts = Mapping[str, int]
    Scores = dict[int, float]


_SIZE = text("""
SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace >= :low AND namespace < :high LIMIT :most) AS found
""")
_INDEXED = text("""
SELECT number, words FROM memories WHERE words IS NOT NULL AND number > :last ORDER BY number LIMIT :most
""")
_DROP_VECTOR = delete(memory_vectors).where(memory_vectors.c.number == bindparam("the_number", type_=BigInteger()))
_INDEXED_AT_ONCE = 2_000
_MOST_WORDS = 12
_SHORTEST_BEGINNING = 4
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
    connection: Connection,
    query: str,
    prefix: Iterable[str],
    limit: int,
    *,
    bounds: SearchBounds | None = None,
    or_beginnings: bool = False,
) -> list[tuple[int, float]]:
    """Find memories that contain any word of the query: their numbers with a score, best first.

    With `or_beginnings`, if no memory has any of them, words that begin with one do: `authentic` finds `authentication`. Only namespaces that begin with the whole elements of `prefix` are searched. Among equal scores the newest comes first.
    """
    span = namespace_range(prefix)
    index = choose_index(connection)
    bounds = bounds or (_BOUNDS if connection.dialect.name == "sqlite" else _BOUNDS_ON_SERVER)
    words = find_words(query)
    rare, common = _choose_words(connection, index, words, bounds)
    if or_beginnings and not (rare or common):
        beginnings = [f"{word}*" for word in words if len(word) >= _SHORTEST_BEGINNING]
        rare, common = _choose_words(connection, index, beginnings, bounds)
    if limit < 1 or not (rare or common):
        return []
    if span is not None and _is_small(connection, span, bounds.small):
        found = index.rank_in_place(connection, {**rare, **common}, span, limit)
    else:
        found = index.rank(connection, rare, span, limit) if rare else {}
        if len(found) < limit and common:
            found = index.rank_newest(connection, common, span, limit, bounds.newest) | found
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


def _choose_words(
    connection: Connection, index: _Fts5Index | _TsvectorIndex, words: Sequence[str], bounds: SearchBounds
) -> tuple[Counts, Counts]:
    """Return the most telling words with their counts: rare ones, and some of those of too many memories to rank them all.

    The rarest ones count as rare, as long as all memories that contain them can be ranked.
    """
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
    return rare, dict.fromkeys(common[:_MOST_COMMON_WORDS], bounds.common)


def _is_small(connection: Connection, span: Span, most: int) -> bool:
    found = connection.execute(_SIZE, {"low": span[0], "high": span[1], "most": most})
    return int(found.scalar_one()) < most


def choose_index(connection: Connection) -> _Fts5Index | _TsvectorIndex:
    """Return the index of the connection's database."""
    return _Fts5Index() if connection.dialect.name == "sqlite" else _TsvectorIndex()


# Without a copy of the text. The namespace (`place`) narrows a search and does not count in the rank.
_MAKE_ON_FILE = (
    "CREATE VIRTUAL TABLE memory_words USING fts5(place, words, content='', tokenize='unicode61 remove_diacritics 2')",
    "INSERT INTO memory_words (memory_words, rank) VALUES ('rank', 'bm25(0.0, 1.0)')",
)
_ADD_ON_FILE = (
    "INSERT INTO memory_words (rowid, place, words) SELECT number, namespace, ? FROM memories WHERE number = ?"
)
_REMOVE_ON_FILE = (
    "INSERT INTO memory_words (memory_words, rowid, place, words) "
    "SELECT 'delete', number, namespace, ? FROM memories WHERE number = ?"
)
_COUNT_ON_FILE = "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ? LIMIT ?)"
_OF_A_WORD = "SELECT * FROM (SELECT rowid AS number, ? AS score FROM memory_words WHERE memory_words MATCH ? ORDER BY rowid DESC LIMIT ?)"
# Only as many memories are looked up as are wanted: the inner limit keeps their order.
_RANK_ON_FILE = (
    "SELECT number, score, sz FROM (SELECT number, sum(score) AS score FROM ({}) GROUP BY number ORDER BY 2 DESC, 1 DESC LIMIT -1) "
    "CROSS JOIN memories USING (number) CROSS JOIN memory_words_docsize ON id = number "
    "WHERE namespace >= ? AND namespace < ? LIMIT ?"
)
# Among equally good memories the shortest is best; so many more than wanted are compared.
_COMPARED = 50
# As in bm25: how much the length counts.
_SATURATION, _OF_LENGTH = 1.2, 0.75
_LARGEST_NUMBER = "SELECT max(number) FROM memories"
_DIFFERING_ON_FILE = (
    "SELECT count(*) FROM memories FULL JOIN memory_words_docsize ON number = memory_words_docsize.id "
    "WHERE (words IS NULL) <> (memory_words_docsize.id IS NULL)"
)
_EVERYTHING = ("", "~")  # Percent-encoding leaves nothing that sorts after a tilde.


class _Fts5Index:
    """The index of a SQLite store: FTS5. It holds no text, so `remove` needs the words that were added.

    `counts` are words, each with the number of memories that contain it. The rank is that of Okapi BM25 for words that occur once,
    https://en.wikipedia.org/wiki/Okapi_BM25. FTS5's own `bm25` takes three times as long: it counts once more all memories that
    contain each word, and all that are in the namespace.
    """

    def make(self, connection: Connection) -> None:
        """Make the empty index of a new store."""
        for statement in _MAKE_ON_FILE:
            connection.exec_driver_sql(statement)

    def add(self, connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
        """Add memories that are stored already: each a number and its words."""
        find_driver(connection).executemany(_ADD_ON_FILE, [(separate(words), number) for number, words in memories])

    def remove(self, connection: Connection, number: int, words: str) -> None:
        """Remove a memory that is still stored; `words` are those that it was added with."""
        connection.exec_driver_sql(_REMOVE_ON_FILE, (separate(words), number))

    def clear(self, connection: Connection) -> None:
        """Remove everything, from a damaged index too."""
        connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('delete-all')")

    def count(self, connection: Connection, words: Sequence[str], most: int) -> dict[str, int]:
        """Count the memories that contain each of these words, up to `most`."""
        statement = f"SELECT {', '.join([f'({_COUNT_ON_FILE})'] * len(words))}"
        parameters = tuple(chain.from_iterable((_write_match_on_file([word]), most) for word in words))
        return dict(zip(words, connection.exec_driver_sql(statement, parameters).one(), strict=True))

    def count_all(self, connection: Connection) -> int:
        """Count the memories in the index."""
        return int(connection.exec_driver_sql("SELECT count(*) FROM memory_words_docsize").scalar() or 0)

    def rank(self, connection: Connection, counts: Counts, span: Span | None, limit: int) -> Scores:
        """Return the best of the memories that contain any of these words; a rarer word is worth more."""
        return self.rank_newest(connection, counts, span, limit, -1)

    def rank_in_place(self, connection: Connection, counts: Counts, span: Span, limit: int) -> Scores:
        """Return the same for a namespace with few memories, which may be searched instead of the words."""
        return self.rank_newest(connection, counts, span, limit, -1)

    def rank_newest(self, connection: Connection, counts: Counts, span: Span | None, limit: int, newest: int) -> Scores:
        """Return the same among the newest memories that contain a word; `newest` is how many for each word."""
        total = connection.exec_driver_sql(_LARGEST_NUMBER).scalar() or 0
        place = "" if span is None else span[0]
        parameters: list[Any] = []
        for word, count in counts.items():
            parameters += (math.log1p(total / count), _write_match_on_file([word], place), newest)
        statement = _RANK_ON_FILE.format(" UNION ALL ".join([_OF_A_WORD] * len(counts)))
        parameters += (*(span or _EVERYTHING), limit + _COMPARED)
        found = connection.exec_driver_sql(statement, tuple(parameters)).all()
        lengths = [_count_words(sizes) for _, _, sizes in found]
        mean = sum(lengths) / max(1, len(found))
        scores = {
            number: score * (1 + _SATURATION) / (1 + _SATURATION * (1 - _OF_LENGTH + _OF_LENGTH * length / mean))
            for (number, score, _), length in zip(found, lengths, strict=True)
        }
        return dict(sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:limit])

    def find_fault(self, connection: Connection) -> str | None:
        """Return what is wrong with the index; None if nothing is. On SQLite the transaction must be one that writes."""
        try:
            connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('integrity-check')")
        except DatabaseError as error:
            if not is_index_damage(error.orig):
                raise
            return "the search index is damaged"
        differing = connection.exec_driver_sql(_DIFFERING_ON_FILE).scalar()
        return f"the search index differs from the memories in {differing} rows" if differing else None


def _count_words(sizes: bytes) -> int:
    """Return how many words a memory has, at least 1, from the sizes of its two columns as varints; a namespace has few words.

    https://www.sqlite.org/fts5.html#fts5_data_structures
    """
    return max(1, reduce(lambda number, byte: number << 7 | byte & 0x7F, sizes[1:], 0))


def _write_match_on_file(words: Iterable[str], place: str = "") -> str:
    """Return a query in FTS5's language: any of the words, in namespaces that begin with `place`."""
    match = f"words : ({' OR '.join(map(write_term, words))})"
    # Its words match more namespaces than this one, so the query compares the rows that are found with it.
    elements = " ".join(find_words(place, keep_all=True))
    return f'{match} AND place : ^ "{elements}"' if elements else match


# With the option the index takes new memories at once. Without it they wait in a list that every search reads through.
_MAKE_ON_SERVER = (
    "CREATE TABLE memory_words (number BIGINT CONSTRAINT pk_memory_words PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX ix_memory_words_words ON memory_words USING gin (words) WITH (fastupdate = off)",
)
# The digest is that of `_write_place`.
_ADD_ON_SERVER = text("""
INSERT INTO memory_words (number, words)
SELECT memories.number, CAST(given.words AS tsvector) || array_to_tsvector(ARRAY(
    SELECT '/' || left(encode(sha256(pg_catalog.convert_to(left(namespace, position), 'UTF8')), 'hex'), 32)
    FROM generate_series(1, length(namespace)) AS position WHERE substr(namespace, position, 1) = '/'
))
FROM unnest(CAST(:numbers AS bigint[]), CAST(:words AS text[])) AS given (number, words)
JOIN memories ON memories.number = given.number
""")
_REMOVE_ON_SERVER = text("DELETE FROM memory_words WHERE number = :number")
_CLEAR_ON_SERVER = text("DELETE FROM memory_words")
_COUNT_ON_SERVER = (
    "(SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE words @@ CAST(:word{0} AS tsquery) LIMIT :most) AS found)"
)
# Words that ANALYZE, which servers run by themselves, has found in so many memories; outdated statistics are ignored.
_KNOWN_AS_COMMON = text("""
SELECT element FROM pg_catalog.pg_class AS index
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_catalog.pg_stats ON schemaname = nspname AND tablename = relname AND attname = 'words',
unnest(CAST(CAST(most_common_elems AS text) AS text[]), most_common_elem_freqs) AS known (element, frequency)
WHERE index.oid = to_regclass('memory_words') AND frequency * reltuples >= :most AND element = ANY(:words)
AND pg_stat_get_mod_since_analyze(index.oid) < reltuples / 5
""")
_COUNT_ALL_ON_SERVER = text("SELECT count(*) FROM memory_words")
_INDEX_SIZE = text("SELECT coalesce(max(number), 0) FROM memory_words")
_RANK_ON_SERVER = """
SELECT number, {score} AS score FROM memory_words WHERE words @@ CAST(:match AS tsquery)
ORDER BY score DESC, number DESC LIMIT :limit
"""
_RANK_NEWEST = """
SELECT number, {score} AS score FROM (
    SELECT number, words FROM memory_words WHERE words @@ CAST(:match AS tsquery) ORDER BY number DESC LIMIT :newest
) AS newest ORDER BY score DESC, number DESC LIMIT :limit
"""
# With the query above, the planner may prefer to find all memories with a common word and sort them; here it cannot.
_RANK_LATELY_ADDED = """
SELECT number, {score} AS score FROM (
    SELECT number, words FROM (SELECT number, words FROM memory_words ORDER BY number DESC LIMIT :looked_at) AS lately
    WHERE words @@ CAST(:match AS tsquery) ORDER BY number DESC LIMIT :newest
) AS newest ORDER BY score DESC, number DESC LIMIT :limit
"""
# How many rows are read for each one that is ranked, before the index is used.
_MOST_LOOKED_AT = 20
# Divided by one more than the logarithm of the memory's length.
_SCORE = "CAST(:weight{0} AS double precision) * ts_rank(words, CAST(:word{0} AS tsquery), 1)"
_DIFFERING_ON_SERVER = text("""
SELECT count(*) FROM memories FULL JOIN memory_words ON memory_words.number = memories.number
WHERE (memories.words IS NULL) <> (memory_words.number IS NULL)
""")
# The best plan depends on how common the words are; a cached plan does not know it.
_PLAN_ANEW = text("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
# Limits of the type: https://www.postgresql.org/docs/current/textsearch-limitations.html
_MOST_LETTERS = 500
_MOST_PLACES, _LAST_PLACE = 255, 16_383
_MOST_BYTES = 500_000


class _TsvectorIndex:
    """The index of a PostgreSQL store, with the same methods: a tsvector for each memory, and a GIN index over them."""

    def make(self, connection: Connection) -> None:
        for statement in _MAKE_ON_SERVER:
            connection.exec_driver_sql(statement)

    def add(self, connection: Connection, memories: Sequence[tuple[int, str]]) -> None:
        numbers = [number for number, _ in memories]
        connection.execute(
            _ADD_ON_SERVER, {"numbers": numbers, "words": [_write_vector(words) for _, words in memories]}
        )

    def remove(self, connection: Connection, number: int, words: str) -> None:  # noqa: ARG002 - the other index needs them
        connection.execute(_REMOVE_ON_SERVER, {"number": number})

    def clear(self, connection: Connection) -> None:
        connection.execute(_CLEAR_ON_SERVER)

    def count(self, connection: Connection, words: Sequence[str], most: int) -> dict[str, int]:
        # Counting a common word costs as much as ranking as many memories, and most words of a message are common.
        known = _find_common(connection, words, most)
        connection.execute(_PLAN_ANEW)
        asked = [word for word in words if word not in known]
        counts = dict.fromkeys(words, most)
        if asked:
            sums = text(f"SELECT {', '.join(_COUNT_ON_SERVER.format(position) for position in range(len(asked)))}")
            terms = {f"word{position}": _write_term_on_server(word) for position, word in enumerate(asked)}
            counts.update(zip(asked, connection.execute(sums, {"most": most, **terms}).one(), strict=True))
        return counts

    def count_all(self, connection: Connection) -> int:
        return int(connection.execute(_COUNT_ALL_ON_SERVER).scalar_one())

    def rank(self, connection: Connection, counts: Counts, span: Span | None, limit: int) -> Scores:
        return _rank_on_server(connection, _RANK_ON_SERVER, counts, span, limit=limit)

    def rank_in_place(self, connection: Connection, counts: Counts, span: Span, limit: int) -> Scores:
        # The server finds by itself whether the place or the words are rarer.
        return self.rank(connection, counts, span, limit)

    def rank_newest(self, connection: Connection, counts: Counts, span: Span | None, limit: int, newest: int) -> Scores:
        bounds = {"limit": limit, "newest": newest}
        found = _rank_on_server(
            connection, _RANK_LATELY_ADDED, counts, span, **bounds, looked_at=newest * _MOST_LOOKED_AT
        )
        return found if len(found) >= limit else _rank_on_server(connection, _RANK_NEWEST, counts, span, **bounds)

    def find_fault(self, connection: Connection) -> str | None:
        differing = connection.execute(_DIFFERING_ON_SERVER).scalar()
        return f"the search index differs from the memories in {differing} rows" if differing else None


def _find_common(connection: Connection, words: Iterable[str], most: int) -> set[str]:
    """Return the words that statistics say are in so many memories, without counting."""
    each = {_cut(word): word for word in words if not is_beginning(word)}
    known = connection.execute(_KNOWN_AS_COMMON, {"words": list(each), "most": most}).scalars()
    return {each[element] for element in known}


def _rank_on_server(connection: Connection, query: str, counts: Counts, span: Span | None, **limits: int) -> Scores:
    size = connection.execute(_INDEX_SIZE).scalar_one()
    words = list(enumerate(counts))
    score = " + ".join(_SCORE.format(position) for position, _ in words)
    values = {"match": _write_match_on_server(counts, "" if span is None else span[0]), **limits}
    terms = {f"word{position}": _write_term_on_server(word) for position, word in words}
    weights = {f"weight{position}": math.log1p(size / max(1, counts[word])) for position, word in words}
    rows = connection.execute(text(query.format(score=score)), {**values, **terms, **weights})
    return {row.number: row.score for row in rows}


def _write_vector(words: str) -> str:
    """Return the words of a memory as a tsvector: each with its positions."""
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


def _write_match_on_server(words: Iterable[str], place: str = "") -> str:
    """Return a query in PostgreSQL's language: any of the words, in namespaces that begin with `place`."""
    match = " | ".join(map(_write_term_on_server, words))
    return f"({match}) & {_write_place(place)}" if place else match


def _write_term_on_server(word: str) -> str:
    return f"'{_cut(word.removesuffix('*'))}':*" if is_beginning(word) else f"'{_cut(word)}'"


def _write_place(place: str) -> str:
    return f"'/{hashlib.sha256(place.encode()).hexdigest()[:32]}'"


def _cut(word: str) -> str:
    return fold(word)[:_MOST_LETTERS]
