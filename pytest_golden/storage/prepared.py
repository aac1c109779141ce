"""Statements that run for every result, entry and memory: put into SQL once, and run by the driver itself.

On its way through SQLAlchemy such a statement costs several times what SQLite needs for it, and most of all right after
a pipeline has run, when nothing of that way is left in the processor's cache.
"""

from __future__ import annotations

import json
import sqlite3
from collections import namedtuple
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlalchemy import JSON, Boolean
from sqlalchemy.dialects.sqlite import dialect

from pytest_golden.storage.engine import dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.types import TypeEngine

    from pytest_golden.storage.postgresql import Asked, Compiled

_DIALECT = dialect(paramstyle="qmark", json_serializer=dump_json)


class Rows(Protocol):
    """A driver's cursor, as far as the two databases agree."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """Give all rows that are left."""
        ...


class Question(NamedTuple):
    """A SELECT that is asked together with others. One without a limit `is_paged`: its rows are fetched as they are taken."""

    statement: Prepared
    values: Mapping[str, Any]
    is_paged: bool = False

    def ask_on_server(self, connection: Connection) -> Asked:
        """Give what a server is asked."""
        return (*self.statement.bind_on_server(connection, self.values), self.is_paged)


class Prepared:
    """A Core statement that the driver runs. `columns` are those that it inserts or sets, by name.

    Values are bound as the types of their columns say. Rows come as the driver gives them: a column of JSON is text, a
    Boolean is one, or 0 or 1.
    """

    __slots__ = (
        "_binders",
        "_columns",
        "_fixed",
        "_loaders",
        "_make_row",
        "_name_count",
        "_on_server",
        "_sql",
        "_statement",
    )

    def __init__(self, statement: Any, *columns: str) -> None:
        self._statement = statement
        self._columns = columns
        self._sql: str | None = None
        self._fixed: dict[str, Any] = {}
        self._binders: list[tuple[str, Callable[[Any], Any] | None]] = []
        self._name_count = 0
        self._make_row: Callable[[Any], Any] = tuple
        self._on_server: Compiled | None = None
        self._loaders: tuple[Callable[[Any], Any] | None, ...] | None = None

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Rows:
        """Run it in the connection's transaction, with exactly the values that it names.

        Raises:
            KeyError, ValueError: a value is missing, or one has no place in it.
            sqlite3.Error, psycopg.Error: the store explains it.
        """
        driver = connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            return self._run_on_server(connection, values)
        if self._sql is None:
            self._sql = self._compile()
        given = {**self._fixed, **values} if self._fixed else values
        parameters = [given[name] if bind is None else bind(given[name]) for name, bind in self._binders]
        if len(given) != self._name_count:
            self._refuse_unknown(given, {name for name, _ in self._binders})
        return driver.execute(self._sql, parameters)

    def leave(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Run one that gives no rows and whose count of rows nobody asks for.

        A server gets it with what is asked next, or with the end of the transaction: what is wrong with it is raised then.
        """
        if isinstance(connection.connection.driver_connection, sqlite3.Connection):
            self.run(connection, values)
            return
        from pytest_golden.storage.postgresql import leave_compiled  # noqa: PLC0415 - loads what is in an extra

        leave_compiled(connection, *self.bind_on_server(connection, values))

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run it and give its first row, a named tuple of its columns; None without one."""
        # To the end: a statement with rows left keeps what it reads or writes open.
        return self.name_first(self.run(connection, values).fetchall())

    def name_first(self, rows: Sequence[Any]) -> Any:
        """Give the first of the rows that it gave as a named tuple of its columns; None without one."""
        return self._make_row(rows[0]) if rows else None

    def decode(self, rows: Iterable[Any]) -> list[Any]:
        """Give the rows that it gave as SQLAlchemy does: named tuples, with the values of JSON and Booleans."""
        if self._loaders is None:
            self._loaders = tuple(_find_loader(column.type) for column in self._statement.exported_columns)
        loaders = self._loaders
        return [
            self._make_row(
                value if load is None or value is None else load(value)
                for value, load in zip(row, loaders, strict=True)
            )
            for row in rows
        ]

    def stream(self, connection: Connection, values: Mapping[str, Any]) -> Iterator[Any]:
        """Run a SELECT without a limit, whose rows are fetched as they are asked for."""
        if isinstance(connection.connection.driver_connection, sqlite3.Connection):
            return iter(self.run(connection, values))
        from pytest_golden.storage.postgresql import page_compiled  # noqa: PLC0415 - loads what is in an extra

        compiled, parameters = self.bind_on_server(connection, values)
        return page_compiled(connection, compiled, parameters)

    def _run_on_server(self, connection: Connection, values: Mapping[str, Any]) -> Rows:
        from pytest_golden.storage.postgresql import run_compiled  # noqa: PLC0415 - loads what is in an extra

        return run_compiled(connection, *self.bind_on_server(connection, values))

    def bind_on_server(self, connection: Connection, values: Mapping[str, Any]) -> tuple[Compiled, dict[str, Any]]:
        """Give what a server is sent."""
        if self._on_server is None:
            from pytest_golden.storage.postgresql import compile_statement  # noqa: PLC0415 - loads what is in an extra

            self._make_row = self._name_rows()
            self._on_server = compile_statement(self._statement, list(self._columns) or None, connection)
        compiled = self._on_server
        given = {**compiled.fixed, **values}
        parameters = {
            name: given[name] if bind is None else bind(given[name]) for name, bind in compiled.binders.items()
        }
        if len(given) != len(parameters):
            self._refuse_unknown(given, set(parameters))
        return compiled, parameters

    def _refuse_unknown(self, given: Mapping[str, Any], known: set[str]) -> None:
        unknown = sorted(given.keys() - known)
        raise ValueError(f"{', '.join(unknown)} has no place in: {self._sql or self._statement}")

    def _name_rows(self) -> Callable[[Any], Any]:
        row: Any = namedtuple("Row", [*self._statement.exported_columns.keys()])  # type: ignore[misc]  # noqa: PYI024 - the statement names its fields
        make: Callable[[Any], Any] = row._make
        return make

    def _compile(self) -> str:
        compiled = self._statement.compile(dialect=_DIALECT, column_keys=list(self._columns) or None)
        self._make_row = self._name_rows()
        binds = {name: compiled.binds[name] for name in compiled.positiontup or ()}
        self._fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
        self._binders = [
            (name, binds[name].type.dialect_impl(_DIALECT).bind_processor(_DIALECT))
            for name in compiled.positiontup or ()
        ]
        self._name_count = len(binds)
        return str(compiled)


def ask(connection: Connection, *questions: Question) -> list[Iterator[Any]]:
    """Give the rows of each. A server is asked all in one trip, a file only when the rows are taken.

    Nothing must be written before they are taken.
    """
    if is_near(connection):
        return [_run_later(connection, question) for question in questions]
    from pytest_golden.storage.postgresql import ask_compiled  # noqa: PLC0415 - loads what is in an extra

    return ask_compiled(connection, [one.ask_on_server(connection) for one in questions])


def _find_loader(kind: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    if isinstance(kind, JSON):
        return json.loads
    return bool if isinstance(kind, Boolean) else None


def is_near(connection: Connection) -> bool:
    """Tell whether a question costs no trip to a server: then few small ones are better than one that is large."""
    return isinstance(connection.connection.driver_connection, sqlite3.Connection)


def _run_later(connection: Connection, question: Question) -> Iterator[Any]:
    # Not `yield from`: that would close the cursor of rows that nobody takes to the end, maybe after their database.
    for row in question.statement.run(connection, question.values):  # noqa: UP028 - see above
        yield row
