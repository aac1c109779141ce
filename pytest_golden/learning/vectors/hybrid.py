"""Search memories by words and by meaning, make the vectors that this needs, and fuse both rankings into one.

Vectors are made on search, so that saving a memory waits for no model: in batches, kept in the store, and held in one array
that is ranked by cosine. An embedder may be slow, hang or fail, so it is called in a thread of its own. Needs numpy.
"""

from __future__ import annotations

import base64
import binascii
import inspect
from contextlib import contextmanager
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import StorageError
from pytest_golden.learning.language_model.client import AbandonedThreads
from pytest_golden.learning.lessons.recalling import is_hidden
from pytest_golden.learning.model import HybridAnswer, MemoryHit, SearchMethod, VectorsError
from pytest_golden.learning.store import find_by_numbers
from pytest_golden.learning.vectors import store as stored
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.wording import count_of
from pytest_golden.storage.columns import namespace_range
from pytest_golden.storage.search import count_indexed, find_memories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from pytest_golden.learning.model import Embedder, Memory
    from pytest_golden.learning.vectors.store import Span
    from pytest_golden.storage.store import Store

    Units: TypeAlias = NDArray[np.float32]


#: The most memories whose vectors are compared: so many fit into memory, and are ranked in a fraction of a second.
MOST_VECTORS = 200_000
_FIRST_BATCH, _BATCH_TEXTS, _BATCH_BYTES = 16, 256, 200_000
# A token is a byte at least, and common models take 8,191 of them.
_TEXT_BYTES = 8_000
_MOST_OF_ERROR = 300
_DECIMALS = 6
_ON_DISK = np.dtype("<f4")
# Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009.
_FUSION_CONSTANT = 60
_LEAST_DEPTH = 100
_LEAST_SECONDS = 0.05
_NO_TIME = "time ran out; the next search continues, and `embed_memories` makes them all"


