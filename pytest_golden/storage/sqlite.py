"""SQLite below a store: its file, or its memory. What is PostgreSQL's is in `postgresql.py`."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.engine import (
    begun,
    describe,
    explain,
    explained,
    find_driver,
    make_engine,
    transaction,
)
from pytest_golden.storage.file_system import keeps_shared_memory
from pytest_golden.storage.files import is_alone
from pytest_golden.storage.folder import make_folder
from pytest_golden.storage.journal_mode import set_journal_mode
from pytest_golden.storage.location import make_url_of_frozen
from pytest_golden.storage.prepared import ask
from pytest_golden.storage.version import HEAD, Begun, describe_older, find_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from pytest_golden.storage.location import Location
    from pytest_golden.storage.prepared import Question

# What SQLite says of a folder in which it cannot put the log beside the file.
_IN_READ_ONLY_FOLDER = frozenset({StorageTrouble.UNREACHABLE, StorageTrouble.READ_ONLY})


class SqliteDatabase:
    """An open file, or memory."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def writing(self, connection: Connection, questions: Sequence[Question] = ()) -> Iterator[Begun]:
        """Put it into a transaction that has locked the file for other writers, and ask."""
        with begun(connection, "IMMEDIATE"):
            yield Begun(None, ask(connection, *questions))

    @contextmanager
    def writing_aside(self, connection: Connection) -> Iterator[None]:
        """Put it into a transaction that waits for no lock and, where there is a log, for no disk."""
        driver = find_driver(connection)
        (mode,) = driver.execute("PRAGMA journal_mode").fetchone()
        (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
        driver.execute("PRAGMA busy_timeout = 0")
        # Without a log, a file that is flushed less could be damaged.
        driver.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")
        try:
            with begun(connection, "IMMEDIATE"):
                yield
        finally:
            try:
                driver.execute("PRAGMA synchronous = FULL")
                driver.execute(f"PRAGMA busy_timeout = {patience}")
            except sqlite3.Error:
                # The next one to use it would write what is not durable.
                connection.invalidate()
                raise

    def reading(self, connection: Connection) -> AbstractContextManager[None]:
        """Put it into a transaction that sees the file as it is at the first look."""
        return begun(connection, "DEFERRED")


def open_file(place: Location, busy_seconds: float, mounts: Path, *, only_reads: bool) -> SqliteDatabase:
    """Open a file, which is made when it is not there, and bring its tables up to date; `only_reads` changes nothing.

    Raises:
        StorageError: it cannot be opened, or is to be made or brought up to date and may only be read.
    """
    if place.path is not None:
        _prepare_place(place.path, only_reads=only_reads)
    engine = _open_engine(place, busy_seconds)
    try:
        with explained(place.shown):
            if only_reads:
                _refuse_older(engine, place)
            else:
                _bring_up_to_date(engine, place, busy_seconds, mounts)
    except BaseException:
        engine.dispose()
        raise
    return SqliteDatabase(engine)


def look_at_file(place: Location, busy_seconds: float) -> None:
    """Make sure that a file is a store that this program can open; nothing is changed.

    Raises:
        StorageError: it is not, or another process holds it locked.
    """
    engine = _open_engine(place, busy_seconds)
    try:
        with explained(place.shown), engine.connect() as connection:
            find_version(connection, place.shown)
    finally:
        engine.dispose()


def _prepare_place(path: Path, *, only_reads: bool) -> None:
    try:
        if path.exists() and not path.is_file():
            raise StorageError(f"the store {path}: that is no file; give the path of a file")
        if not only_reads:
            make_folder(path.parent)
        elif not path.exists():
            raise describe(str(path), StorageTrouble.GONE)
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


def _refuse_older(engine: Engine, place: Location) -> None:
    with transaction(engine, "DEFERRED") as connection:
        version = find_version(connection, place.shown)
    if version != HEAD:
        raise describe_older(place.shown, version, "it may only be read here: run `golden store upgrade --store FILE`")


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
