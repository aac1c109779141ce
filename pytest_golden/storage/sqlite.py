"""SQLite below a store, in a file or in memory: its files, backups, transactions, journal mode and stale logs."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import URL

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.engine import (
    BUSY_SECONDS,
    begun,
    describe,
    explain,
    explained,
    find_driver,
    make_engine,
    transaction,
)
from pytest_golden.storage.folder import flush, make_folder
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import (
    ASK_VERSION,
    VERSION_TABLE,
    describe_foreign,
    describe_older,
    find_version,
    newest_version,
)
from pytest_golden.storage.statements import ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from pytest_golden.storage.location import Location
    from pytest_golden.storage.statements import Question


MOUNTS = Path("/proc/self/mountinfo")
# Write-ahead logging needs memory that all processes share: https://www.sqlite.org/wal.html#noshm
_NETWORK_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afpfs"),
        *("davfs", "orangefs", "ocfs2", "gfs2"),
        # Folders that a virtual machine shares with its host.
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs"),
    }
)
# The disk of a container that runs without root rights.
_LOCAL_FUSE = "fuse.fuse-overlayfs"
_PAUSE_SECONDS = 0.01
# What SQLite reports where it cannot create the log beside the file.
_IN_READ_ONLY_FOLDER = frozenset({StorageTrouble.UNREACHABLE, StorageTrouble.READ_ONLY})
_LOG_ENDINGS = ("-wal", "-shm")


class SqliteDatabase:
    """An open SQLite file, or a database in memory."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def writing(self, connection: Connection, questions: Sequence[Question] = ()) -> Iterator[tuple[Any, Any]]:
        """Put the connection into a transaction that locks out other writers; yield the version of its tables and answers."""
        with begun(connection, "IMMEDIATE"):
            yield _read_version(connection), ask(connection, *questions)

    @contextmanager
    def writing_aside(self, connection: Connection) -> Iterator[Any]:
        """Do the same where nothing is waited for: no lock and, with a write-ahead log, not the disk."""
        driver = find_driver(connection)
        (mode,) = driver.execute("PRAGMA journal_mode").fetchone()
        (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
        driver.execute("PRAGMA busy_timeout = 0")
        # Without a write-ahead log, flushing less could damage the file.
        driver.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")
        try:
            with begun(connection, "IMMEDIATE"):
                yield _read_version(connection)
        finally:
            try:
                driver.execute("PRAGMA synchronous = FULL")
                driver.execute(f"PRAGMA busy_timeout = {patience}")
            except sqlite3.Error:
                # The next user of this connection would write without durability.
                connection.invalidate()
                raise

    @contextmanager
    def reading(self, connection: Connection) -> Iterator[Any]:
        """Do the same for a transaction that sees the file as it is at the first read, and writes nothing."""
        with begun(connection, "DEFERRED"):
            yield _read_version(connection)


def _read_version(connection: Connection) -> Any:
    return find_driver(connection).execute(ASK_VERSION).fetchone()


def open_file(place: Location, busy_seconds: float, mounts: Path, *, only_reads: bool) -> SqliteDatabase:
    """Open a store's file: create it if it is missing, and bring its tables up to date. `only_reads` changes nothing.

    Raises:
        StorageError: it cannot be opened, or with `only_reads` is missing or has older tables.
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
    """Check that a file is a store that this program can open; change nothing.

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
            raise StorageError(f"the store {path}: that is not a file; give the path of a file")
        if not only_reads:
            make_folder(path.parent)
        elif not path.exists():
            raise describe(str(path), StorageTrouble.GONE)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"the store {path}: {path.parent} is not a folder; use another path") from None
    except OSError as error:
        raise explain(str(path), error) from error


def _open_engine(place: Location, busy_seconds: float) -> Engine:
    """Return an engine that has connected once; for a file in a read-only folder it takes no locks."""
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
        # As a file that nothing changes: without locks and without files beside it.
        query = {"mode": "ro", "immutable": "1", "uri": "true"}
        return make_engine(URL.create("sqlite", database=place.path.as_uri(), query=query))
    return engine


def _refuse_older(engine: Engine, place: Location) -> None:
    with transaction(engine, "DEFERRED") as connection:
        version = find_version(connection, place.shown)
    if version != newest_version():
        raise describe_older(place.shown, version, "it may only be read here: run `golden store upgrade --store FILE`")


def _bring_up_to_date(engine: Engine, place: Location, busy_seconds: float, mounts: Path) -> None:
    with transaction(engine, "DEFERRED") as connection:
        version = find_version(connection, place.shown)
    if place.path is not None:
        mode = "wal" if keeps_shared_memory(place.path.parent, mounts) else "delete"
        deadline = time.monotonic() + busy_seconds
        set_journal_mode(engine, mode, deadline=deadline, must=version is None or mode == "delete")
    if version != newest_version():
        from pytest_golden.storage.upgrading import upgrade

        with transaction(engine, "IMMEDIATE") as connection:
            upgrade(connection, place.shown)


