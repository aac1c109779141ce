"""Which version of our tables a database has, and how it is brought to the newest one.

Alembic takes a third of a second to import, so only an upgrade loads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from alembic.config import Config
    from sqlalchemy import Connection


#: All revisions in `migrations/versions`, oldest first.
VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
HEAD = VERSIONS[-1]
#: Not Alembic's own name for it: a database of somebody else who uses Alembic is then never taken for ours.
VERSION_TABLE = "golden_version"
#: Asks for the version of tables that are ours.
ASK_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
MIGRATIONS = Path(__file__).with_name("migrations")
_NAMES_ON_SQLITE = "SELECT name FROM sqlite_master"
_NAMES_ON_SERVER = (
    "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


class Begun(NamedTuple):
    """What the begin of a write has found: the version of the tables, where it has looked, and the rows that were asked for."""

    version: Found | None
    answers: list[Iterator[Any]]


class Found(NamedTuple):
    """The row of the version, None where it is lost."""

    row: Sequence[Any] | None


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
    version = connection.exec_driver_sql(ASK_VERSION).scalar()
    if version is None:
        raise _describe_lost(where)
    if version not in VERSIONS:
        raise StorageError(
            f"the store {where}: it was made by a newer pytest-golden-projects (version {version} of the tables, this "
            f"one knows {HEAD}); upgrade it with `pip install --upgrade pytest-golden-projects`",
            StorageTrouble.NEWER,
        )
    return str(version)


def refuse_upgraded(connection: Connection, where: str, found: Found | None = None) -> None:
    """Refuse a store whose tables are no longer what they were when it was opened: a newer program's, or an older backup's.

    `found` is what the transaction's begin has found; None where it has not looked. Asked in every transaction, and so of
    the driver itself.

    Raises:
        StorageError: they are of another version.
        sqlite3.Error, psycopg.Error: the version cannot be read.
    """
    if found is None:
        driver: Any = connection.connection.driver_connection
        found = Found(driver.execute(ASK_VERSION).fetchone())
    row = found.row
    if row is None:
        raise _describe_lost(where)
    if row[0] in VERSIONS[:-1]:
        raise describe_older(where, row[0], "a backup of that time was restored: run `golden store upgrade` for it")
    if row[0] != HEAD:
        raise StorageError(
            f"the store {where}: it was brought up to version {row[0]} of the tables by a newer pytest-golden-projects "
            f"(this one knows {HEAD}): restart this process with the newer one",
            StorageTrouble.NEWER,
        )


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, within the transaction that the connection is in."""
    from alembic import command

    command.upgrade(make_config(connection), "head")


def make_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration; `migrations/env.py` finds the connection in it."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # The configuration is an ini file to Alembic: a percent sign in a path would begin a reference.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def describe_older(where: str, version: str | None, remedy: str) -> StorageError:
    """Put into words that a store lacks tables, which are not to be made here."""
    what = "it has no tables yet" if version is None else f"its tables are of an older version ({version})"
    return StorageError(f"the store {where}: {what}; {remedy}", StorageTrouble.OLDER)


def describe_foreign(where: str) -> StorageError:
    """Put into words that there is a database, and that it is not ours."""
    return StorageError(f"the store {where}: it is a database of another program; give another file")


def _describe_lost(where: str) -> StorageError:
    return StorageError(f"the store {where}: it is damaged (its version is lost)", StorageTrouble.CORRUPT)


def _describe_foreign_tables(where: str, names: set[str]) -> StorageError:
    named = ", ".join(sorted(names))
    message = f"the store {where}: tables of another program are there ({named}); give another database or schema"
    return StorageError(message)
