"""Make the tables of a new store, and bring those of an older store up to date. Loaded only for that.

A new store is made from the schema and needs no migration. Only an older one loads Alembic, which takes a third of a
second to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import MetaData, Text
from sqlalchemy.schema import CreateIndex, CreateTable

from pytest_golden.storage.schema import metadata
from pytest_golden.storage.search import choose_index
from pytest_golden.storage.tally import make_tally
from pytest_golden.storage.version import VERSION_TABLE, find_version, newest_version

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection


MIGRATIONS = Path(__file__).with_name("migrations")
# The form that Alembic gives it.
_MAKE_VERSION = (
    f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
    f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
)


def upgrade(connection: Connection, where: str) -> None:
    """Make the tables of the store `where`, or run the migrations that it lacks, in the connection's transaction.

    Another process may have done so meanwhile; then nothing is left to do.

    Raises:
        StorageError: the store is of a newer version than this program knows, or it is another program's.
    """
    version = find_version(connection, where)
    if version is None:
        _make_tables(connection)
    elif version != newest_version():
        from alembic import command

        command.upgrade(make_config(connection), "head")


def make_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration; `migrations/env.py` finds the connection in it."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # To Alembic the configuration is an ini file: a percent sign in a path would begin a reference.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _make_tables(connection: Connection) -> None:
    tables = metadata if connection.dialect.name == "sqlite" else _copy_for_server()
    for table in tables.sorted_tables:
        connection.execute(CreateTable(table))
        # In a fixed order: of two indexes that serve a query equally well, SQLite takes the one that was made last.
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
    make_tally(connection)
    choose_index(connection).make(connection)
    connection.exec_driver_sql(_MAKE_VERSION)
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{newest_version()}')")


def _copy_for_server() -> MetaData:
    """Return the tables for PostgreSQL: its text sorts by bytes, and its indexes leave out what SQLite's leave out.

    In the schema itself these options would load PostgreSQL's dialect at each start.
    """
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        copy = table.to_metadata(tables)
        for column in copy.columns:
            if isinstance(column.type, Text):
                column.type = Text(collation="C")
        for index in copy.indexes:
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    return tables
