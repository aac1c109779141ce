"""Statements of the writes that others wait for: of a signal, an entry, a gate result, a memory.

They are compiled to SQL once and run by the driver itself, and PostgreSQL receives them in batches: writers of a store go
one after another, so each trip to the server keeps all others waiting. All other statements are plain `connection.execute`.
What was measured is in `.github/decisions/0009-batches-for-what-others-wait-for.md`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import namedtuple
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import JSON, BigInteger, Boolean, Insert, Text, TypeDecorator, bindparam, case, cast, func, insert
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.sql.functions import FunctionElement

from pytest_golden.storage.engine import Sent, dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Dialect, Table
    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine


_DIALECT = sqlite_dialect(paramstyle="named", json_serializer=dump_json)


class Question(NamedTuple):
    """A SELECT to send together with others. If `is_paged`, it has no limit, and its rows are fetched as they are consumed."""

    statement: Prepared
    values: Mapping[str, Any]
    is_paged: bool = False


class Prepared:
    """A Core statement that the driver runs. `columns` are the names of those that it inserts or sets.

    Values are bound by the types of their columns. Rows are the driver's: JSON is text, and a Boolean may be 0 or 1.
    """

    def __init__(self, statement: Any, *columns: str) -> None:
        self._statement = statement
        self._columns = columns
        # By the name of the database.
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run the statement in the connection's transaction, with exactly the values that it names; return a cursor.

        Raises:
            KeyError, ValueError: a value is missing, or the statement does not name it.
            sqlite3.Error, psycopg.Error: the store explains it.
        """
        bound = self.bind(connection, values)
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            return driver.execute(bound.sql, bound.parameters)
        from pytest_golden.storage.postgresql import send

        (cursor,) = send(connection, bound)
        return cursor

    def leave(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Run a statement that returns nothing.

        A server receives it with the next question or with the end of the transaction; an error is raised only then.
        """
        if is_near(connection):
            self.run(connection, values)
            return
        from pytest_golden.storage.postgresql import leave

        leave(connection, self.bind(connection, values))

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run the statement and return its first row as a named tuple of its columns; None if there is no row."""
        # Fetch all: an unfinished statement keeps what it reads or writes open.
        return self.name_first(self.run(connection, values).fetchall())

    def name_first(self, rows: Sequence[Any]) -> Any:
        """Return the first of these rows as a named tuple of the columns; None if there is no row."""
        return self._make_row(rows[0]) if rows else None

    def decode(self, rows: Iterable[Any]) -> list[Any]:
        """Return these rows as SQLAlchemy does: named tuples, with JSON and Booleans as Python values."""
        return [
            self._make_row(
                value if load is None or value is None else load(value)
                for value, load in zip(row, self._loaders, strict=True)
            )
            for row in rows
        ]

    def stream(self, connection: Connection, values: Mapping[str, Any]) -> Iterator[Any]:
        """Run a SELECT without a limit, and fetch its rows as they are consumed."""
        if is_near(connection):
            return iter(self.run(connection, values))
        from pytest_golden.storage.postgresql import page

        return page(connection, self.bind(connection, values))

    def bind(self, connection: Connection, values: Mapping[str, Any]) -> Sent:
        """Return the compiled statement with its parameters."""
        database = connection.dialect.name
        if database not in self._compiled:
            dialect = _DIALECT if database == _SQLITE else connection.dialect
            self._compiled[database] = _compile(self._statement, self._columns, dialect)
        compiled = self._compiled[database]
        given = {**compiled.fixed, **values}
        parameters = {
            name: given[name] if bind is None else bind(given[name]) for name, bind in compiled.binders.items()
        }
        if len(given) != len(parameters):
            unknown = sorted(given.keys() - parameters.keys())
            raise ValueError(f"{', '.join(unknown)} has no place in: {compiled.sent.sql}")
        return compiled.sent._replace(parameters=parameters)

    @cached_property
    def _make_row(self) -> Callable[[Any], Any]:
        row: Any = namedtuple("Row", [*self._statement.exported_columns.keys()])  # type: ignore[misc]  # noqa: PYI024 - the statement names its fields
        make: Callable[[Any], Any] = row._make
        return make

    @cached_property
    def _loaders(self) -> tuple[Callable[[Any], Any] | None, ...]:
        return tuple(_find_loader(column.type) for column in self._statement.exported_columns)


class _Compiled(NamedTuple):
    """A compiled statement without its parameters. `binders` turn values into those; `fixed` are the statement's own."""

    sent: Sent
    fixed: Mapping[str, Any]
    binders: Mapping[str, Callable[[Any], Any] | None]


def _compile(statement: Any, columns: Sequence[str], dialect: Dialect) -> _Compiled:
    if isinstance(statement, Insert) and not statement.exported_columns:
        # Otherwise it would return the key of each row.
        statement = statement.inline()
    compiled = statement.compile(dialect=dialect, column_keys=list(columns) or None)
    binders = {name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()}
    fixed = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    has_json = any(isinstance(column.type, JSON) for column in statement.exported_columns)
    sql = str(compiled)
    # The statement's own numbers, such as limits, become part of a server's SQL: with a limit as a parameter, a server makes a
    # new plan each time.
    for name in [name for name, value in fixed.items() if type(value) is int and dialect is not _DIALECT]:
        sql = sql.replace(f"%({name})s", str(fixed.pop(name)))
        del binders[name]
    return _Compiled(Sent(sql, {}, has_json), fixed, binders)


def ask(connection: Connection, *questions: Question) -> list[Iterator[Any]]:
    """Return the rows of each question. A server answers all in one trip; a file is read when the rows are consumed.

    Write nothing before they are consumed.
    """
    if is_near(connection):
        return [_run_later(connection, question) for question in questions]
    from pytest_golden.storage.postgresql import ask_server

    return ask_server(connection, questions)


def _find_loader(kind: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    if isinstance(kind, JSON):
        return json.loads
    return bool if isinstance(kind, Boolean) else None


def is_near(connection: Connection) -> bool:
    """Tell whether a question needs no trip to a server. Then a few small questions are faster than a large one."""
    return isinstance(connection.connection.driver_connection, sqlite3.Connection)


def _run_later(connection: Connection, question: Question) -> Iterator[Any]:
    # Not `yield from`: it would close the cursor of rows that are not consumed, perhaps after the database was closed.
    for row in question.statement.run(connection, question.values):  # noqa: UP028 - see above
        yield row


class _UnlessThere(ClauseElement):
    # Both databases write it the same way, but each dialect's own clause works in that dialect only.
    inherit_cache = True
    _traverse_internals = ()  # type: ignore[assignment]


@compiles(_UnlessThere)
def _compile_unless_there(*_: object, **__: object) -> str:
    return "ON CONFLICT DO NOTHING"


def insert_if_absent(table: Table, *returned: ColumnElement[Any]) -> Insert:
    """Return an INSERT that does nothing, and returns no row, if a unique key of the table is taken."""
    statement = insert(table)
    statement._post_values_clause = _UnlessThere()  # noqa: SLF001 - where the dialects put theirs
    return statement.returning(*returned) if returned else statement


class _Listed(FunctionElement[Any]):
    """A JSON list as rows; both databases call the column `value`."""

    inherit_cache = True
    name = "listed"


@compiles(_Listed, "sqlite")
def _compile_listed_for_sqlite(listed: _Listed, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(listed.clauses, **options)})"


@compiles(_Listed)
def _compile_listed_for_others(listed: _Listed, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(listed.clauses, **options)} AS JSON))"


