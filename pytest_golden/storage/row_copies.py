"""The rows of a table as plain values that are the same on every database, and what tells that two tables hold the same."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import JSON, Text, cast, func, select

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Column, Connection, Table

    Row = tuple[Any, ...]

_ROWS_AT_ONCE = 2_000


class TableContent(NamedTuple):
    """How many rows a table has, and the SHA-256 of them all in the order of their keys."""

    rows: int
    sha256: str


class ContentDigest:
    """Digests the rows of a table: each is a line, a JSON array of its values."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Sequence[Row]) -> None:
        """Take in the next rows."""
        self.rows += len(rows)
        self._hash.update("".join([f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows]).encode("ascii"))

    def finish(self) -> TableContent:
        """Give what all of them come to."""
        return TableContent(self.rows, self._hash.hexdigest())


def list_columns(table: Table) -> list[Column[Any]]:
    """Give the columns of a table, its key first: that is their order in rows."""
    (key,) = table.primary_key
    return [key, *(column for column in table.c if column is not key)]


def count_rows(connection: Connection, table: Table) -> int:
    """Count them."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def read_rows(connection: Connection, table: Table) -> Iterator[Sequence[Row]]:
    """Give all rows by their key, some at a time: JSON as the text that it is kept as."""
    columns = list_columns(table)
    query = select(*[cast(column, Text) if isinstance(column.type, JSON) else column for column in columns])
    query = query.order_by(columns[0]).limit(_ROWS_AT_ONCE)
    rows = connection.execute(query).all()
    while rows:
        yield [tuple(row) for row in rows]
        rows = connection.execute(query.where(columns[0] > rows[-1][0])).all()