class HybridSearch:
    """A search with one embedder over one store, and the vectors of its model. Threads take turns. `clock` returns seconds; only differences matter."""

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
        self._most = most
        self._matrix: VectorMatrix | None = None
        self._state: tuple[int, int] | None = None
        self._seconds = seconds
        self._clock = clock
        self._turn = Lock()

    def find(self, prefix: tuple[str, ...], query: str, limit: int) -> HybridAnswer:
        """Search by words and by meaning; wait for the embedder up to the search's seconds in all.

        Raises:
            VectorsError: there are no vectors to search by.
        """
        deadline = self._clock() + self._seconds
        with self._in_turn(self._seconds):
            unit = self._embed_query(query, deadline)
            with self._store.read() as connection:
                self._refresh(connection, len(unit))
                numbers = self._find_missing(connection, namespace_range(prefix))
            missing = self._make_missing(numbers, deadline)
            with self._store.read() as connection:
                return self._rank(connection, prefix, query, unit, limit=limit, missing=missing)

    def embed(self, prefix: tuple[str, ...], seconds: float) -> int:
        """Make all missing vectors in these namespaces, each batch within `seconds`; return how many.

        Raises:
            VectorsError: not all could be made.
        """
        made = 0
        with self._in_turn(seconds), self._store.read() as connection:
            numbers = self._find_missing(connection, namespace_range(prefix))
        # A search meanwhile waits for one batch only.
        for words in self._cut_batches(numbers):
            with self._in_turn(seconds):
                self._make(words, seconds)
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

    def find_nearest(self, prefixes: Iterable[tuple[str, ...]], query: str, limit: int) -> list[Memory]:
        """Return the memories in these namespaces whose meaning is nearest, so many of each, without hidden lessons. Raise as `find` does."""
        deadline = self._clock() + self._seconds
        found: list[Memory] = []
        with self._in_turn(self._seconds):
            unit = self._embed_query(query, deadline)
            for prefix in prefixes:
                span = namespace_range(prefix)
                with self._store.read() as connection:
                    self._refresh(connection, len(unit))
                    numbers = self._find_missing(connection, span)
                self._make_missing(numbers, deadline)
                with self._store.read() as connection:
                    ranked = self._refresh(connection, len(unit)).rank(unit, span, max(limit, _LEAST_DEPTH))
                    found += (hit.memory for hit in islice(_read_shown(connection, ranked, limit), limit))
        return found

    def embed_texts(self, texts: Sequence[str]) -> Units:
        """Return a vector of length one, or one of zeros, for each text; wait up to the search's seconds.

        Raises:
            VectorsError: the embedder is late, or fails.
        """
        with self._in_turn(self._seconds):
            return self._asker.ask([shorten(redact(text)) for text in texts], self._seconds)

    def _embed_query(self, query: str, deadline: float) -> Units:
        if not query.strip():
            raise VectorsError("the query is blank")
        unit: Units = self._asker.ask([shorten(redact(query))], self._seconds_to(deadline))[0]
        if not unit.any():
            raise self._asker.blame("gave a vector of zeros for the query")
        return unit

    def _make_missing(self, numbers: Sequence[int], deadline: float) -> str | None:
        """Make vectors as far as there is time, and return a sentence on those that are still missing."""
        left = len(numbers)
        for words in self._cut_batches(numbers):
            if self._clock() >= deadline:
                return _explain_missing(left, _NO_TIME)
            try:
                self._make(words, self._seconds_to(deadline))
            except VectorsError as error:
                return _explain_missing(left, error)
            left -= len(words)
        return None

    def _rank(
        self,
        connection: Connection,
        prefix: tuple[str, ...],
        query: str,
        unit: Units,
        *,
        limit: int,
        missing: str | None,
    ) -> HybridAnswer:
        matrix, span = self._refresh(connection, len(unit)), namespace_range(prefix)
        amount, empty = matrix.count_empty(span)
        if amount == empty and missing is not None:
            raise VectorsError(missing)
        if amount == empty and amount:
            raise self._asker.blame(f"gave no vector but zeros for {count_of(amount, 'memory', 'memories')}")
        depth = max(limit, _LEAST_DEPTH)
        by_words = [number for number, _ in find_memories(connection, query, prefix, depth)]
        by_meaning = [number for number, _ in matrix.rank(unit, span, depth)]
        hits = tuple(islice(_read_shown(connection, fuse(by_words, by_meaning), limit), limit))
        notices = [missing, f"{count_of(empty, 'memory', 'memories')} there got a vector of zeros" if empty else None]
        return HybridAnswer(hits, SearchMethod.HYBRID, "; ".join(filter(None, notices)) or None)

    def _seconds_to(self, deadline: float) -> float:
        return max(_LEAST_SECONDS, deadline - self._clock())

    def _refresh(self, connection: Connection, dimension: int) -> VectorMatrix:
        """Return the vectors that are in the store now, also when another process added or removed some.

        Raises:
            VectorsError: there are too many, or they have another dimension.
        """
        matrix, state = self._matrix, stored.read_state(connection, self._asker.model)
        if matrix is None or matrix.dimension != dimension:
            matrix = VectorMatrix(dimension)
        elif state == self._state:
            return matrix
        amount = stored.count_vectors(connection, self._asker.model)
        if amount > self._most:
            raise VectorsError(f"{amount:,} memories have vectors, and at most {self._most:,} are compared")
        self._take_in(matrix, connection)
        if len(matrix) != amount or state[1] < matrix.last_stamp:
            # Some were removed or made again.
            matrix = VectorMatrix(dimension)
            self._take_in(matrix, connection)
        self._matrix, self._state = matrix, state
        return matrix

    def _find_missing(self, connection: Connection, span: Span | None) -> list[int]:
        """Return the numbers of the memories without a vector in these namespaces, the newest first.

        Raises:
            VectorsError: there are too many memories to compare.
        """
        if stored.count_searchable(connection, span, self._most) > self._most:
            raise VectorsError(f"more than {self._most:,} memories are there, and no more are compared")
        if self._matrix is not None and len(self._matrix) == count_indexed(connection):
            return []
        return stored.list_missing(connection, self._asker.model, span)

    def _cut_batches(self, numbers: Sequence[int]) -> Iterator[dict[int, str]]:
        """Yield the words of memories in batches; one call embeds a batch."""
        start, size = 0, _FIRST_BATCH
        while start < len(numbers):
            with self._store.read() as connection:
                words = stored.read_words(connection, numbers[start : start + size])
            yield from _cut_by_bytes(words)
            # Small batches first: a slow embedder finishes some in time, and the next search goes on from there.
            start, size = start + size, min(_BATCH_TEXTS, 2 * size)

    def _make(self, words: Mapping[int, str], seconds: float) -> None:
        """Make the vectors of a batch, and store them.

        Raises:
            VectorsError: the embedder or the store failed.
        """
        units = self._asker.ask([shorten(text) for text in words.values()], seconds)
        vectors = {number: write_vector(unit) for number, unit in zip(words, units, strict=True)}
        try:
            with self._store.write() as connection:
                # Otherwise vectors of two dimensions could be stored under one name.
                if self._matrix is None or self._matrix.dimension != units.shape[1]:
                    self._refresh(connection, units.shape[1])
                stored.put_vectors(connection, self._asker.model, vectors, words)
        except StorageError as error:
            raise VectorsError(f"the vectors were not kept: {error}") from None

    def _take_in(self, matrix: VectorMatrix, connection: Connection) -> None:
        """Add the vectors that are newer than those in the array."""
        rows = stored.read_since(connection, self._asker.model, matrix.last_stamp)
        matrix.add([Entry(row.number, row.stamp, row.namespace, self._read(row.vector, matrix)) for row in rows])

    def _read(self, vector: str, matrix: VectorMatrix) -> Units:
        unit = read_vector(vector)
        # It is damaged.
        if unit is None:
            return np.zeros(matrix.dimension, np.float32)
        if len(unit) != matrix.dimension:
            raise self._asker.blame(
                f"gives vectors of {matrix.dimension} numbers, and those kept under that name have {len(unit)}; name another "
                "model in its attribute `model`"
            )
        return unit


