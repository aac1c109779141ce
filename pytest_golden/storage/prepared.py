"""Statements that run for every result, entry and memory: put into SQL once, and run by the driver itself.

On its way through SQLAlchemy such a statement costs several times what SQLite needs for it, and most of all right after
a pipeline has run, when nothing of that way is left in the processor's cache.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.sqlite import dialect

from pytest_golden.storage.engine import dump_json, find_driver

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

_DIALECT = dialect(paramstyle="qmark", json_serializer=dump_json)


class Prepared:
    """A Core statement that the driver runs. `columns` are those that it inserts or sets, by name.

    Values are bound as the types of their columns say. Rows come as the driver gives them: a column of JSON is text, a
    Boolean is 0 or 1.
    """

    __slots__ = ("_binders", "_columns", "_fixed", "_make_row", "_name_count", "_sql", "_statement")

    def __init__(self, statement: Any, *columns: str) -> None:
        self._statement = statement
        self._columns = columns
        self._sql: str | None = None
        self._fixed: dict[str, Any] = {}
        self._binders: list[tuple[str, Callable[[Any], Any] | None]] = []
        self._name_count = 0
        self._make_row: Callable[[Any], Any] = tuple

    def run(self, connection: Connection, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run it in the connection's transaction, with exactly the values that it names.

        Raises:
            KeyError, ValueError: a value is missing, or one has no place in it.
            sqlite3.Error: the store explains it.
        """
        if self._sql is None:
            self._sql = self._compile()
        given = {**self._fixed, **values} if self._fixed else values
        parameters = [given[name] if bind is None else bind(given[name]) for name, bind in self._binders]
        if len(given) != self._name_count:
            unknown = sorted(given.keys() - {name for name, _ in self._binders})
            raise ValueError(f"{', '.join(unknown)} has no place in: {self._sql}")
        return find_driver(connection).execute(self._sql, parameters)

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run it and give its first row, a named tuple of its columns; None without one."""
        # To the end: a statement with rows left keeps what it reads or writes open.
        rows = self.run(connection, values).fetchall()
        return self._make_row(rows[0]) if rows else None

    def _compile(self) -> str:
        compiled = self._statement.compile(dialect=_DIALECT, column_keys=list(self._columns) or None)
        row: Any = namedtuple("Row", [*self._statement.exported_columns.keys()])  # type: ignore[misc]  # noqa: PYI024 - the statement names its fields
        self._make_row = row._make
        binds = {name: compiled.binds[name] for name in compiled.positiontup or ()}
        self._fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
        self._binders = [
            (name, binds[name].type.dialect_impl(_DIALECT).bind_processor(_DIALECT))
            for name in compiled.positiontup or ()
        ]
        self._name_count = len(binds)
        return str(compiled)
