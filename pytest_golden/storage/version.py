"""Which version of our tables a database has, told without Alembic, whose import costs a third of a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import StorageError, StorageTrouble

if TYPE_CHECKING:
    from sqlalchemy import Connection

#: All revisions in `migrations/versions`, oldest first.
VERSIONS = ("0001", "0002")
HEAD = VERSIONS[-1]
#: Not Alembic's own name for it: a database of somebody else who uses Alembic is then never taken for ours.
VERSION_TABLE = "golden_version"


def find_version(connection: Connection, where: str) -> str | None:
    """Find the version of the store `where`; None for a database without any table.

    Raises:
        StorageError: it is of a newer version than this program knows, or it is not ours.
    """
    names = set(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())
    if not names:
        return None
    if VERSION_TABLE not in names:
        raise describe_foreign(where)
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
