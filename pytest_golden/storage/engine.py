"""One engine for a store: durable, serialised transactions, and database errors explained in our own words.

A fork never shares a connection: both sides would damage the store.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.columns import storable_json, storable_parameters
from pytest_golden.storage.schema import VERSION_TABLE, metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL
    from sqlalchemy.pool import ConnectionPoolEntry


BUSY_SECONDS = 30.0
#: How long a fork waits for other threads that are using a store.
MOST_SECONDS = 1.0
_SHORT_WHILE = 0.002
# The write-ahead log is cut back to this size after a long reader has let it grow.
_LOG_KEPT_BYTES = 32 << 20
# 16 MiB. With SQLite's default of 1,000, one write in forty waits for a checkpoint in a large journal.
_PAGES_BETWEEN_CHECKPOINTS = 4_000
# As many as a server's threads use at once. A connection beyond this is closed after use, and a new one starts with an empty cache.
_KEPT_CONNECTIONS = 16
_encode_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

# The first code that an error's name starts with counts.
_TROUBLES_OF_SQLITE = {
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
# A version's tables are all created together, so a missing one was lost. The search index can be built again.
_LOST_TABLES = tuple(f"no such table: {table}" for table in metadata.tables)
_TROUBLES_OF_SYSTEM = {
    errno.EACCES: StorageTrouble.READ_ONLY,
    errno.EPERM: StorageTrouble.READ_ONLY,
    errno.EROFS: StorageTrouble.READ_ONLY,
    errno.ENOSPC: StorageTrouble.FULL,
    errno.EDQUOT: StorageTrouble.FULL,
}
# How Python's driver reports text that is not UTF-8. The pages and the other rows are intact.
_UNREADABLE_TEXT = "Could not decode to UTF-8"
_WORDS_OF_FILE = {
    StorageTrouble.LOCKED: "another process has locked it; try again when that process has ended",
    StorageTrouble.FULL: "the disk is full; free some space",
    StorageTrouble.READ_ONLY: (
        "it cannot be written; make its folder and all files whose names begin with its own writable, or give another store"
    ),
    StorageTrouble.CORRUPT: "it is damaged",
    StorageTrouble.GONE: "its file was moved, removed or replaced while it was open",
    StorageTrouble.UNREACHABLE: "it cannot be used",
}

_READ_ONLY_TRANSACTION = "25006"
_UNDEFINED_TABLE = "42P01"
# Classes of PostgreSQL's error codes for trouble with the connection or the server, not with a statement.
_CLASSES_OF_SERVER = ("08", "53", "57", "58")
_TROUBLES_OF_SERVER = {
    "53100": StorageTrouble.FULL,
    "55P03": StorageTrouble.LOCKED,
    "40001": StorageTrouble.LOCKED,
    "40P01": StorageTrouble.LOCKED,
    _READ_ONLY_TRANSACTION: StorageTrouble.READ_ONLY,
    "42501": StorageTrouble.READ_ONLY,
    "XX001": StorageTrouble.CORRUPT,
    "XX002": StorageTrouble.CORRUPT,
}
_WORDS_OF_SERVER = {
    StorageTrouble.FULL: "the disk of its server is full; free some space",
    StorageTrouble.READ_ONLY: "it cannot be written; let this role read and write its tables, or give another store",
}

_WATCHED: WeakSet[Any] = WeakSet()
# Connections that other threads were using when the process forked. The child must keep these references: closing or
# collecting such a connection would harm the parent.
_LEFT_TO_PARENT: list[object] = []


class Sent(NamedTuple):
    """SQL with named parameters. With `has_json`, columns of JSON arrive from a server as text, as on SQLite."""

    sql: str
    parameters: Mapping[str, Any]
    has_json: bool = False


def make_engine(url: URL, *, busy_seconds: float = BUSY_SECONDS, is_in_memory: bool = False) -> Engine:
    """Make the engine of a SQLite store. Opens nothing yet.

    A store in memory has one connection, which threads use in turn.
    """
    engine = create_engine(
        url,
        connect_args={"timeout": busy_seconds, "check_same_thread": False, "factory": _Connection},
        json_serializer=dump_json,
        poolclass=ClosingPool,
        pool_timeout=busy_seconds,
        **({"pool_size": 1, "max_overflow": 0} if is_in_memory else {"pool_size": _KEPT_CONNECTIONS}),
    )

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        # We begin transactions ourselves: the driver begins them late, and a read that turns into a write then fails.
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT_BYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BETWEEN_CHECKPOINTS}")

    event.listen(engine, "connect", prepare)
    return engine


def dump_json(value: Any) -> str:
    """Write a value as JSON in pure ASCII, in a form that every database accepts.

    Raises:
        ValueError, TypeError: the value is not JSON (a NaN, an object).
    """
    return storable_json(_encode_json(value))


class ClosingPool(QueuePool):
    """A pool that, once disposed of, also closes the connections that other threads return later.

    `Engine.dispose` forgets such connections, and a server would keep each until the garbage collector finds it here.
    """

    _is_disposed = False

    def dispose(self) -> None:
        """Close the idle connections now, and each other connection when it is returned."""
        # Set this first, or a connection that is returned meanwhile would stay open.
        self._is_disposed = True
        super().dispose()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        if self._is_disposed:
            super().dispose()


class _Connection(sqlite3.Connection):
    """A connection that does the same: its own `execute()` does not use our cursor."""

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _Cursor)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql, storable_parameters(parameters))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        return super().executemany(sql, map(storable_parameters, rows))


class _Cursor(sqlite3.Cursor):
    """A cursor that binds text in a form that the database accepts."""

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        return super().execute(sql, storable_parameters(parameters))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Self:
        return super().executemany(sql, map(storable_parameters, rows))


@contextmanager
def transaction(engine: Engine, mode: str) -> Iterator[Connection]:
    """Yield a connection in a transaction of SQLite's mode `DEFERRED` or `IMMEDIATE`; commit if the block succeeds."""
    with engine.connect() as connection, begun(connection, mode):
        yield connection


