"""Whether a file that somebody else has made is a store all through, so that what is read from it is what a store keeps.

SQLite takes any value in any column, and lets a view stand where a table is looked for. The form alone is looked at; what
values mean is for who takes them in.

Stores that are only read from: each is copied first, so that its files stay as they are whatever is done with the copy.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import JSON, BigInteger, Boolean, Float, Integer

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.engine import BUSY_SECONDS, explain, explained
from pytest_golden.storage.files import find_file, list_files
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.version import VERSION_TABLE, describe_foreign

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Column, Table


_FIRST, _LAST = to_ms(datetime.min.replace(tzinfo=UTC)), to_ms(datetime.max.replace(tzinfo=UTC))
_NOT_TABLES = "SELECT name FROM sqlite_master WHERE type <> 'table' OR sql NOT LIKE 'CREATE TABLE %'"


def find_false_table(connection: sqlite3.Connection) -> str | None:
    """Name a table of ours that is none, but a view or a virtual one: reading it may have no end."""
    found = {str(row[0]) for row in connection.execute(_NOT_TABLES)}
    return min(found & set(metadata.tables), default=None)


def find_misfit(connection: sqlite3.Connection) -> str | None:
    """Name a table in which a column holds what no store writes there; its tables are of this version.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    for table in metadata.sorted_tables:
        if connection.execute(_write_query(table)).fetchone():
            return table.name
    return None


def _write_query(table: Table) -> str:
    fits = " AND ".join(_write_condition(column) for column in table.c)
    return f'SELECT 1 FROM "{table.name}" WHERE ({fits}) IS NOT 1 LIMIT 1'


def _write_condition(column: Column[object]) -> str:
    name = f'"{column.name}"'
    fits = _write_kind(column, name)
    return f"({name} IS NULL OR {fits})" if column.nullable else f"({fits})"


def _write_kind(column: Column[object], name: str) -> str:
    if isinstance(column.type, JSON):
        # A number alone is kept as one.
        return f"typeof({name}) <> 'blob' AND json_valid({name})"
    if isinstance(column.type, Boolean):
        return f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    if isinstance(column.type, Float):
        return f"typeof({name}) IN ('real', 'integer')"
    if isinstance(column.type, Integer):
        is_moment = isinstance(column.type, BigInteger) and column.name.endswith("_at")
        more = f" AND {name} BETWEEN {_FIRST} AND {_LAST}" if is_moment else ""
        return f"typeof({name}) = 'integer'{more}"
    return f"typeof({name}) = 'text'"


_MOST_TOLD = 3


def copy_source(location: str | Path, folder: Path, *, target: Path | None = None) -> Path:
    """Copy a store as it is at one moment into a folder, with its tables brought up to date there, and give the copy.

    `target` is the store that will be written to.

    Raises:
        SettingsError: it is the target, or no store can be at such a place.
        StorageError: it is not there, no store, damaged or of a newer version.
    """
    path = find_file(location)
    if target is not None and target.exists() and path.samefile(target):
        raise SettingsError(f"the store {path} is the one that is merged into; name others")
    copy = folder / path.name
    try:
        _copy(path, copy)
    except (OSError, sqlite3.Error) as error:
        raise explain(str(path), error) from error
    try:
        _check(copy, str(path))
    except StorageError as error:
        # A person knows the store, and not its copy.
        raise StorageError(str(error).replace(str(copy), str(path)), error.trouble) from None
    return copy


def _copy(path: Path, copy: Path) -> None:
    if path.with_name(f"{path.name}-shm").exists():
        # Somebody may be writing. Whoever only reads leaves the database as it is, and the log where it is.
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as source,
            closing(sqlite3.connect(copy)) as made,
        ):
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            source.backup(made)
        return
    for file in list_files(path):
        shutil.copyfile(file, copy.with_name(copy.name + file.name.removeprefix(path.name)))


def _check(copy: Path, shown: str) -> None:
    with explained(shown), closing(sqlite3.connect(copy)) as connection:
        try:
            names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_NOTADB":
                raise
            raise StorageError(f"{shown} is not a golden store; give another file") from None
        false_table = find_false_table(connection)
    if VERSION_TABLE not in names:
        raise describe_foreign(shown)
    if false_table is not None:
        raise StorageError(f"the store {shown}: its {false_table} are no table; give another file")
    problems = check_store(copy).problems
    if problems:
        told = "; ".join(problem.removeprefix(f"the store {copy}: ") for problem in problems[:_MOST_TOLD])
        raise StorageError(f"the store {shown}: it is damaged ({told})", StorageTrouble.CORRUPT)
    with explained(shown), closing(sqlite3.connect(copy)) as connection:
        misfit = find_misfit(connection)
    if misfit is not None:
        told = f"a row of {misfit} holds what no store keeps there"
        raise StorageError(f"the store {shown}: it is damaged ({told})", StorageTrouble.CORRUPT)
