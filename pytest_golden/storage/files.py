"""The files of a store: find them, copy them while they are in use, and set damaged ones aside."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, contextmanager, suppress
from datetime import UTC
from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError, StorageError
from pytest_golden.storage.engine import BUSY_SECONDS, explain, explained
from pytest_golden.storage.folder import flush
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.version import VERSION_TABLE, describe_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

# The last one is the database itself: a log without its database is harmless, a new database beside an old log is not.
_ENDINGS = ("-journal", "-wal", "-shm", "")


def find_file(location: str | Path) -> Path:
    """Find the file of a store.

    Raises:
        SettingsError: no store can be at such a place, or it is on a server.
        StorageError: there is no file.
    """
    place = parse_location(location)
    if place.is_on_server:
        raise SettingsError(f"the store {place.shown} is on a server; give a file")
    if place.path is None or not place.path.is_file():
        is_folder = place.path is not None and place.path.is_dir()
        raise StorageError(
            f"the store {place.shown}: {'that is a folder; give a file' if is_folder else 'there is no such file'}"
        )
    return place.path


def refuse_foreign(path: Path) -> None:
    """Refuse an existing path that is not a store. A damaged or locked store is not refused.

    Raises:
        SettingsError: it is a folder, a file that is no database, or a database of another program.
    """
    try:
        is_there = path.exists()
    except OSError as error:
        raise SettingsError(f"{path} cannot be a store ({error.strerror}); give another file") from error
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; give a file")
    if is_there and not path.is_file():
        raise SettingsError(f"{path} is no file; give a file")
    if is_there and _is_foreign(path):
        raise SettingsError(f"{path} is not a golden store; nothing was changed")


def list_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a store has now, the database last."""
    files = (path.with_name(path.name + ending) for ending in _ENDINGS)
    return tuple(file for file in files if file.exists())


def is_alone(path: Path) -> bool:
    """Tell whether a file exists and is complete: its log holds nothing."""
    log = path.with_name(f"{path.name}-wal")
    return path.is_file() and not (log.exists() and log.stat().st_size)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a store's file with the driver; in a read-only folder, open it as a file that nothing changes.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError) or os.access(path.parent, os.W_OK) or not is_alone(path):
            raise
        return sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return connection


def backup_store(location: str | Path, target: Path) -> int:
    """Copy a store as it is at one moment into a new file, and return its size in bytes; writers go on meanwhile.

    The target appears complete, or not at all.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: the store does not exist or cannot be read, or the target exists or cannot be made.
    """
    place = parse_location(location)
    if place.is_on_server:
        raise SettingsError(
            f"the store {place.shown} is on a server: back it up with pg_dump, or copy it into a file with "
            "`golden store copy --to FILE`"
        )
    path = find_file(location)
    with made_whole(target) as draft, explained(f"{path}, copied to {target}"):
        _copy(path, draft)
    return target.stat().st_size


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """Yield a name beside `target` for a new database; rename it to `target` when the with-block succeeds.

    Raises:
        StorageError: the target exists or cannot be made.
    """
    if os.path.lexists(target):
        raise StorageError(f"{target} is there already; give the name of a new file")
    if not target.parent.is_dir():
        raise StorageError(f"{target.parent} is no folder; make it, or give a file in another one")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        flush(draft)
        _publish(draft, target)
    except OSError as error:
        raise explain(str(target), error) from error
    finally:
        for file in list_files(draft):
            file.unlink()


def name_beside(path: Path, why: str, moment: datetime) -> Path:
    """Return an unused name beside a file that contains the reason and the time."""
    first = path.with_name(f"{path.name}.{why}-{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    found, number = first, 1
    while os.path.lexists(found):
        number += 1
        found = first.with_name(f"{first.name}-{number}")
    return found


def put_aside(location: str | Path, moment: datetime) -> Path:
    """Rename a damaged store's files and return the new name of the database. The bytes are kept; the path is free.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: the store does not exist or cannot be renamed.
    """
    path = find_file(location)
    aside = name_beside(path, "damaged", moment)
    try:
        for file in list_files(path):
            file.rename(aside.with_name(aside.name + file.name.removeprefix(path.name)))
    except OSError as error:
        raise explain(str(path), error) from error
    return aside


def _is_foreign(path: Path) -> bool:
    try:
        # With SQLite itself: closing any other handle of the file would release this process's locks on it.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)) as found:
            names = {str(row[0]) for row in found.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB"
    return bool(names) and VERSION_TABLE not in names


def _copy(path: Path, draft: Path) -> None:
    with (
        closing(open_to_read(path)) as source,
        closing(sqlite3.connect(draft, isolation_level=None)) as copy,
    ):
        # The whole copy is flushed at the end.
        copy.execute("PRAGMA synchronous = OFF")
        # A read transaction does not wait for writers; the backup alone might wait for ever.
        source.execute("BEGIN")
        if not source.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchone():
            raise describe_foreign(str(path))
        source.backup(copy)
        source.execute("COMMIT")


def _publish(draft: Path, target: Path) -> None:
    """Rename a finished file, without ever replacing another."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise StorageError(f"{target} is there already; give the name of a new file") from None
    except OSError:
        # A file system without links.
        draft.rename(target)
    # Not every system lets a folder be flushed.
    with suppress(OSError):
        flush(target.parent)