def _read_shown(connection: Connection, ranked: Sequence[tuple[int, float]], at_once: int) -> Iterator[MemoryHit]:
    for start in range(0, len(ranked), at_once):
        scores = dict(ranked[start : start + at_once])
        found = find_by_numbers(connection, scores)
        for number, score in scores.items():
            if number in found and not is_hidden(found[number]):
                yield MemoryHit(found[number], score)


def _explain_missing(amount: int, reason: object) -> str:
    return f"{count_of(amount, 'memory', 'memories')} there {'has' if amount == 1 else 'have'} no vector yet: {reason}"


def fuse(*rankings: Iterable[int]) -> list[tuple[int, float]]:
    """Return the numbers of all rankings with their sums of 1 / (60 + rank), the highest first. Each ranking is best first.

    Ranks count from 1. Among equals the highest number, which is the newest memory, comes first.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_FUSION_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))


class PatientAsker:
    """Call one embedder in a thread. While it hangs it is not called again, since threads cannot be stopped."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = name_model(embedder)
        self._embedder = embedder
        self._late: Future[Units] | None = None

    def ask(self, texts: Sequence[str], seconds: float) -> Units:
        """Return a vector of length one, or one of zeros, for each text.

        Raises:
            VectorsError: the embedder was late, or returned something else.
        """
        if self._late is not None and not self._late.done():
            raise self.blame("has not answered an earlier question yet")
        try:
            self._late = AbandonedThreads().submit(self._call, texts)
            return self._late.result(seconds)
        except VectorsError as error:
            raise self.blame(str(error)) from None
        except RuntimeError as error:
            raise self.blame(f"cannot be asked ({describe_error(error)})") from None
        except TimeoutError:
            raise self.blame(f"did not answer within {seconds:.3g} s") from None

    def _call(self, texts: Sequence[str]) -> Units:
        try:
            given = self._embedder(list(texts))
            if not inspect.iscoroutine(given):
                return read_units(given, len(texts))
            given.close()
        except VectorsError:
            raise
        except BaseException as error:  # foreign code may raise anything, SystemExit too
            raise VectorsError(f"failed ({describe_error(error)})") from None
        raise VectorsError("is a coroutine function, but must be a plain one")

    def blame(self, what: str) -> VectorsError:
        """Return an error that names this embedder."""
        return VectorsError(f"the embedder {self.model} {what}")


def name_model(embedder: Embedder) -> str:
    """Return the name under which this embedder's vectors are stored: its `model`, or else its own."""
    model = getattr(embedder, "model", None)
    if isinstance(model, str) and model.strip():
        return redact(model)
    named: Any = embedder.func if isinstance(embedder, partial) else embedder
    named = named if hasattr(named, "__qualname__") else type(named)
    return f"{named.__module__}.{named.__qualname__}"


def shorten(text: str) -> str:
    """Cut a text to the length that models accept."""
    if len(text) * 4 <= _TEXT_BYTES:
        return text
    return text.encode("utf-8", "replace")[:_TEXT_BYTES].decode("utf-8", "ignore")


