"""Read, digest and number the rows of a table, in the same way on every database."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import JSON, BigInteger, Text, and_, bindparam, cast, func, or_, select, text, update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Column, Connection, Table

    Row = tuple[Any, ...]
    from sqlalchemy import ColumnElement


_ROWS_AT_ONCE = 2_000


class TableContent(NamedTuple):
    """The number of rows of a table, and the SHA-256 of all rows in the order of their keys."""

    rows: int
    sha256: str


class ContentDigest:
    """Digest the rows of a table: each is a line, a JSON array of its values."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Sequence[Row]) -> None:
        """Add the next rows."""
        self.rows += len(rows)
        self._hash.update("".join([f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows]).encode("ascii"))

    def finish(self) -> TableContent:
        """Return the digest of all rows."""
        return TableContent(self.rows, self._hash.hexdigest())


def list_columns(table: Table) -> list[Column[Any]]:
    """Return the columns of a table in the order of `read_rows`, its key first."""
    (key,) = table.primary_key
    return [key, *(column for column in table.c if column is not key)]


def count_rows(connection: Connection, table: Table) -> int:
    """Count the rows of a table."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def read_rows(connection: Connection, table: Table) -> Iterator[Sequence[Row]]:
    """Yield all rows by their key, some at a time; JSON is the text that is stored."""
    columns = list_columns(table)
    query = select(*[cast(column, Text) if isinstance(column.type, JSON) else column for column in columns])
    query = query.order_by(columns[0]).limit(_ROWS_AT_ONCE)
    rows = connection.execute(query).all()
    while rows:
        yield [tuple(row) for row in rows]
        rows = connection.execute(query.where(columns[0] > rows[-1][0])).all()


_ROWS_IN_PAGE = 500
_FROM_SEQUENCE = text("SELECT nextval(pg_get_serial_sequence(:name, 'number')) FROM generate_series(1, :amount)")


def take_numbers(connection: Connection, table: Table, amount: int) -> list[int]:
    """Return rising numbers that no row of a table has or had; the table must have a column `number`."""
    if connection.dialect.name == "sqlite":
        last = connection.scalar(select(func.max(table.c.number))) or 0
        return list(range(last + 1, last + 1 + amount))
    names = {"name": f'"{table.name}"', "amount": amount}
    return sorted(connection.scalars(_FROM_SEQUENCE, names))


def number_by_time(connection: Connection, moment: Column[int], key: Column[Any], since: int) -> None:
    """Renumber the rows of a table that were made at `since` or later, by time and then by a key.

    Nothing may refer to the numbers.
    """
    table = moment.table
    for rows in page_by_time(connection, moment, key, (table.c.number,), since):
        _renumber(connection, table, [row.number for row in rows])


def number_parts_by_time(connection: Connection, moment: Column[int], owner: Column[Any], since: int) -> None:
    """Renumber the rows of a table that were made at `since` or later, by time; rows of one owner keep their order.

    Nothing may refer to the numbers.
    """
    number = moment.table.c.number
    # After a clock went back, a row stays behind the earlier rows of its owner.
    reached = func.max(moment).over(partition_by=owner, order_by=number).label("reached")
    rows = (
        select(number, owner.label("owner"), reached).where(owner.in_(select(owner).where(moment >= since))).subquery()
    )
    chosen = select(rows.c.number).where(rows.c.reached >= since).order_by(rows.c.reached, rows.c.owner, rows.c.number)
    present = connection.scalars(chosen).all()
    for start in range(0, len(present), _ROWS_IN_PAGE):
        _renumber(connection, moment.table, present[start : start + _ROWS_IN_PAGE])


def page_by_time(
    connection: Connection,
    moment: Column[int],
    key: Column[Any],
    columns: Sequence[ColumnElement[Any]],
    since: int | None = None,
    *only: ColumnElement[bool],
) -> Iterator[Sequence[Any]]:
    """Yield some columns of a table's rows, by time and a unique key, some hundred rows at a time.

    The last two columns of each row are the time and the key. Other columns may change meanwhile.
    """
    query = select(*columns, moment.label("page_moment"), key.label("page_key")).where(*only)
    query = query.order_by(moment, key).limit(_ROWS_IN_PAGE)
    first = query if since is None else query.where(moment >= since)
    low = bindparam("low_moment", type_=BigInteger())
    after = query.where(and_(moment >= low, or_(moment > low, key > bindparam("low_key", type_=key.type))))
    rows = connection.execute(first).all()
    while rows:
        yield rows
        if len(rows) < _ROWS_IN_PAGE:
            return
        rows = connection.execute(after, {"low_moment": rows[-1].page_moment, "low_key": rows[-1].page_key}).all()


def _renumber(connection: Connection, table: Table, present: Sequence[int]) -> None:
    number = update(table).where(table.c.number == bindparam("present")).values(number=bindparam("next"))
    numbers = take_numbers(connection, table, len(present))
    changed = [{"present": old, "next": new} for old, new in zip(present, numbers, strict=True)]
    connection.execute(number, changed)
