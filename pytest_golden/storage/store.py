"""The store: one place where everything that is recorded goes, by transactions that are durable when they end.

It knows no table; the stations' `store.py` modules do.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Self

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.engine import BUSY_SECONDS, begun, describe, explain, explained, make_engine, transaction
from pytest_golden.storage.file_system import MOUNTS, keeps_shared_memory
from pytest_golden.storage.files import is_alone
from pytest_golden.storage.folder import make_folder
from pytest_golden.storage.journal_mode import set_journal_mode
from pytest_golden.storage.location import make_url_of_frozen, parse_location
from pytest_golden.storage.version import HEAD, find_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from pytest_golden.storage.location import Location

# What SQLite says of a folder in which it cannot put the log beside the file.
_IN_READ_ONLY_FOLDER = frozenset({StorageTrouble.UNREACHABLE, StorageTrouble.READ_ONLY})


class Store:
    """An open store. Threads may share it: their writes go one after another. `path` is None for one in memory."""

    def __init__(self, place: Location, engine: Engine, busy_seconds: float) -> None:
        self.where = place.shown
        self.path = place.path
        self._engine = engine
        self._busy_seconds = busy_seconds
        self._turn = threading.Lock()
        self._is_closed = False
        self._writer: Connection | None = None
        self._identity = self._identify()

    @classmethod
    def open(cls, location: str | Path, *, busy_seconds: float = BUSY_SECONDS, mounts: Path = MOUNTS) -> Self:
        """Open a store by its file or URL; it is made when it is not there, and its tables are brought up to date.

        A file that may only be read is opened for reading: then every write raises. `busy_seconds` is how long
        another writer is waited for; `mounts` is the table that tells network file systems.

        Raises:
            SettingsError: no store can be at such a place.
            StorageError: it cannot be opened.
        """
        place = parse_location(location)
        if place.path is not None:
            _prepare_folder(place.path)
        engine = _open_engine(place, busy_seconds)
        try:
            with explained(place.shown):
                _bring_up_to_date(engine, place, busy_seconds, mounts)
            return cls(place, engine, busy_seconds)
        except BaseException:
            engine.dispose()
            raise

    @staticmethod
    def look_at(path: Path, *, busy_seconds: float = 1.0) -> None:
        """Make sure that a file is a store that this program can open; nothing is changed.

        Raises:
            StorageError: it is not, or another process holds it locked.
        """
        place = parse_location(path)
        engine = _open_engine(place, busy_seconds)
        try:
            with explained(place.shown), engine.connect() as connection:
                find_version(connection, place.shown)
        finally:
            engine.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a connection in a transaction that nobody else writes beside; it is on the disk when the block ends.

        An exception inside the block leaves nothing of it. Not to be nested.

        Raises:
            StorageError: it cannot be written; `trouble` tells why.
        """
        if not self._turn.acquire(timeout=self._busy_seconds):
            message = f"the store {self.where}: another thread of this process holds it locked"
            raise StorageError(message, StorageTrouble.LOCKED)
        try:
            self._refuse_closed()
            if self._identity != self._identify():
                raise describe(self.where, StorageTrouble.GONE)
            with explained(self.where), self._take_writer() as connection, begun(connection, "IMMEDIATE"):
                yield connection
        finally:
            self._turn.release()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees the store as it is at its first look, whatever is written meanwhile.

        Raises:
            StorageError: it cannot be read.
        """
        self._refuse_closed()
        with explained(self.where), transaction(self._engine, "DEFERRED") as connection:
            yield connection

    def close(self) -> None:
        """Close it. What was written stays readable whether or not this is called."""
        self._is_closed = True
        self._close_writer()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _take_writer(self) -> Iterator[Connection]:
        """Give the connection of the last write that ended well: to fetch one anew costs as much as a statement."""
        taken, self._writer = self._writer, None
        connection = taken or self._engine.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._writer = connection
        # That of a store in memory is its only one, which readers want too.
        if self._is_closed or self.path is None:
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            if self._is_closed:
                # The engine may have let go of its connections by now, and would never close this one.
                writer.detach()
            writer.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StorageError(f"the store {self.where} is closed")

    def _identify(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            # Never opened: closing any handle of the file would take the process's locks on it away.
            found = os.stat(self.where)  # noqa: PTH116 - twice as fast, and asked before every write
        except OSError:
            raise describe(self.where, StorageTrouble.GONE) from None
        return found.st_dev, found.st_ino


def _prepare_folder(path: Path) -> None:
    try:
        if path.exists() and not path.is_file():
            raise StorageError(f"the store {path}: that is no file; give the path of a file")
        make_folder(path.parent)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"the store {path}: {path.parent} is no folder; give another path") from None
    except OSError as error:
        raise explain(str(path), error) from error


def _open_engine(place: Location, busy_seconds: float) -> Engine:
    """Make an engine that has connected once; one for a file in a folder that may only be read takes no locks."""
    engine = make_engine(place.url, busy_seconds=busy_seconds, is_in_memory=place.path is None)
    try:
        with explained(place.shown), transaction(engine, "DEFERRED") as connection:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")
    except StorageError as error:
        engine.dispose()
        if error.trouble not in _IN_READ_ONLY_FOLDER or place.path is None or os.access(place.path.parent, os.W_OK):
            raise
        if not is_alone(place.path):
            raise describe(place.shown, StorageTrouble.READ_ONLY) from error
        return make_engine(make_url_of_frozen(place.path))
    return engine


def _bring_up_to_date(engine: Engine, place: Location, busy_seconds: float, mounts: Path) -> None:
    with transaction(engine, "DEFERRED") as connection:
        version = find_version(connection, place.shown)
    if place.path is not None:
        mode = "wal" if keeps_shared_memory(place.path.parent, mounts) else "delete"
        deadline = time.monotonic() + busy_seconds
        set_journal_mode(engine, mode, deadline=deadline, must=version is None or mode == "delete")
    if version == HEAD:
        return
    with transaction(engine, "IMMEDIATE") as connection:
        # Another process may have done it while this one waited.
        if find_version(connection, place.shown) != HEAD:
            import_module("pytest_golden.storage.upgrade").upgrade(connection)
