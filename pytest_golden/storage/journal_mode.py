"""How SQLite makes a file's transactions safe: a write-ahead log, or a rollback journal where no memory is shared."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine

_PAUSE_SECONDS = 0.01


def set_journal_mode(engine: Engine, mode: str, *, deadline: float, must: bool) -> None:
    """Set the mode, `wal` or `delete`, which the file then keeps; the deadline is on the monotonic clock.

    A file that may only be read, or one in use where it is not a `must`, is left as it is.

    Raises:
        sqlite3.Error: it must be set and cannot be.
    """
    with closing(engine.raw_connection()) as proxy:
        connection = proxy.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        if _run(connection, "journal_mode") != mode:
            while not _try_setting(connection, mode, is_last=time.monotonic() >= deadline, must=must):
                time.sleep(_PAUSE_SECONDS)


def _try_setting(connection: sqlite3.Connection, mode: str, *, is_last: bool, must: bool) -> bool:
    """Give whether there is nothing left to try."""
    try:
        _run(connection, f"journal_mode = {mode}")
    except sqlite3.OperationalError as error:
        # The change wants the file alone, and does not always wait for that itself.
        if must and not error.sqlite_errorname.startswith("SQLITE_READONLY"):
            if is_last or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            return False
    return True


def _run(connection: sqlite3.Connection, pragma: str) -> str:
    return str(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