def _cut_by_bytes(words: Mapping[int, str]) -> Iterator[dict[int, str]]:
    batch: dict[int, str] = {}
    room = _BATCH_BYTES
    for number, text in words.items():
        size = min(_TEXT_BYTES, 4 * len(text))
        if batch and size > room:
            yield batch
            batch, room = {}, _BATCH_BYTES
        batch[number] = text
        room -= size
    if batch:
        yield batch


def describe_error(error: BaseException) -> str:
    """Return the error of foreign code in one line without secrets."""
    line = " ".join(redact(f"{type(error).__name__}: {error}").split()).removesuffix(":")
    return line if len(line) <= _MOST_OF_ERROR else f"{line[:_MOST_OF_ERROR]}..."


class Entry(NamedTuple):
    """A memory's vector, of length one. A new vector has a new stamp."""

    number: int
    stamp: int
    namespace: str
    unit: Units


class VectorMatrix:
    """The vectors of memories, of one dimension. `last_stamp` is the highest stamp so far."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.last_stamp = 0
        self._units: Any = np.empty((0, dimension), np.float32)
        self._numbers: Any = np.empty(0, np.int64)
        # Positions of namespaces in `_namespaces`.
        self._places: Any = np.empty(0, np.int64)
        self._namespaces: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add vectors of further memories."""
        if entries:
            places = [self._namespaces.setdefault(one.namespace, len(self._namespaces)) for one in entries]
            self._places = np.append(self._places, places)
            self._numbers = np.append(self._numbers, [one.number for one in entries])
            self._units = np.vstack((self._units, [one.unit for one in entries]))
            self.last_stamp = max(self.last_stamp, *(one.stamp for one in entries))

    def rank(self, unit: Units, span: Span | None, limit: int) -> list[tuple[int, float]]:
        """Return the numbers of the nearest memories in these namespaces with their cosines, the highest first.

        Only positive cosines count as near. Among equals the newest comes first.
        """
        # The cosines of equal vectors differ a little with their row.
        cosines = np.round(self._units @ unit, _DECIMALS)
        near = np.flatnonzero((cosines > 0) & self._are_in(span))
        best = near[np.lexsort((-self._numbers[near], -cosines[near]))][:limit]
        return [(int(self._numbers[row]), float(cosines[row])) for row in best]

    def count_empty(self, span: Span | None) -> tuple[int, int]:
        """Return the number of vectors in these namespaces, and the number of those that are zeros."""
        are_in = self._are_in(span)
        return int(are_in.sum()), int((are_in & ~self._units.any(axis=1)).sum())

    def _are_in(self, span: Span | None) -> Any:
        """Return for each row whether it is of these namespaces; None means all."""
        is_in = [span is None or span[0] <= namespace < span[1] for namespace in self._namespaces]
        return np.array(is_in, bool)[self._places]


def read_units(given: Any, count: int) -> Units:
    """Return a row of length one for each of `count` texts; a vector of zeros stays as it is.

    Raises:
        VectorsError: `given` is not `count` rows of finite numbers.
    """
    try:
        rows = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise VectorsError(f"gave no rows of equal length ({error})") from None
    if rows.dtype.kind not in "iuf":
        raise VectorsError(f"gave no numbers ({type(given).__name__} of {rows.dtype})")
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise VectorsError(
            f"gave numbers of shape {rows.shape} for {count_of(count, 'text')}, instead of one vector each"
        )
    rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise VectorsError("gave NaN or infinite numbers")
    # Divide by the largest first: the square of a large number would be infinite.
    rows /= _never_zero(np.abs(rows).max(axis=1, keepdims=True))
    rows /= _never_zero(np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.astype(np.float32)


def write_vector(unit: Units) -> str:
    """Return a vector in its stored form: 32-bit floats, little-endian, in Base64."""
    return base64.b64encode(unit.astype(_ON_DISK).tobytes()).decode("ascii")


def read_vector(text: str) -> Units | None:
    """Read the text that `write_vector` returned; None for any other text."""
    try:
        unit = np.frombuffer(base64.b64decode(text, validate=True), _ON_DISK)
    except (binascii.Error, ValueError):
        return None
    return unit.astype(np.float32, copy=False) if len(unit) and np.isfinite(unit).all() else None


def _never_zero(sizes: Any) -> Any:
    return np.where(sizes == 0, 1.0, sizes)
