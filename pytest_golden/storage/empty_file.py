"""A SQLite file that a copy of a store goes into: it gets its name when all is in it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError, StorageError
from pytest_golden.storage.files import made_whole
from pytest_golden.storage.row_copies import list_columns
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sqlalchemy import Connection, Table

    from pytest_golden.storage.location import Location


@contextmanager
def open_empty(place: Location) -> Iterator[Connection]:
    """Return a connection to an empty store; what is written is kept when the block ends well, and else no file is left.

    Raises:
        SettingsError: no file can be there.
        StorageError: it is there already, or cannot be written.
    """
    if place.path is None:
        raise SettingsError(f"the store {place.shown} would be gone at once; give a file")
    with made_whole(place.path) as draft:
        try:
            with Store.open(draft) as store, store.write() as connection:
                yield connection
        except StorageError as error:
            raise StorageError(str(error).replace(str(draft), place.shown), error.trouble) from error


def load_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows, whose values stand in the order of `list_columns`."""
    quote = connection.dialect.identifier_preparer.quote
    names = [quote(column.name) for column in list_columns(table)]
    marks = ", ".join("?" * len(names))
    connection.exec_driver_sql(f"INSERT INTO {quote(table.name)} ({', '.join(names)}) VALUES ({marks})", list(rows))


def finish(connection: Connection) -> None:
    """Let the database's own statistics know what is there."""
    connection.exec_driver_sql("ANALYZE")
