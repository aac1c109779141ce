"""The store of everything that is recorded. A transaction is durable when it ends.

It knows no tables; the `*store.py` modules of the stations do.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import utc_now
from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage import engine, sqlite
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import refuse_upgraded
from pytest_golden.storage.sqlite import MOUNTS, find_log, set_log_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.storage.location import Location
    from pytest_golden.storage.postgresql import PostgresqlDatabase
    from pytest_golden.storage.sqlite import SqliteDatabase
    from pytest_golden.storage.statements import Question


class Store:
    """An open store. Threads may share it: their writes go one after another. `path` is None for one in memory."""

    def __init__(
        self,
        place: Location,
        open_database: Callable[[], SqliteDatabase | PostgresqlDatabase],
        busy_seconds: float,
        *,
        only_reads: bool = False,
        follows: bool = False,
    ) -> None:
        self.where = place.shown
        self.path = place.path
        self._open_database = open_database
        self._database = open_database()
        self.is_on_server = place.is_on_server
        self._is_in_memory = place.path is None and not place.is_on_server
        self._busy_seconds = busy_seconds
        self._only_reads = only_reads
        self._follows = follows
        self._turn = threading.Lock()
        self._following = threading.Lock()
        self._is_closed = False
        self._writer: Connection | None = None
        self._identity = self._identify()
        self._log = find_log(self.path) if follows else None
        # Of the fork that goes on: whether this thread holds the turn, and whether every connection was closed.
        self._is_held = self._is_quiet = False
        self._is_left = False
        engine.watch_forks(self)

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        busy_seconds: float = engine.BUSY_SECONDS,
        mounts: Path = MOUNTS,
        upgrades: bool = False,
        only_reads: bool = False,
        follows: bool = False,
    ) -> Self:
        """Open a store by its file or URL. A missing file is created, and older tables are brought up to date.

        Tables on a server, which others use too, are brought up to date only with `upgrades`. A read-only file is opened
        for reading, and every write raises. `busy_seconds` is how long to wait for another writer; `mounts` is the mount
        table, which tells network file systems. With `only_reads` nothing is created or brought up to date, and every write
        raises. With `follows`, a file that replaces the opened one is opened in turn; otherwise that raises.

        Raises:
            SettingsError: no store can be at such a place.
            StorageError: it cannot be opened.
        """
        place = parse_location(location)
        open_database: Callable[[], SqliteDatabase | PostgresqlDatabase]
        if place.is_on_server:
            from pytest_golden.storage import postgresql

            open_database = partial(postgresql.open_on_server, place, busy_seconds, upgrades=upgrades)
        else:
            open_database = partial(sqlite.open_file, place, busy_seconds, mounts, only_reads=only_reads)
        return cls(place, open_database, busy_seconds, only_reads=only_reads, follows=follows)

    @staticmethod
    def look_at(location: str | Path, *, busy_seconds: float = 1.0) -> None:
        """Check that this program can open the store; change nothing.

        Raises:
            SettingsError: no store can be at such a place.
            StorageError: it is not, or another process holds it locked.
        """
        place = parse_location(location)
        if place.is_on_server:
            Store.open(location, busy_seconds=busy_seconds).close()
        else:
            sqlite.look_at_file(place, busy_seconds)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Return a connection in a transaction that excludes other writers; it is on the disk when the block ends.

        An exception inside the block rolls it back. Do not nest.

        Raises:
            StorageError: it cannot be written; `trouble` tells why.
        """
        with self.write_asking() as (connection, _):
            yield connection

    @contextmanager
    def write_asking(self, *questions: Question) -> Iterator[tuple[Connection, list[Iterator[Any]]]]:
        """Return what `write` does, and the rows of each question, which a server receives in the same trip as the lock.

        Raises:
            StorageError: it cannot be written; `trouble` tells why.
        """
        if not self._turn.acquire(timeout=self._busy_seconds):
            message = f"the store {self.where}: another thread of this process holds it locked"
            raise StorageError(message, StorageTrouble.LOCKED)
        try:
            self._make_usable(writes=True)
            with (
                engine.explained(self.where),
                self._take_writer() as connection,
                self._database.writing(connection, questions) as (version, answers),
            ):
                refuse_upgraded(version, self.where)
                yield connection, answers
        finally:
            self._turn.release()

    @contextmanager
    def write_aside(self) -> Iterator[Connection]:
        """Return a connection for one small write that may be lost, while others write what must be kept.

        It waits for nothing, and reaches the disk with the next durable write.

        Raises:
            StorageError: another writer is active, or it cannot be written.
        """
        # Not on a server: the one who waits for the turn would wait for the network too.
        takes_turn = self.path is not None
        if self._is_in_memory or (takes_turn and not self._turn.acquire(blocking=False)):
            raise engine.describe(self.where, StorageTrouble.LOCKED)
        try:
            self._make_usable(writes=True)
            with (
                engine.explained(self.where),
                self._database.engine.connect() as connection,
                self._database.writing_aside(connection) as version,
            ):
                refuse_upgraded(version, self.where)
                yield connection
        finally:
            if takes_turn:
                self._turn.release()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Return a connection that sees the store as it is at its first query, whatever is written meanwhile.

        Raises:
            StorageError: it cannot be read.
        """
        self._make_usable(writes=False)
        database = self._database
        with (
            engine.explained(self.where),
            database.engine.connect() as connection,
            database.reading(connection) as version,
        ):
            refuse_upgraded(version, self.where)
            yield connection

    def close(self) -> None:
        """Close it. Everything that was written is durable without this call."""
        self._is_closed = True
        self._close_writer()
        self._database.engine.dispose()

    def before_fork(self) -> None:
        """Stop all writers, and close the connections; both sides open new ones."""
        self._is_held = self._turn.acquire(timeout=engine.MOST_SECONDS)
        self._is_quiet = self._is_held
        if self._is_held and not self._is_in_memory:
            self._close_writer()
            self._is_quiet = engine.wait_for_readers(self._database.engine)
            self._database.engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Let writers continue."""
        if self._is_held:
            self._is_held = False
            self._turn.release()

    def after_fork_in_child(self) -> None:
        """Start without connections; a store that other threads were using cannot be used here."""
        self._turn, self._following, self._is_held = threading.Lock(), threading.Lock(), False
        if not self._is_in_memory:
            writer, self._writer = self._writer, None
            engine.leave_to_parent(self._database.engine, writer)
            self._is_left = not self._is_quiet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _take_writer(self) -> Iterator[Connection]:
        """Return the connection of the last successful write: a new one costs as much as a statement."""
        if self._writer is not None and self._writer.engine is not self._database.engine:
            self._close_writer()
        taken, self._writer = self._writer, None
        connection = taken or self._database.engine.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._writer = connection
        # A store in memory has only one, which readers need too.
        if self._is_closed or self._is_in_memory:
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _make_usable(self, *, writes: bool) -> None:
        if self._is_closed:
            raise StorageError(f"the store {self.where} is closed")
        if writes and self._only_reads:
            raise StorageError(f"the store {self.where} was opened for reading only", StorageTrouble.READ_ONLY)
        if self._is_left:
            message = f"the store {self.where} was in use when this process was forked; start such processes by spawn"
            raise StorageError(message)
        if self._identity != self._identify():
            self._follow()

    def _follow(self) -> None:
        """Open the file that has replaced the opened one."""
        if not self._follows:
            raise engine.describe(self.where, StorageTrouble.GONE)
        with self._following:
            found = self._identify()
            if found == self._identity:
                return
            self._database.engine.dispose()
            # Otherwise the new file would be read with the pages of the old one.
            set_log_aside(self.path, self._log, utc_now())
            self._database = self._open_database()
            self._identity, self._log = found, find_log(self.path)

    def _identify(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            # Never opened: closing any handle of the file would take the process's locks on it away.
            found = os.stat(self.where)  # noqa: PTH116 - twice as fast, and asked before every write
        except OSError:
            raise engine.describe(self.where, StorageTrouble.GONE) from None
        return found.st_dev, found.st_ino
