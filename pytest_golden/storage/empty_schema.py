"""A PostgreSQL schema that a copy of a store goes into, in one transaction. Loaded only for such a target."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.engine import BUSY_SECONDS, explained
from pytest_golden.storage.postgresql import find_driver, reach_server, refuse_encoding
from pytest_golden.storage.row_copies import list_columns
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.tally import recount_tally
from pytest_golden.storage.upgrading import upgrade
from pytest_golden.storage.version import find_version, newest_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Table

    from pytest_golden.storage.location import Location


@contextmanager
def open_empty(place: Location) -> Iterator[Connection]:
    """Return a connection to an empty store; its tables are made when they are not there, in the same transaction.

    Raises:
        StorageError: there are rows, or tables of another version or program, or it cannot be written.
    """
    database = reach_server(place, BUSY_SECONDS)
    try:
        with explained(place.shown), database.engine.connect() as connection, database.preparing(connection):
            _prepare(connection, place.shown)
            # One row of sums that is written once for each entry would be read through all its versions each time.
            connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER USER")
            yield connection
    finally:
        database.engine.dispose()


def load_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows, whose values stand in the order of `list_columns`."""
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column.name) for column in list_columns(table))
    statement = f"COPY {quote(table.name)} ({names}) FROM STDIN"
    with find_driver(connection).cursor() as cursor, cursor.copy(statement.encode()) as copy:
        for row in rows:
            copy.write_row(row)


def finish(connection: Connection) -> None:
    """Count the tally, set the sequences behind the highest numbers, and let the planner know what is there."""
    recount_tally(connection)
    connection.exec_driver_sql("ALTER TABLE entries ENABLE TRIGGER USER")
    for name, table in metadata.tables.items():
        connection.exec_driver_sql(f"ANALYZE {name}")
        if "number" in table.c:
            # No rollback takes it back: it is the last thing that is done.
            connection.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'number'), max(number)) FROM {name} HAVING count(*) > 0"
            )
    connection.exec_driver_sql("ANALYZE memory_words")


def _prepare(connection: Connection, where: str) -> None:
    refuse_encoding(connection, where)
    version = find_version(connection, where)
    if version is None:
        upgrade(connection, where)
    elif version != newest_version():
        message = (
            f"the store {where}: its tables are of an older version ({version}); run `golden store upgrade` for it"
        )
        raise StorageError(message, StorageTrouble.OLDER)
    filled = [
        name
        for name in metadata.tables
        if connection.execute(text(f"SELECT EXISTS (SELECT 1 FROM {name})")).scalar_one()
    ]
    if filled:
        raise StorageError(f"the store {where}: there are rows in it ({', '.join(filled)}); give an empty one")
