"""Reads tables out of PostgreSQL after a run, in one read-only transaction, as Parquet files that are equal if the tables are.

What a pipeline does there is not sealed: the gate only looks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.tables.database_files import (
    DatabaseError,
    ExportedTable,
    quote_identifier,
    read_rows,
)
from pytest_golden.compare.tables.duckdb_engine import QueryError, open_engine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_golden.compare.tables.database_files import Wanted
    from pytest_golden.compare.tables.duckdb_engine import Engine

_CONNECT_SECONDS = 10
_LIST = """\
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
  AND n.nspname NOT LIKE 'pg_temp%' AND NOT c.relispartition ORDER BY 1, 2"""
_COLUMNS = """\
SELECT a.attname, t.typname, t.typtype FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
# What else there is (numeric without a scale, arrays, json, intervals) is kept as its text.
_TYPES = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "uuid": "UUID",
}


def export_postgresql(url: str, wanted: Wanted, folder: Path) -> tuple[list[ExportedTable], list[str]]:
    """Read the wanted tables and views; return them, and the names of all that there are, as `schema.table`.

    Raises:
        DatabaseError: there is no URL, no driver, no connection, or a table cannot be read.
        GoldenError: DuckDB cannot be used.
    """
    if not url:
        raise DatabaseError("cannot be read: the variable is not set")
    try:
        psycopg: Any = import_module("psycopg")
    except ImportError:
        raise DatabaseError("needs psycopg: pip install 'pytest-golden-projects[postgres]'") from None
    # SQLAlchemy's form names the driver too.
    plain = url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        with psycopg.connect(plain, connect_timeout=_CONNECT_SECONDS, autocommit=False) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute("SET LOCAL TimeZone = 'UTC'")
            connection.execute("SET LOCAL DateStyle = 'ISO'")
            connection.execute("SET LOCAL extra_float_digits = 3")
            return _export(connection, wanted, folder)
    except psycopg.Error as error:
        # The URL holds a password, and a driver may quote it.
        told = str(error).replace(url, "").replace(plain, "").split("\n")[0].strip()
        raise DatabaseError(f"cannot be read: {told}") from None
    except QueryError as error:
        raise DatabaseError(f"cannot be read: {error}") from None


def _export(connection: Any, wanted: Wanted, folder: Path) -> tuple[list[ExportedTable], list[str]]:
    names = [(str(schema), str(name)) for schema, name in connection.execute(_LIST).fetchall()]
    exported = []
    with open_engine() as engine:
        for number, (schema, name) in enumerate(names):
            order = wanted(f"{schema}.{name}")
            if order is not None:
                file = folder / f"{len(list(folder.iterdir()))}-{number}.parquet"
                _export_table(connection, engine, f"{quote_identifier(schema)}.{quote_identifier(name)}", order, file)
                exported.append(ExportedTable(f"{schema}.{name}", file))
    return exported, [f"{schema}.{name}" for schema, name in names]


def _export_table(connection: Any, engine: Engine, place: str, order: Sequence[str], file: Path) -> None:
    described = connection.execute(_COLUMNS, [place]).fetchall()
    columns = [(str(name), _TYPES.get(str(kind), "VARCHAR")) for name, kind, _ in described]
    draft = file.with_suffix(".csv")
    values = ", ".join(quote_identifier(name) for name, _ in columns)
    force = f", FORCE_QUOTE ({values})" if columns else ""
    copying = f"COPY (SELECT {values} FROM {place}) TO STDOUT (FORMAT csv{force})"
    with draft.open("wb") as rows, connection.cursor() as cursor, cursor.copy(copying) as copied:
        for block in copied:
            rows.write(block)
    read_rows(engine, draft, columns, order, file)
    draft.unlink()
