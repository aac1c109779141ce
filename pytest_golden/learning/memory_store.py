"""Store values under namespaces and keys, with their versions, and find them by words and by meaning. Safe between threads."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.journal.store import find_default_store
from pytest_golden.learning import store as rows
from pytest_golden.learning.lessons.recalling import is_hidden
from pytest_golden.learning.memories import check_key, check_namespace, draft_memory
from pytest_golden.learning.model import HybridAnswer, SearchMethod, VectorsError
from pytest_golden.settings import EMBEDDER_VARIABLE
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from pytest_golden.values.checking import check_count, check_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.learning.model import Embedder, Memory, MemoryHit
    from pytest_golden.learning.vectors.hybrid import HybridSearch
    from pytest_golden.learning.vectors.tasks_alike import TaskSearch

_log = logging.getLogger(__name__)
# Hints come in two seconds at most.
_HINT_SECONDS = 1.0


class MemoryStore:
    """Memories in a store that the caller owns; `MemoryStore.open` opens one of its own.

    Every value is redacted before it is saved. Every method raises `StorageError` when the store cannot be used.

    Args:
        store: the store of the memories.
        embedder: returns a vector for each text: `embedder(texts) -> vectors`, rows of numbers or a numpy array. Vectors are
            stored under its attribute `model`, or else under its own name.
        clock: returns the present time.
        embedder_seconds: the longest time that a search waits for the embedder.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
        *,
        embedder_seconds: float = 5.0,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock or utc_now
        self._embedder_seconds = check_timeout(embedder_seconds, "embedder_seconds")
        self._owns_store = False
        self._hybrid: HybridSearch | None = None
        self._tasks: TaskSearch | None = None
        self._turn = Lock()

    @classmethod
    def open(
        cls,
        url: str | Path | None = None,
        *,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
        embedder_seconds: float = 5.0,
    ) -> Self:
        """Open the memories of a store, by its file or URL; None opens the store that the gate uses in this folder.

        Raises:
            SettingsError: the location cannot be one of a store.
            StorageError: it cannot be opened.
        """
        store = Store.open(find_default_store() if url is None else url)
        opened = cls(store, embedder, clock, embedder_seconds=embedder_seconds)
        opened._owns_store = True
        return opened

    @classmethod
    def from_env(cls, store: Store, environ: Mapping[str, str]) -> Self:
        """Return the memories of a store for hints, with the embedder that GOLDEN_EMBEDDING_MODEL names.

        It waits a second for the embedder. One that cannot be used is logged, and the search is by words alone.
        """
        embedder: Embedder | None = None
        if environ.get(EMBEDDER_VARIABLE, "").strip():
            from pytest_golden.learning.vectors.embedders import embedder_from_env

            try:
                embedder = embedder_from_env(environ)
            except SettingsError as error:
                _log.warning("memories are found by words alone: %s", error)
        return cls(store, embedder, embedder_seconds=_HINT_SECONDS)

    @property
    def store(self) -> Store:
        """Return the store of the memories."""
        return self._store

    def close(self) -> None:
        """Close the store if `open` opened it."""
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save_memory(
        self,
        namespace: Iterable[str],
        key: str,
        value: Mapping[str, Any],
        *,
        tags: Iterable[str] = (),
        provenance: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Save a value; it is on the disk when this returns.

        A value that differs from the newest makes a new version. An equal one makes none; its tags and provenance, if given,
        replace the stored ones.

        Args:
            namespace: such as `("plans", "global")`.
            key: the name of the memory in its namespace.
            value: a mapping of JSON content, up to 1 MiB.
            tags: further words that find it.
            provenance: its origin: `{run, commit, steps}`.

        Raises:
            ValueError: a part has an invalid value; the message names it.
        """
        draft = draft_memory(namespace, key, value, tags, provenance)
        with self._store.write() as connection:
            return rows.put_memory(connection, draft, to_ms(self._clock()))

    def save_memories(self, memories: Iterable[Mapping[str, Any]]) -> tuple[Memory, ...]:
        """Save many in one transaction, all or none; each is a mapping of the arguments of `save_memory`.

        It may also have `words`, further words that find the memory.

        Raises:
            ValueError: a part has an invalid value, or an argument is missing or unknown.
        """
        drafts = []
        for number, memory in enumerate(memories, 1):
            try:
                drafts.append(draft_memory(**memory))
            except (TypeError, ValueError) as error:
                raise ValueError(f"memory {number}: {error}") from None
        with self._store.write() as connection:
            return rows.put_memories(connection, drafts, to_ms(self._clock()))

    def get(self, namespace: Iterable[str], key: str, *, version: int | None = None) -> Memory | None:
        """Return the newest version of a memory, or the given one; None when it does not exist."""
        with self._store.read() as connection:
            return rows.find_memory(connection, check_namespace(namespace), check_key(key), version)

    def history(self, namespace: Iterable[str], key: str) -> tuple[Memory, ...]:
        """Return all versions of a memory, oldest first."""
        with self._store.read() as connection:
            return rows.list_versions(connection, check_namespace(namespace), check_key(key))

    def delete(self, namespace: Iterable[str], key: str) -> bool:
        """Delete a memory with all its versions, and return whether it existed."""
        elements, name = check_namespace(namespace), check_key(key)
        with self._store.write() as connection:
            return rows.delete_memory(connection, elements, name)

    def list_namespaces(self, prefix: Iterable[str] = ()) -> tuple[tuple[str, ...], ...]:
        """Return the namespaces that begin with these whole elements and hold something, sorted."""
        with self._store.read() as connection:
            return rows.list_namespaces(connection, check_namespace(prefix))

    def list_keys(self, namespace: Iterable[str]) -> tuple[str, ...]:
        """Return the keys in exactly this namespace, sorted."""
        with self._store.read() as connection:
            return rows.list_keys(connection, check_namespace(namespace))

    def search_memories(
        self,
        namespace: Iterable[str],
        query: str,
        limit: int = 10,
        *,
        tags: Iterable[str] = (),
        where: Mapping[str, Any] | None = None,
    ) -> tuple[MemoryHit, ...]:
        """Find the memories that contain any word of the query, best first; newest versions only.

        If none has any of its words, those with a word that begins with one of at least four letters: `authentic` finds `authentication`.

        Lessons that may not be shown, because they wait for approval or were rejected, are left out. Where very many memories have a
        word, those with rarer words and the newest are looked at.

        Args:
            namespace: the first elements of the namespaces to search; `()` searches all.
            query: words; operators of search languages are text. If it is blank, the tags are what is searched for.
            limit: the most memories to return.
            tags: only memories that have all of these.
            where: only memories whose values have these parts: `{"context.domain": "orders"}`.

        Raises:
            ValueError: the limit is below 1, or the namespace is invalid.
        """
        prefix = check_namespace(namespace)
        check_count("limit", limit, least=1)
        wanted, parts, asked = frozenset(tags), dict(where or {}), limit
        query = query if query.strip() else " ".join(sorted(wanted))
        with self._store.read() as connection:
            while True:
                hits = rows.search(connection, prefix, query, asked, or_beginnings=True)
                shown = [
                    hit
                    for hit in hits
                    if wanted <= frozenset(hit.memory.tags)
                    and all(_find_part(hit.memory.value, path) == part for path, part in parts.items())
                    and not is_hidden(hit.memory)
                ]
                if len(shown) >= limit or len(hits) < asked:
                    return tuple(shown[:limit])
                asked *= 2

    def hybrid_search(self, namespace: Iterable[str], query: str, limit: int = 10) -> HybridAnswer:
        """Find memories by words and by meaning, and fuse the two rankings by reciprocal rank; as there, without hidden lessons.

        Missing vectors are made first, as far as there is time; saving a memory never waits for an embedder. Without an
        embedder, or when it returns nothing usable, the search is by words alone, and the answer's notice says why. An
        embedder's error is never raised.

        Args:
            namespace: the first elements of the namespaces to search; `()` searches all.
            query: words; the embedder gets them redacted.
            limit: the most memories to return.

        Raises:
            ValueError: the limit is below 1, or the namespace is invalid.
        """
        prefix = check_namespace(namespace)
        check_count("limit", limit, least=1)
        try:
            return self._by_both().find(prefix, query, limit)
        except VectorsError as error:
            notice = f"searched by words alone: {error}"
        return HybridAnswer(self.search_memories(prefix, query, limit), SearchMethod.WORDS, notice)

    def embed_memories(self, namespace: Iterable[str] = (), *, batch_seconds: float = 60.0) -> int:
        """Make the missing vectors of memories in these namespaces, so that a later search makes none; return how many.

        Args:
            namespace: the first elements of the namespaces; `()` means all.
            batch_seconds: the time that the embedder has for up to 256 texts.

        Raises:
            GoldenError: there is no embedder, or it failed; the vectors that were made are stored.
            ValueError: the namespace is invalid.
        """
        return self._by_both().embed(check_namespace(namespace), batch_seconds)

    def find_tasks_alike(self, task: str) -> Mapping[str, float]:
        """Return the ids of lessons and plans from tasks that mean the same as this one, with their likeness from 0.5 to 1.

        Empty without an embedder, and where it is late, fails, or cannot tell tasks apart, which is logged.
        """
        if self._embedder is None or not task.strip():
            return {}
        try:
            hybrid = self._by_both()
            with self._turn:
                if self._tasks is None:
                    from pytest_golden.learning.vectors.tasks_alike import TaskSearch

                    self._tasks = TaskSearch(self._store, hybrid)
            return self._tasks.find(task)
        except VectorsError as error:
            _log.warning("tasks are found by words alone: %s", error)
            return {}

    def _by_both(self) -> HybridSearch:
        if self._embedder is None:
            raise VectorsError(
                "there is no embedder; give one to the MemoryStore, such as `embedder_from_env(os.environ)`"
            )
        with self._turn:
            if self._hybrid is None:
                try:
                    from pytest_golden.learning.vectors.hybrid import HybridSearch
                except ImportError as error:
                    message = f"it needs an extra: pip install 'pytest-golden-projects[embeddings]' ({error})"
                    raise VectorsError(message) from None
                self._hybrid = HybridSearch(self._store, self._embedder, self._embedder_seconds)
            return self._hybrid


def _find_part(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