def list_numbers(name: str) -> ColumnElement[int]:
    """Return a column with the numbers of a JSON list, which is bound as text under this name."""
    return cast(_Listed(bindparam(name, type_=Text())).table_valued("value").c.value, BigInteger)


_SQLITE = "sqlite"


class _MemberType(TypeDecorator[Any]):
    """Read a member of a JSON value: SQLite returns the member, PostgreSQL the whole value.

    PostgreSQL refuses to look into JSON with an escaped NUL or lone surrogate anywhere.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, key: str, *, is_text: bool) -> None:
        super().__init__()
        self.key = key
        self.is_text = is_text

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text() if self.is_text and dialect.name == _SQLITE else JSON()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if dialect.name == _SQLITE:
            return value
        member = value.get(self.key) if isinstance(value, dict) else None
        return json.dumps(member) if self.is_text and not isinstance(member, str | None) else member


class _Member(FunctionElement[Any]):
    """Two expressions, the first for SQLite."""

    inherit_cache = True
    name = "json_member"


@compiles(_Member, _SQLITE)
def _compile_member_for_sqlite(member: _Member, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(next(iter(member.clauses)), **options)


@compiles(_Member)
def _compile_member_for_others(member: _Member, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(list(member.clauses)[1], **options)


def json_member(column: Column[Any], key: str) -> Any:
    """Return a member's value."""
    return _member(column, column[key], _MemberType(key, is_text=False))


def json_member_text(column: Column[Any], key: str, *, may_be_damaged: bool = False) -> Any:
    """Return a member that is a text, or NULL; one of another kind as its JSON.

    With `may_be_damaged`, what is not JSON, as anybody may write into SQLite, has no members; else it raises.
    """
    on_sqlite = column[key].as_string()
    if may_be_damaged:
        on_sqlite = case((func.json_valid(cast(column, Text)) == 1, on_sqlite))
    return _member(column, on_sqlite, _MemberType(key, is_text=True))


def _member(column: Column[Any], on_sqlite: Any, kind: _MemberType) -> Any:
    member = _Member(on_sqlite, column)
    member.type = kind
    return member.label(kind.key)
