"""Which version of our tables a database has, told without Alembic, whose import costs a third of a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

#: All revisions in `migrations/versions`, oldest first.
VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
HEAD = VERSIONS[-1]
#: Not Alembic's own name for it: a database of somebody else who uses Alembic is then never taken for ours.
VERSION_TABLE = "golden_version"
_NAMES_ON_SQLITE = "SELECT name FROM sqlite_master"
_NAMES_ON_SERVER = (
    "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


def find_version(connection: Connection, where: str) -> str | None:
    """Find the version of the store `where`; None for a database that has none of our tables.

    A file holds nothing else than a store; beside one in a schema of a server there may be other tables.

    Raises:
        StorageError: it is of a newer version than this program knows, or it is not ours.
    """
    is_file = connection.dialect.name == "sqlite"
    names = set(connection.exec_driver_sql(_NAMES_ON_SQLITE if is_file else _NAMES_ON_SERVER).scalars())
    if not is_file:
        names &= {*metadata.tables, VERSION_TABLE}
    if not names:
        return None
    if VERSION_TABLE not in names:
        raise describe_foreign(where) if is_file else _describe_foreign_tables(where, names)
    version = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    if version is None:
        raise StorageError(f"the store {where}: it is damaged (its version is lost)", StorageTrouble.CORRUPT)
    if version not in VERSIONS:
        raise StorageError(
            f"the store {where}: it was made by a newer pytest-golden-projects (version {version} of the tables, this "
            f"one knows {HEAD}); upgrade it with `pip install --upgrade pytest-golden-projects`",
            StorageTrouble.NEWER,
        )
    return str(version)


def describe_foreign(where: str) -> StorageError:
    """Put into words that there is a database, and that it is not ours."""
    return StorageError(f"the store {where}: it is a database of another program; give another file")


def _describe_foreign_tables(where: str, names: set[str]) -> StorageError:
    named = ", ".join(sorted(names))
    message = f"the store {where}: tables of another program are there ({named}); give another database or schema"
    return StorageError(message)
