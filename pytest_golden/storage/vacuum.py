"""What was removed from a store, given back to the disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from pytest_golden.storage.engine import BUSY_SECONDS, explained

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.storage.store import Store


def give_back(store: Store) -> int | None:
    """Write the file anew without the room of what was removed, and give by how many bytes it is smaller.

    Writers wait meanwhile, and as much room is needed again. None: a server does so by itself.

    Raises:
        StorageError: it cannot be written.
    """
    if store.path is None:
        return None
    before = _measure(store.path)
    with (
        explained(store.where),
        closing(sqlite3.connect(store.path, timeout=BUSY_SECONDS, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("VACUUM")
        # Only then is the file itself smaller; with readers about, later.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before - _measure(store.path)


def _measure(path: Path) -> int:
    """Give the bytes of the file and of its log, in which much of it may still be."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())
