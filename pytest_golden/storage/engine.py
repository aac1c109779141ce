"""Connections to the store: one engine with durable, serialised writes, and database errors put into our own words.

What differs between databases lives in this room alone.
"""

from __future__ import annotations

import errno
import json
import sqlite3
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.pooling import ClosingPool
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.sqlstates import find_trouble_of_server, find_words, read_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

BUSY_SECONDS = 30.0
# Pure ASCII: a lone surrogate, which no database takes, becomes an escape.
dump_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
# What a write-ahead log may keep on the disk when a long reader has let it grow beyond.
_LOG_KEPT_BYTES = 32 << 20
# SQLite's own 1,000 let one write in forty wait for a checkpoint in a large journal; so many are 16 MiB.
_PAGES_BETWEEN_CHECKPOINTS = 4_000
# As many as threads of a server ask at once: what is opened beyond is closed again, and each begins with nothing in its cache.
_KEPT_CONNECTIONS = 16
# The first that fits counts.
_TROUBLES = {
    "SQLITE_READONLY_DBMOVED": StorageTrouble.GONE,
    "SQLITE_BUSY": StorageTrouble.LOCKED,
    "SQLITE_LOCKED": StorageTrouble.LOCKED,
    "SQLITE_FULL": StorageTrouble.FULL,
    "SQLITE_IOERR_SHMSIZE": StorageTrouble.FULL,
    "SQLITE_READONLY": StorageTrouble.READ_ONLY,
    "SQLITE_PERM": StorageTrouble.READ_ONLY,
    # The search index alone: nothing that was recorded is lost.
    "SQLITE_CORRUPT_VTAB": StorageTrouble.UNREACHABLE,
    "SQLITE_CORRUPT": StorageTrouble.CORRUPT,
    "SQLITE_NOTADB": StorageTrouble.CORRUPT,
}
# All of a version are made at once, so one that is not there was lost. The search index can be made again.
_LOST_TABLES = tuple(f"no such table: {table}" for table in metadata.tables)
_TROUBLES_OF_SYSTEM = {
    errno.EACCES: StorageTrouble.READ_ONLY,
    errno.EPERM: StorageTrouble.READ_ONLY,
    errno.EROFS: StorageTrouble.READ_ONLY,
    errno.ENOSPC: StorageTrouble.FULL,
    errno.EDQUOT: StorageTrouble.FULL,
}
_WORDS = {
    StorageTrouble.LOCKED: "another process holds it locked; try again when that one has ended",
    StorageTrouble.FULL: "the disk is full; make room",
    StorageTrouble.READ_ONLY: (
        "it cannot be written; let its folder and all files whose names begin with its own be written, or give another store"
    ),
    StorageTrouble.CORRUPT: "it is damaged",
    StorageTrouble.GONE: "its file was moved, removed or replaced while it was open",
    StorageTrouble.UNREACHABLE: "it cannot be used",
}


def make_engine(url: URL, *, busy_seconds: float = BUSY_SECONDS, is_in_memory: bool = False) -> Engine:
    """Make the engine of a SQLite store. Opens nothing yet.

    A store in memory is one connection, for which threads wait in turn.
    """
    engine = create_engine(
        url,
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
        json_serializer=dump_json,
        poolclass=ClosingPool,
        pool_timeout=busy_seconds,
        **({"pool_size": 1, "max_overflow": 0} if is_in_memory else {"pool_size": _KEPT_CONNECTIONS}),
    )

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        # Transactions are begun by us: the driver would begin them late, and a read that turns into a write then fails.
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT_BYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BETWEEN_CHECKPOINTS}")

    event.listen(engine, "connect", prepare)
    return engine


def find_driver(connection: Connection) -> sqlite3.Connection:
    """Give the driver's own connection, in the transaction that this one is in."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


@contextmanager
def transaction(engine: Engine, mode: str) -> Iterator[Connection]:
    """Give a connection in a transaction of SQLite's mode `DEFERRED` or `IMMEDIATE`, kept when the block ends well."""
    with engine.connect() as connection, begun(connection, mode):
        yield connection


@contextmanager
def begun(connection: Connection, mode: str) -> Iterator[None]:
    """Put a connection into such a transaction, without a look at the version of its tables."""
    with connection.begin():
        # By the driver itself. A listener for the engine's "begin" would make every statement look for listeners.
        find_driver(connection).execute(f"BEGIN {mode}")
        yield


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what the database raises inside the with-block into a `StorageError` about the store `where`."""
    try:
        yield
    except DBAPIError as error:
        raise explain(where, error.orig) from error
    except PoolTimeoutError as error:
        message = f"the store {where}: too many threads of this process use it at once"
        raise StorageError(message, StorageTrouble.LOCKED) from error
    except SQLAlchemyError as error:
        raise StorageError(f"the store {where}: {error}") from error
    except _driver_errors() as error:
        raise explain(where, error) from error


def explain(where: str, error: BaseException | None) -> StorageError:
    """Put an error of the driver or of the system into words about the store `where`."""
    trouble = find_trouble(error)
    told = error.strerror if isinstance(error, OSError) else error
    words = _WORDS[trouble]
    if _is_of_server(error):
        told, words = read_message(error), find_words(error) or words
    if is_index_damage(error):
        told = "its search index is damaged; `golden store upgrade` builds it again"
    return StorageError(f"the store {where}: {words} ({told})", trouble)


def find_trouble(error: BaseException | None) -> StorageTrouble:
    """Tell from the driver's or the system's error what is wrong."""
    if isinstance(error, OSError):
        return _TROUBLES_OF_SYSTEM.get(error.errno or 0, StorageTrouble.UNREACHABLE)
    if _is_of_server(error):
        return find_trouble_of_server(error)
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_ERROR" and str(error).startswith(_LOST_TABLES):
        return StorageTrouble.CORRUPT
    return next((trouble for code, trouble in _TROUBLES.items() if name.startswith(code)), StorageTrouble.UNREACHABLE)


def is_index_damage(error: BaseException | None) -> bool:
    """Tell whether the driver's error says that the full-text index is damaged, and not the rows."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT_VTAB"


def describe(where: str, trouble: StorageTrouble) -> StorageError:
    """Put into words what is wrong with the store `where`, when nothing was raised that says more."""
    return StorageError(f"the store {where}: {_WORDS[trouble]}", trouble)


def _driver_errors() -> tuple[type[Exception], ...]:
    """Give what drivers raise: of those only that are loaded."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error,) if psycopg is None else (sqlite3.Error, psycopg.Error)


def _is_of_server(error: BaseException | None) -> bool:
    return isinstance(error, _driver_errors()[1:])
