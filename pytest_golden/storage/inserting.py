"""An insert that leaves a row which is there as it is: one statement instead of a look and a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table


class _UnlessThere(ClauseElement):
    # Both databases say it alike, and each dialect's own clause is known to that dialect alone.
    inherit_cache = True
    _traverse_internals = ()  # type: ignore[assignment]


@compiles(_UnlessThere)
def _compile(*_: object, **__: object) -> str:
    return "ON CONFLICT DO NOTHING"


def insert_if_absent(table: Table, *returned: ColumnElement[Any]) -> Insert:
    """Make the statement; it gives no row when a unique key of the table is taken."""
    statement = insert(table)
    statement._post_values_clause = _UnlessThere()  # noqa: SLF001 - where the dialects put theirs
    return statement.returning(*returned) if returned else statement