def set_journal_mode(engine: Engine, mode: str, *, deadline: float, must: bool) -> None:
    """Set the journal mode, `wal` or `delete`, which the file then keeps; `deadline` is a time of the monotonic clock.

    A read-only file stays as it is, and so does a file in use unless `must` is set.

    Raises:
        sqlite3.Error: the mode must be set and cannot be.
    """
    with closing(engine.raw_connection()) as proxy:
        connection = proxy.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        if _run_pragma(connection, "journal_mode") != mode:
            while not _try_setting(connection, mode, is_last=time.monotonic() >= deadline, must=must):
                time.sleep(_PAUSE_SECONDS)


def _try_setting(connection: sqlite3.Connection, mode: str, *, is_last: bool, must: bool) -> bool:
    """Tell whether there is nothing left to try."""
    try:
        _run_pragma(connection, f"journal_mode = {mode}")
    except sqlite3.OperationalError as error:
        # The change needs exclusive access to the file, and SQLite does not always wait for that itself.
        if must and not error.sqlite_errorname.startswith("SQLITE_READONLY"):
            if is_last or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            return False
    return True


def _run_pragma(connection: sqlite3.Connection, pragma: str) -> str:
    return str(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def keeps_shared_memory(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Tell whether a folder is on a local file system, where write-ahead logging is safe."""
    kind = find_type(folder, mounts) or ""
    return kind not in _NETWORK_TYPES and (not kind.startswith("fuse.") or kind == _LOCAL_FUSE)


def find_type(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the file system that holds a folder, such as `ext4`; None where there is no mount table.

    Source: proc(5), /proc/pid/mountinfo.
    """
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    place = os.path.realpath(folder)
    best, kind = "", None
    for line in table.splitlines():
        fields = line.split()
        if "-" not in fields:
            continue
        point = _unescape(fields[4])
        # A later mount on the same point hides the earlier one.
        if Path(place).is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[fields.index("-", 6) + 1]
    return kind


def _unescape(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text


def find_log(path: Path | None) -> tuple[int, int] | None:
    """Return the device and the inode of the log of the store that is open at this path; None if it has none."""
    if path is not None:
        with suppress(OSError):
            found = path.with_name(f"{path.name}-wal").stat()
            return found.st_dev, found.st_ino
    return None


def set_log_aside(path: Path | None, log: tuple[int, int] | None, timestamp: datetime) -> None:
    """Rename the stale log of a store whose file was replaced while it was open; keep the log of a newer store.

    SQLite finds a log by its name: it would read the new file with the pages of the old one, and both would be lost.
    Source: https://www.sqlite.org/howtocorrupt.html, "Unlinking or renaming a database file while in use".
    """
    if path is None or log is None or find_log(path) != log:
        return
    stamp = f"{path.name}.gone-{timestamp.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for ending in _LOG_ENDINGS:
        with suppress(OSError):
            path.with_name(path.name + ending).rename(path.with_name(stamp + ending))


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
        SettingsError: it is a folder, a file that is not a database, or a database of another program.
    """
    try:
        is_there = path.exists()
    except OSError as error:
        raise SettingsError(f"{path} cannot be a store ({error.strerror}); give another file") from error
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; give a file")
    if is_there and not path.is_file():
        raise SettingsError(f"{path} is not a file; give a file")
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
        raise StorageError(f"{target} already exists; give the name of a new file")
    if not target.parent.is_dir():
        raise StorageError(f"{target.parent} is not a folder; create it, or give a file in another folder")
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


def name_beside(path: Path, why: str, timestamp: datetime) -> Path:
    """Return an unused name beside a file that contains the reason and the time."""
    first = path.with_name(f"{path.name}.{why}-{timestamp.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    found, number = first, 1
    while os.path.lexists(found):
        number += 1
        found = first.with_name(f"{first.name}-{number}")
    return found


def put_aside(location: str | Path, timestamp: datetime) -> Path:
    """Rename a damaged store's files and return the new name of the database. The bytes are kept; the path is free.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: the store does not exist or cannot be renamed.
    """
    path = find_file(location)
    aside = name_beside(path, "damaged", timestamp)
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
        raise StorageError(f"{target} already exists; give the name of a new file") from None
    except OSError:
        # A file system without links.
        draft.rename(target)
    # Not every system lets a folder be flushed.
    with suppress(OSError):
        flush(target.parent)
