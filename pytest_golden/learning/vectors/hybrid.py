"""Search memories by words and by meaning, make the vectors that this needs, and fuse both rankings into one.

Vectors are made on search, so that saving a memory waits for no model.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.clock import monotonic_seconds
from pytest_golden.learning.model import HybridAnswer, MemoryHit, SearchMethod, VectorsError
from pytest_golden.learning.store import find_by_numbers
from pytest_golden.learning.vectors.vector_keeping import MOST_VECTORS, PatientAsker, VectorKeeper, shorten
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import namespace_range
from pytest_golden.storage.search import find_memories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.model import Embedder
    from pytest_golden.learning.vectors.store import Span
    from pytest_golden.learning.vectors.vector_keeping import Units
    from pytest_golden.storage.store import Store

# Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009.
_FUSION_CONSTANT = 60
_LEAST_DEPTH = 100
_LEAST_SECONDS = 0.05


class HybridSearch:
    """A search with one embedder over one store. Threads take turns. `clock` returns seconds; only differences matter."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        seconds: float,
        *,
        most: int = MOST_VECTORS,
        clock: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._store = store
        self._asker = PatientAsker(embedder)
        self._keeper = VectorKeeper(store, self._asker, most)
        self._seconds = seconds
        self._clock = clock
        self._turn = Lock()

    def find(self, prefix: tuple[str, ...], query: str, limit: int) -> HybridAnswer:
        """Search by words and by meaning; wait for the embedder up to the search's seconds in all.

        Raises:
            VectorsError: there are no vectors to search by.
        """
        deadline = self._clock() + self._seconds
        span = namespace_range(prefix)
        with self._in_turn(self._seconds):
            unit = self._embed_query(query, deadline)
            asked = _Asked(prefix, span, query, unit, limit)
            with self._store.read() as connection:
                self._keeper.refresh(connection, len(unit))
                numbers = self._keeper.find_missing(connection, span)
                if not numbers:
                    return self._rank(connection, asked, _Missing())
            missing = self._make_missing(numbers, deadline)
            with self._store.read() as connection:
                return self._rank(connection, asked, missing)

    def embed(self, prefix: tuple[str, ...], seconds: float) -> int:
        """Make all missing vectors in these namespaces, each batch within `seconds`; return how many.

        Raises:
            VectorsError: not all could be made.
        """
        made = 0
        with self._in_turn(seconds), self._store.read() as connection:
            numbers = self._keeper.find_missing(connection, namespace_range(prefix))
        # A search meanwhile waits for one batch only.
        for words in self._keeper.cut_batches(numbers):
            with self._in_turn(seconds):
                self._keeper.make(words, seconds)
            made += len(words)
        return made

    @contextmanager
    def _in_turn(self, seconds: float) -> Iterator[None]:
        if not self._turn.acquire(timeout=seconds):
            raise self._asker.blame("is busy for another thread")
        try:
            yield
        finally:
            self._turn.release()

    def _embed_query(self, query: str, deadline: float) -> Units:
        if not query.strip():
            raise VectorsError("the query is blank")
        unit: Units = self._asker.ask([shorten(redact(query))], self._seconds_to(deadline))[0]
        if not unit.any():
            raise self._asker.blame("gave a vector of zeros for the query")
        return unit

    def _make_missing(self, numbers: Sequence[int], deadline: float) -> _Missing:
        left = len(numbers)
        for words in self._keeper.cut_batches(numbers):
            if self._clock() >= deadline:
                return _Missing(left)
            try:
                self._keeper.make(words, self._seconds_to(deadline))
            except VectorsError as error:
                return _Missing(left, error)
            left -= len(words)
        return _Missing()

    def _rank(self, connection: Connection, asked: _Asked, missing: _Missing) -> HybridAnswer:
        matrix = self._keeper.refresh(connection, len(asked.unit))
        amount, empty = matrix.count_empty(asked.span)
        if amount == empty and missing.amount:
            raise VectorsError(missing.explain())
        if amount == empty and amount:
            raise self._asker.blame(f"gave no vector but zeros for {_count_in_words(amount)}")
        depth = max(asked.limit, _LEAST_DEPTH)
        by_words = [number for number, _ in find_memories(connection, asked.query, asked.prefix, depth)]
        by_meaning = [number for number, _ in matrix.rank(asked.unit, asked.span, depth)]
        scores = dict(fuse(by_words, by_meaning)[: asked.limit])
        found = find_by_numbers(connection, scores)
        hits = tuple(MemoryHit(found[number], score) for number, score in scores.items() if number in found)
        notices = [missing.explain(), f"{_count_in_words(empty)} there got a vector of zeros" if empty else None]
        return HybridAnswer(hits, SearchMethod.HYBRID, "; ".join(filter(None, notices)) or None)

    def _seconds_to(self, deadline: float) -> float:
        return max(_LEAST_SECONDS, deadline - self._clock())


class _Asked(NamedTuple):
    """A question: the namespaces, the words, their vector, and the most hits."""

    prefix: tuple[str, ...]
    span: Span | None
    query: str
    unit: Units
    limit: int


class _Missing(NamedTuple):
    """The number of memories without a vector, and the error that prevented them."""

    amount: int = 0
    trouble: VectorsError | None = None

    def explain(self) -> str | None:
        if not self.amount:
            return None
        reason = self.trouble or "there was no time; the next search goes on, and `embed_memories` makes them all"
        return f"{_count_in_words(self.amount)} there {'has' if self.amount == 1 else 'have'} no vector yet: {reason}"


def _count_in_words(amount: int) -> str:
    return "1 memory" if amount == 1 else f"{amount:,} memories"


def fuse(*rankings: Iterable[int]) -> list[tuple[int, float]]:
    """Return the numbers of all rankings with their sums of 1 / (60 + rank), the highest first. Each ranking is best first.

    Ranks count from 1. Among equals the highest number, which is the newest memory, comes first.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_FUSION_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))
