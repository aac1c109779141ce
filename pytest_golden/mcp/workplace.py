"""Where the tools work: one store, opened when it is first needed, and one manifest."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from pytest_golden.errors import StorageTrouble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from pytest_golden.errors import StorageError
    from pytest_golden.mcp.tool_services import Services
    from pytest_golden.storage.store import Store


class Workplace:
    """A store and a manifest. Threads may share it.

    `open_store` opens the store or tells why there is none; where there is none yet it is asked again by the next call.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        manifest: Path,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        self.manifest = manifest
        self.is_read_only = is_read_only
        self._open_store = open_store
        self._rules = rules
        self._turn = threading.RLock()
        self._store: Store | None = None
        self._services: Services | None = None

    def open(self) -> Store:
        """Open the store, if it is not open yet.

        Raises:
            GoldenError: there is no store, or it cannot be opened.
        """
        with self._turn:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def services(self) -> Services:
        """Return the services.

        Raises:
            GoldenError: there is no store, or it cannot be opened.
        """
        with self._turn:
            if self._services is None:
                # A client that connects waits for what is loaded before: what a call needs is loaded by the first one.
                from pytest_golden.mcp.tool_services import Services

                on: Callable[..., Services] = Services.on
                self._services = on(self.open(), self._rules)
            return self._services

    def notice(self, error: StorageError) -> None:
        """Close a store whose file was moved or removed: the next call opens the file that is there then, or creates one."""
        if error.trouble is StorageTrouble.GONE:
            self.close()

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._turn:
            store, self._store, self._services = self._store, None, None
        if store is not None:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
