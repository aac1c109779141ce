"""The order of recording, given anew: after rows of an older time have come in, numbers go by time again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, and_, bindparam, func, or_, select, text, update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Table

_AT_ONCE = 500
_FROM_SEQUENCE = text("SELECT nextval(pg_get_serial_sequence(:name, 'number')) FROM generate_series(1, :amount)")


def take_numbers(connection: Connection, table: Table, amount: int) -> list[int]:
    """Give numbers that no row of a table has or had, rising; the table has a column `number`."""
    if connection.dialect.name == "sqlite":
        last = connection.scalar(select(func.max(table.c.number))) or 0
        return list(range(last + 1, last + 1 + amount))
    names = {"name": f'"{table.name}"', "amount": amount}
    return sorted(connection.scalars(_FROM_SEQUENCE, names))


def number_by_time(connection: Connection, moment: Column[int], key: Column[Any], since: int) -> None:
    """Number the rows of a table that were made at a moment or later by their column of moments, and then by a key.

    Nobody may refer to the numbers.
    """
    table = moment.table
    for rows in page_by_time(connection, moment, key, (table.c.number,), since):
        _renumber(connection, table, [row.number for row in rows])


def number_parts_by_time(connection: Connection, moment: Column[int], owner: Column[Any], since: int) -> None:
    """Number the rows of a table that were made at a moment or later by time; those of one owner keep their order.

    Nobody may refer to the numbers.
    """
    number = moment.table.c.number
    # A clock that went back does not part a row from those before it.
    reached = func.max(moment).over(partition_by=owner, order_by=number).label("reached")
    rows = (
        select(number, owner.label("owner"), reached).where(owner.in_(select(owner).where(moment >= since))).subquery()
    )
    chosen = select(rows.c.number).where(rows.c.reached >= since).order_by(rows.c.reached, rows.c.owner, rows.c.number)
    present = connection.scalars(chosen).all()
    for start in range(0, len(present), _AT_ONCE):
        _renumber(connection, moment.table, present[start : start + _AT_ONCE])


def page_by_time(
    connection: Connection,
    moment: Column[int],
    key: Column[Any],
    columns: Sequence[ColumnElement[Any]],
    since: int | None = None,
    *only: ColumnElement[bool],
) -> Iterator[Sequence[Any]]:
    """Give some columns of a table's rows by its column of moments and a unique key, some hundred at once.

    The last two of each row are the moment and the key. What changes meanwhile in other columns is no matter.
    """
    query = select(*columns, moment.label("page_moment"), key.label("page_key")).where(*only)
    query = query.order_by(moment, key).limit(_AT_ONCE)
    first = query if since is None else query.where(moment >= since)
    low = bindparam("low_moment", type_=BigInteger())
    after = query.where(and_(moment >= low, or_(moment > low, key > bindparam("low_key", type_=key.type))))
    rows = connection.execute(first).all()
    while rows:
        yield rows
        if len(rows) < _AT_ONCE:
            return
        rows = connection.execute(after, {"low_moment": rows[-1].page_moment, "low_key": rows[-1].page_key}).all()


def _renumber(connection: Connection, table: Table, present: Sequence[int]) -> None:
    number = update(table).where(table.c.number == bindparam("present")).values(number=bindparam("next"))
    numbers = take_numbers(connection, table, len(present))
    changed = [{"present": old, "next": new} for old, new in zip(present, numbers, strict=True)]
    connection.execute(number, changed)