@contextmanager
def begun(connection: Connection, mode: str) -> Iterator[None]:
    """Put a connection into such a transaction, without checking the version of its tables."""
    with connection.begin():
        # Sent by the driver itself: a listener for the engine's "begin" would make every statement look for listeners.
        find_driver(connection).execute(f"BEGIN {mode}")
        yield


def find_driver(connection: Connection) -> sqlite3.Connection:
    """Return the driver's own connection, in the transaction that this one is in."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Raise a `StorageError` about the store `where` in place of each database error inside the with-block."""
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
    """Return a `StorageError` that explains an error of the driver or the operating system."""
    trouble = find_trouble(error)
    reason = error.strerror if isinstance(error, OSError) else error
    words = _WORDS_OF_FILE[trouble]
    if _is_of_server(error):
        reason, words = read_message(error), find_words(error) or words
    if is_index_damage(error):
        reason = "its search index is damaged; `golden store upgrade` builds it again"
    if str(error).startswith(_UNREADABLE_TEXT):
        words, reason = "it holds text that cannot be read", f"{reason}; `golden store mend` repairs it"
    return StorageError(f"the store {where}: {words} ({reason})", trouble)


def describe(where: str, trouble: StorageTrouble) -> StorageError:
    """Return a `StorageError` for a kind of trouble, where no error was raised that says more."""
    return StorageError(f"the store {where}: {_WORDS_OF_FILE[trouble]}", trouble)


def find_trouble(error: BaseException | None) -> StorageTrouble:
    """Return the kind of trouble that an error of a driver or the operating system stands for."""
    if isinstance(error, OSError):
        return _TROUBLES_OF_SYSTEM.get(error.errno or 0, StorageTrouble.UNREACHABLE)
    if _is_of_server(error):
        return find_trouble_of_server(error)
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_ERROR" and str(error).startswith(_LOST_TABLES):
        return StorageTrouble.CORRUPT
    return next(
        (trouble for code, trouble in _TROUBLES_OF_SQLITE.items() if name.startswith(code)), StorageTrouble.UNREACHABLE
    )


def is_index_damage(error: BaseException | None) -> bool:
    """Tell whether the driver's error says that the full-text index is damaged, and not the rows."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT_VTAB"


def find_trouble_of_server(error: Any) -> StorageTrouble:
    """Return the kind of trouble that an error of PostgreSQL's driver stands for.

    Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
    """
    # A version's tables are all created together, so a missing one was lost.
    if error.sqlstate == _UNDEFINED_TABLE and any(f'"{table}"' in str(error) for table in metadata.tables):
        return StorageTrouble.CORRUPT
    return _TROUBLES_OF_SERVER.get(error.sqlstate or "", StorageTrouble.UNREACHABLE)


def find_words(error: Any) -> str | None:
    """Return the explanation of a server's error; None if the one for a file fits too.

    An error without a code concerns the connection.
    """
    trouble = find_trouble_of_server(error)
    if error.sqlstate == _UNDEFINED_TABLE and f'"{VERSION_TABLE}"' in str(error):
        return "it has no tables any more; restore them, or run `golden store upgrade --store URL`"
    if error.sqlstate == _READ_ONLY_TRANSACTION:
        return "it cannot be written: it is a standby, or read-only; change that, or give another store"
    if trouble is StorageTrouble.UNREACHABLE and (error.sqlstate or _CLASSES_OF_SERVER[0]).startswith(
        _CLASSES_OF_SERVER
    ):
        return "its server cannot be used; check that it runs and accepts this role"
    return _WORDS_OF_SERVER.get(trouble)


def read_message(error: Any) -> str:
    """Return what an error says in one line, without the statement, the values and the hint that the server adds."""
    return " ".join((error.diag.message_primary or str(error)).split())


def _driver_errors() -> tuple[type[Exception], ...]:
    """Return the error classes of the drivers that are loaded."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error,) if psycopg is None else (sqlite3.Error, psycopg.Error)


def _is_of_server(error: BaseException | None) -> bool:
    return isinstance(error, _driver_errors()[1:])


def watch_forks(store: Any) -> None:
    """Notify a store of each fork of this process, as long as it exists: its methods `before_fork` and `after_fork_in_...`.

    SQLite keeps its locks in a process's memory: a child that inherits open connections would rely on locks that it does
    not hold. Two processes on one connection to a server would mix up their messages. So connections are closed before a
    fork, and both sides open new ones.
    """
    _WATCHED.add(store)


def wait_for_readers(engine: Engine) -> bool:
    """Wait up to `MOST_SECONDS` until no connection is in use, and return whether none is."""
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    deadline = time.monotonic() + MOST_SECONDS
    while pool.checkedout() and time.monotonic() < deadline:
        time.sleep(_SHORT_WHILE)
    return not pool.checkedout()


def leave_to_parent(engine: Engine, writer: Connection | None) -> None:
    """Forget, in the child, the connections that the parent still uses, without closing them."""
    _LEFT_TO_PARENT.extend((engine.pool, writer))
    engine.dispose(close=False)


def _notify(method: str) -> None:
    for store in list(_WATCHED):
        getattr(store, method)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=partial(_notify, "before_fork"),
        after_in_parent=partial(_notify, "after_fork_in_parent"),
        after_in_child=partial(_notify, "after_fork_in_child"),
    )
