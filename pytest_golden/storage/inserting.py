"""An insert that leaves a row which is there as it is: one statement instead of a look and a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.sqlite import insert

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.sql.dml import ReturningInsert


def insert_if_absent(table: Table, *returned: ColumnElement[Any]) -> ReturningInsert[Any]:
    """Make the statement; it gives no row when a unique key of the table is taken."""
    return insert(table).on_conflict_do_nothing().returning(*returned)
