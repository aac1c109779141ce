"""Reads tables out of DuckDB and SQLite files, as Parquet files that are equal exactly if the tables are.

A database is opened once, read-only, and never copied: it costs what the named tables cost. Rows are sorted, since those of a
table have no order. A view is read without access to anything outside its database, since its text is the pipeline's.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.tables.duckdb_engine import QueryError, open_engine, quote_text
from pytest_golden.compare.tables.sqlmesh_models import STATE_SCHEMA, SqlmeshModel, is_internal, read_models
from pytest_golden.errors import GoldenError
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine

    # Tells of a table, as `schema.table`, whether it is wanted, and by which columns its rows are sorted first.
    Wanted = Callable[[str], "Sequence[str] | None"]

# Snappy keeps a change local: one changed row of 100,000 adds 300 bytes to a git pack, with zstd 30 kB.
_FORM = "(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880)"
_EXPORT = "golden_export"
# DuckDB writes these into Parquet with a loss, or not at all: they are kept as their text.
_KEPT_AS_TEXT = re.compile(
    r"\b(U?HUGEINT|BIGNUM|VARINT|BIT|UNION|VARIANT|GEOMETRY|TIME_NS)\b|TIME WITH TIME ZONE|TIMESTAMP_NS|\[\d+\]",
    re.IGNORECASE,
)
_TIMESTAMP_WITH_ZONE = "TIMESTAMP WITH TIME ZONE"
#: What DuckDB and SQLite add to the name of a database for their logs.
LOG_SUFFIXES = (".wal", "-wal", "-shm", "-journal")
_ROWS_AT_ONCE = 10_000
_MOST_NAMED = 8


class DatabaseError(GoldenError):
    """A database cannot be read; the message goes on after its name: `is damaged`."""


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """One table or view: its name as `schema.table`, and the Parquet file, or why it cannot be read.

    `key` and `upstream`, which are such names too, are what SQLMesh knows of it.
    """

    name: str
    file: Path
    trouble: str = ""
    key: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()


def find_kind(path: Path) -> str | None:
    """Tell by its first bytes whether a file is a database: `duckdb`, `sqlite` or None.

    Raises:
        OSError: it cannot be read, or is a symbolic link, which may lead out of the view.
    """
    with open_regular(path) as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None


def export_tables(database: Path, wanted: Wanted, folder: Path) -> tuple[list[ExportedTable], list[str]]:
    """Read the wanted tables of a database file; return them, and the names of all that it has.

    Args:
        database: the file; its write-ahead log beside it counts.
        wanted: tells of each table whether it is read.
        folder: where the Parquet files go.

    Raises:
        DatabaseError: it is not a database, or is damaged, locked, or not readable by what is installed.
        GoldenError: DuckDB cannot be used.
    """
    try:
        kind = find_kind(database)
    except OSError as error:
        raise DatabaseError(f"cannot be read: {error.strerror or error}") from None
    for suffix in LOG_SUFFIXES:
        log = Path(f"{database}{suffix}")
        if log.is_symlink():
            # It may lead out of the view.
            raise DatabaseError(f"cannot be read: {log.name} beside it is a symbolic link")
    if kind is None:
        raise DatabaseError("is not a DuckDB or SQLite database, or is damaged")
    return _export_sqlite(database, wanted, folder) if kind == "sqlite" else _export_duckdb(database, wanted, folder)


def quote_identifier(name: str) -> str:
    """Write a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _export_duckdb(database: Path, wanted: Wanted, folder: Path) -> tuple[list[ExportedTable], list[str]]:
    # Views name their own database as DuckDB does: by the file's stem.
    catalog = database.stem
    try:
        with open_engine() as engine:
            attach = f"ATTACH {quote_text(str(database))} AS {quote_identifier(catalog)} (READ_ONLY)"
            engine.query(attach)
            listed = _list_duckdb(engine, catalog)
            has_state = any(schema == STATE_SCHEMA for schema, _, _ in listed)
            models = read_models(engine, f"{quote_identifier(catalog)}.{STATE_SCHEMA}") if has_state else {}
            found = [one for one in listed if not is_internal(one[0])]
            chosen = [(schema, name, is_view, wanted(f"{schema}.{name}")) for schema, name, is_view in found]
            read = [(schema, name, is_view, order) for schema, name, is_view, order in chosen if order is not None]
            real = {f"{schema}.{name}".lower(): f"{schema}.{name}" for schema, name, _ in found}
            views = [(schema, name) for schema, name, is_view, _ in read if is_view]
            sources, troubles = _lay_down_views(engine, attach, catalog, views, folder)
            exported = []
            for number, (schema, name, _, order) in enumerate(read):
                place = ".".join(map(quote_identifier, (catalog, schema, name)))
                file = folder / f"{len(list(folder.iterdir()))}-{number}.parquet"
                trouble = troubles.get((schema, name), "")
                model = models.get(f"{schema}.{name}".lower(), SqlmeshModel((), ()))
                if not trouble:
                    write_sorted(engine, sources.get((schema, name), place), order or model.key, file)
                upstream = tuple(real[one] for one in model.upstream if one in real)
                exported.append(ExportedTable(f"{schema}.{name}", file, trouble, model.key, upstream))
    except QueryError as error:
        raise DatabaseError(_explain(str(error), engine)) from None
    return exported, [f"{schema}.{name}" for schema, name, _ in found]


