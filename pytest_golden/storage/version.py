"""Which version of our tables a database has, and the errors for one that this program cannot use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection


#: The newest version: that of `schema.py`, and of the last migration. Versions are four digits and sort as text.
HEAD = "0001"
#: Not Alembic's own name, so that the database of another program that uses Alembic is never taken for ours.
VERSION_TABLE = "golden_version"
#: Reads the version of tables that are ours.
ASK_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
_NAMES_ON_SQLITE = "SELECT name FROM sqlite_master"
_NAMES_ON_SERVER = (
    "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


def newest_version() -> str:
    """Return the version that this program makes and needs."""
    return HEAD


def find_version(connection: Connection, where: str) -> str | None:
    """Return the version of the store `where`; None for a database without our tables.

    A file holds only a store. In a schema on a server, other tables may stand beside it.

    Raises:
        StorageError: the version is newer than this program knows, or the tables are another program's.
    """
    is_file = connection.dialect.name == "sqlite"
    names = set(connection.exec_driver_sql(_NAMES_ON_SQLITE if is_file else _NAMES_ON_SERVER).scalars())
    if not is_file:
        names &= {*metadata.tables, VERSION_TABLE}
    if not names:
        return None
    if VERSION_TABLE not in names:
        raise describe_foreign(where) if is_file else _describe_foreign_tables(where, names)
    version = connection.exec_driver_sql(ASK_VERSION).scalar()
    if version is None:
        raise _describe_lost(where)
    if version > HEAD:
        raise StorageError(
            f"the store {where}: it was made by a newer pytest-golden-projects (version {version} of the tables, this "
            f"one knows {HEAD}); upgrade it with `pip install --upgrade pytest-golden-projects`",
            StorageTrouble.NEWER,
        )
    return str(version)


def refuse_upgraded(row: Sequence[Any] | None, where: str) -> None:
    """Refuse a store whose tables have changed since it was opened: by a newer program, or by restoring an older backup.

    `row` is the answer to `ASK_VERSION` at the start of each transaction; None if the version is lost.

    Raises:
        StorageError: the tables are of another version.
    """
    if row is None:
        raise _describe_lost(where)
    if row[0] < HEAD:
        raise describe_older(where, row[0], "a backup of that time was restored: run `golden store upgrade` for it")
    if row[0] > HEAD:
        raise StorageError(
            f"the store {where}: it was brought up to version {row[0]} of the tables by a newer pytest-golden-projects "
            f"(this one knows {HEAD}): restart this process with the newer one",
            StorageTrouble.NEWER,
        )


def describe_older(where: str, version: str | None, remedy: str) -> StorageError:
    """Return the error for a store that has no tables or older ones, and is not brought up to date here."""
    what = "it has no tables yet" if version is None else f"its tables are of an older version ({version})"
    return StorageError(f"the store {where}: {what}; {remedy}", StorageTrouble.OLDER)


def describe_foreign(where: str) -> StorageError:
    """Return the error for a database of another program."""
    return StorageError(f"the store {where}: it is a database of another program; give another file")


def _describe_lost(where: str) -> StorageError:
    return StorageError(f"the store {where}: it is damaged (its version is lost)", StorageTrouble.CORRUPT)


def _describe_foreign_tables(where: str, names: set[str]) -> StorageError:
    named = ", ".join(sorted(names))
    message = f"the store {where}: tables of another program are there ({named}); give another database or schema"
    return StorageError(message)
