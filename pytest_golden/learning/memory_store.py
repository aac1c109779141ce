"""The memory store: values under namespaces and keys, with their versions, found again by words and by what they mean.

Safe between threads.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import utc_now
from pytest_golden.journal.store import find_default_store
from pytest_golden.learning import store as rows
from pytest_golden.learning.memories import check_count, check_key, check_namespace, check_seconds, draft_memory
from pytest_golden.learning.model import HybridAnswer, SearchMethod, VectorsError
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.learning.model import Embedder, Memory, MemoryHit
    from pytest_golden.learning.vectors.hybrid import HybridSearch


class MemoryStore:
    """Memories in a store that stays the caller's; `MemoryStore.open` opens one of its own.

    Everything that is saved is redacted first. Every method raises `StorageError` when the store cannot be used.

    Args:
        store: where they are.
        embedder: gives a vector for each of some texts: `embedder(texts) -> vectors`, rows of numbers or a numpy array.
            Its attribute `model`, when it has one, is the name that vectors are kept under, else its own name is.
        clock: tells the time.
        embedder_seconds: how long a search waits for the embedder at most.
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
        self._embedder_seconds = _check_seconds(embedder_seconds)
        self._owns_store = False
        self._hybrid: HybridSearch | None = None
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
        """Open the memories of a store, by its file or URL; None is the one that the gate uses in this folder.

        Raises:
            SettingsError: no store can be at such a place.
            StorageError: it cannot be opened.
        """
        store = Store.open(find_default_store() if url is None else url)
        opened = cls(store, embedder, clock, embedder_seconds=embedder_seconds)
        opened._owns_store = True
        return opened

    @property
    def store(self) -> Store:
        """Return the store that the memories are in."""
        return self._store

    def close(self) -> None:
        """Close the store, when it was opened by `open`."""
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

        Another value than the newest makes a new version. An equal one makes none: tags and provenance that are given
        then replace those that are there.

        Args:
            namespace: such as `("plans", "global")`.
            key: names the memory in its namespace.
            value: a mapping of JSON content, 1 MiB at most.
            tags: words that it is found by as well.
            provenance: where it comes from: `{run, commit, steps}`.

        Raises:
            ValueError: a part has a value that is not allowed; the message names it.
        """
        draft = draft_memory(namespace, key, value, tags, provenance)
        with self._store.write() as connection:
            return rows.put_memory(connection, draft, to_ms(self._clock()))

    def save_memories(self, memories: Iterable[Mapping[str, Any]]) -> tuple[Memory, ...]:
        """Save many in one transaction, all or none; each is a mapping of the arguments of `save_memory`.

        It may also have `words`, further ones that the memory is found by.

        Raises:
            ValueError: a part has a value that is not allowed, or an argument is missing or unknown.
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
        """Return the newest version of a memory, or the given one; None when there is none."""
        with self._store.read() as connection:
            return rows.find_memory(connection, check_namespace(namespace), check_key(key), version)

    def history(self, namespace: Iterable[str], key: str) -> tuple[Memory, ...]:
        """Return all versions of a memory, oldest first."""
        with self._store.read() as connection:
            return rows.list_versions(connection, check_namespace(namespace), check_key(key))

    def delete(self, namespace: Iterable[str], key: str) -> bool:
        """Delete a memory with all its versions, and tell whether there was one."""
        place, name = check_namespace(namespace), check_key(key)
        with self._store.write() as connection:
            return rows.delete_memory(connection, place, name)

    def list_namespaces(self, prefix: Iterable[str] = ()) -> tuple[tuple[str, ...], ...]:
        """Return the namespaces that begin with these whole elements and hold something, sorted."""
        with self._store.read() as connection:
            return rows.list_namespaces(connection, check_namespace(prefix))

    def list_keys(self, namespace: Iterable[str]) -> tuple[str, ...]:
        """Return the keys in exactly this namespace, sorted."""
        with self._store.read() as connection:
            return rows.list_keys(connection, check_namespace(namespace))

    def search_memories(self, namespace: Iterable[str], query: str, limit: int = 10) -> tuple[MemoryHit, ...]:
        """Find the memories in which any word of the query stands, best first; newest versions only.

        Args:
            namespace: its first elements; `()` is everywhere.
            query: words; what is an operator elsewhere is text here.
            limit: how many at most.

        Raises:
            ValueError: the limit is below 1, or the namespace is none.
        """
        prefix = check_namespace(namespace)
        check_count("limit", limit, least=1)
        with self._store.read() as connection:
            return rows.search(connection, prefix, query, limit)

    def hybrid_search(self, namespace: Iterable[str], query: str, limit: int = 10) -> HybridAnswer:
        """Find memories by words and by what they mean, the two rankings fused by reciprocal rank.

        Vectors that are missing are made first, as far as there is time; saving waits for no embedder. Without one, or
        when it gives nothing that can be used, words alone are searched by, and the answer's notice says why. No error of
        an embedder is raised.

        Args:
            namespace: its first elements; `()` is everywhere.
            query: words; the embedder gets it redacted.
            limit: how many at most.

        Raises:
            ValueError: the limit is below 1, or the namespace is none.
        """
        prefix = check_namespace(namespace)
        check_count("limit", limit, least=1)
        try:
            return self._by_both().find(prefix, query, limit)
        except VectorsError as error:
            notice = f"searched by words alone: {error}"
        return HybridAnswer(self.search_memories(prefix, query, limit), SearchMethod.WORDS, notice)

    def embed_memories(self, namespace: Iterable[str] = (), *, batch_seconds: float = 60.0) -> int:
        """Make the vectors that memories in these namespaces lack, and return how many; a later search needs to make none.

        Args:
            namespace: its first elements; `()` is everywhere.
            batch_seconds: how long the embedder may take for up to 256 of them.

        Raises:
            GoldenError: there is no embedder, or it failed; what was made by then is kept.
            ValueError: the namespace is none.
        """
        return self._by_both().embed(check_namespace(namespace), batch_seconds)

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
                    message = f"it takes an extra: pip install 'pytest-golden-projects[embeddings]' ({error})"
                    raise VectorsError(message) from None
                self._hybrid = HybridSearch(self._store, self._embedder, self._embedder_seconds)
            return self._hybrid


def _check_seconds(seconds: object) -> float:
    checked = check_seconds("embedder_seconds", seconds)
    if not checked:
        raise ValueError(f"embedder_seconds must be more than 0, not {seconds!r}")
    return checked