def _list_duckdb(engine: Engine, catalog: str) -> list[tuple[str, str, bool]]:
    where = f"WHERE database_name = {quote_text(catalog)} AND NOT internal"
    tables = f"SELECT schema_name, table_name, false FROM duckdb_tables() {where}"
    views = f"SELECT schema_name, view_name, true FROM duckdb_views() {where}"
    return sorted(
        (str(schema), str(name), bool(is_view)) for schema, name, is_view in engine.query(f"{tables} UNION ALL {views}")
    )


def _lay_down_views(
    engine: Engine, attach: str, catalog: str, views: Sequence[tuple[str, str]], folder: Path
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """Store what views give in a database of ours; return where each is, and why others cannot be read.

    They are read where nothing outside their own database can be.
    """
    sources: dict[tuple[str, str], str] = {}
    troubles: dict[tuple[str, str], str] = {}
    if not views:
        return sources, troubles
    file = folder / f"{_EXPORT}-{len(list(folder.iterdir()))}.duckdb"
    attach_ours = f"ATTACH {quote_text(str(file))} AS {_EXPORT}"
    with open_engine() as closed:
        closed.query(attach)
        closed.query(attach_ours)
        closed.query("SET enable_external_access = false")
        for number, (schema, name) in enumerate(views):
            place = ".".join(map(quote_identifier, (catalog, schema, name)))
            # What a view names without its catalog or schema is found as where it was made.
            path = ",".join(f"{quote_identifier(catalog)}.{quote_identifier(each)}" for each in (schema, "main"))
            try:
                closed.query(f"SET search_path = {quote_text(path)}")
                closed.query(f"CREATE TABLE {_EXPORT}.main.v{number} AS SELECT * FROM {place}")
            except QueryError as error:
                troubles[schema, name] = _first(str(error))
            else:
                sources[schema, name] = f"{_EXPORT}.main.v{number}"
    engine.query(attach_ours)
    return sources, troubles


def write_sorted(engine: Engine, source: str, order: Sequence[str], file: Path) -> None:
    """Write a table's rows into a Parquet file, sorted by some columns and then by all others.

    Raises:
        QueryError: DuckDB cannot.
    """
    described = engine.describe(f"SELECT * FROM {source}")
    columns = {name: str(kind) for name, kind in described}
    values = [_as_kept(name, kind) for name, kind in columns.items()]
    known = {name.lower(): name for name in columns}
    first = [known[name.lower()] for name in order if name.lower() in known]
    by = [quote_identifier(name) for name in dict.fromkeys((*first, *columns))]
    engine.keep_order(True)
    engine.query("SET TimeZone = 'UTC'")
    with engine.one_thread():
        engine.query(
            f"COPY (SELECT {', '.join(values)} FROM {source} ORDER BY {', '.join(by)}) TO {quote_text(str(file))} {_FORM}"
        )


def _as_kept(name: str, kind: str) -> str:
    column = quote_identifier(name)
    # Whether Parquet says that a text is JSON depends on the version of DuckDB.
    is_text = kind == "JSON" or _KEPT_AS_TEXT.search(kind.replace(_TIMESTAMP_WITH_ZONE, "")) is not None
    return f"{column}::VARCHAR AS {column}" if is_text else column


def _explain(said: str, engine: Engine) -> str:
    """Say what is wrong with a DuckDB file."""
    if "set lock" in said or "Conflicting lock" in said:
        return "is held open by another process: close it before the run ends"
    if "version number" in said or "newer version" in said or "storage version" in said:
        newer = f"was written by a newer DuckDB than the one installed here ({engine.version})"
        return f"{newer}: pip install --upgrade duckdb"
    if "encrypt" in said:
        return "is encrypted, and so cannot be compared"
    if "not a valid DuckDB" in said or "checksum" in said.lower() or "Serialization" in said:
        return "is not a DuckDB database, or is damaged"
    return f"cannot be read: {_first(said)}"


def _first(said: str) -> str:
    return " ".join(said.split("\n")[0].split())


def _export_sqlite(database: Path, wanted: Wanted, folder: Path) -> tuple[list[ExportedTable], list[str]]:
    exported = []
    try:
        with (
            closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection,
            open_engine() as engine,
        ):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
            asked = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            names = sorted(str(name) for (name,) in connection.execute(asked))
            for number, name in enumerate(names):
                order = wanted(f"main.{name}")
                if order is None:
                    continue
                file = folder / f"{len(list(folder.iterdir()))}-{number}.parquet"
                _write_rows(engine, connection, name, order, file)
                exported.append(ExportedTable(f"main.{name}", file))
    except sqlite3.Error as error:
        told = (
            "is held open by another process: close it before the run ends"
            if "locked" in str(error)
            else f"cannot be read: {error}"
        )
        raise DatabaseError(
            "is damaged" if "malformed" in str(error) or "not a database" in str(error) else told
        ) from None
    except QueryError as error:
        raise DatabaseError(f"cannot be read: {_first(str(error))}") from None
    return exported, [f"main.{name}" for name in names]


def _write_rows(engine: Engine, connection: sqlite3.Connection, name: str, order: Sequence[str], file: Path) -> None:
    """Write a table of SQLite as CSV, and let DuckDB make Parquet of it. A column is of the type that all its values have."""
    place = quote_identifier(name)
    columns = [str(column[0]) for column in connection.execute(f"SELECT * FROM {place} LIMIT 0").description]
    types = [_find_type(connection, place, column) for column in columns]
    draft = file.with_suffix(".csv")
    with draft.open("w", encoding="utf-8", newline="") as rows:
        cursor = connection.execute(f"SELECT * FROM {place}")
        while some := cursor.fetchmany(_ROWS_AT_ONCE):
            rows.writelines(f"{','.join(map(write_field, row))}\n" for row in some)
    read_rows(engine, draft, list(zip(columns, types, strict=True)), order, file)
    draft.unlink()


def _find_type(connection: sqlite3.Connection, place: str, column: str) -> str:
    asked = f"SELECT DISTINCT typeof({quote_identifier(column)}) FROM {place}"
    kinds = {str(kind) for (kind,) in connection.execute(asked)} - {"null"}
    if kinds == {"integer"}:
        return "BIGINT"
    if kinds and kinds <= {"integer", "real"}:
        return "DOUBLE"
    return "BLOB" if kinds == {"blob"} else "VARCHAR"


def write_field(value: Any) -> str:
    """Write a value as a field of CSV: NULL is empty, and text is always quoted."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return '"' + "".join(f"\\x{byte:02X}" for byte in value) + '"'
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"'


def read_rows(
    engine: Engine, draft: Path, columns: Sequence[tuple[str, str]], order: Sequence[str], file: Path
) -> None:
    """Make a sorted Parquet file of CSV without a header, whose columns have these names and types of DuckDB.

    Raises:
        QueryError: a value is not of its column's type.
    """
    texts = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(len(columns)))
    casts = ", ".join(f"c{at}::{kind} AS {quote_identifier(name)}" for at, (name, kind) in enumerate(columns))
    source = (
        f"read_csv({quote_text(str(draft))}, auto_detect = false, header = false, delim = ',', quote = '\"', escape = '\"',"
        f" nullstr = '', allow_quoted_nulls = false, columns = {{{texts}}}, max_line_size = {1 << 28}, parallel = false)"
    )
    engine.query(f"CREATE OR REPLACE TEMP TABLE rows_of_database AS SELECT {casts} FROM {source}")
    write_sorted(engine, "rows_of_database", order, file)
    engine.query("DROP TABLE rows_of_database")


def list_names(names: Sequence[str]) -> Iterator[str]:
    """Yield the first names, and how many more there are."""
    yield from names[:_MOST_NAMED]
    if len(names) > _MOST_NAMED:
        yield f"{len(names) - _MOST_NAMED} more"
