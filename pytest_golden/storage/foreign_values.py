"""Whether a file that somebody else has made is a store all through, so that what is read from it is what a store keeps.

SQLite takes any value in any column, and lets a view stand where a table is looked for. The form alone is looked at; what
values mean is for who takes them in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import JSON, BigInteger, Boolean, Float, Integer

from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.schema import metadata

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Column, Table

_FIRST, _LAST = to_ms(datetime.min.replace(tzinfo=UTC)), to_ms(datetime.max.replace(tzinfo=UTC))
_NOT_TABLES = "SELECT name FROM sqlite_master WHERE type <> 'table' OR sql NOT LIKE 'CREATE TABLE %'"


def find_false_table(connection: sqlite3.Connection) -> str | None:
    """Name a table of ours that is none, but a view or a virtual one: reading it may have no end."""
    found = {str(row[0]) for row in connection.execute(_NOT_TABLES)}
    return min(found & set(metadata.tables), default=None)


def find_misfit(connection: sqlite3.Connection) -> str | None:
    """Name a table in which a column holds what no store writes there; its tables are of this version.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    for table in metadata.sorted_tables:
        if connection.execute(_write_query(table)).fetchone():
            return table.name
    return None


def _write_query(table: Table) -> str:
    fits = " AND ".join(_write_condition(column) for column in table.c)
    return f'SELECT 1 FROM "{table.name}" WHERE ({fits}) IS NOT 1 LIMIT 1'


def _write_condition(column: Column[object]) -> str:
    name = f'"{column.name}"'
    fits = _write_kind(column, name)
    return f"({name} IS NULL OR {fits})" if column.nullable else f"({fits})"


def _write_kind(column: Column[object], name: str) -> str:
    if isinstance(column.type, JSON):
        # A number alone is kept as one.
        return f"typeof({name}) <> 'blob' AND json_valid({name})"
    if isinstance(column.type, Boolean):
        return f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    if isinstance(column.type, Float):
        return f"typeof({name}) IN ('real', 'integer')"
    if isinstance(column.type, Integer):
        is_moment = isinstance(column.type, BigInteger) and column.name.endswith("_at")
        more = f" AND {name} BETWEEN {_FIRST} AND {_LAST}" if is_moment else ""
        return f"typeof({name}) = 'integer'{more}"
    return f"typeof({name}) = 'text'"
