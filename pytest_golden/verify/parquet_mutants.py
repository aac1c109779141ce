"""Small wrong changes of a table in Parquet: a row that is lost or comes twice, a cell that is empty or off by one, swapped columns.

DuckDB reads and writes the tables; without it none is changed. Each form is made when it is asked for.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.compare.tables.database_files import quote_identifier
from pytest_golden.compare.tables.duckdb_engine import DuckDBUnusableError, Engine, QueryError, open_engine, quote_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

_MOST_COLUMNS = 6
# DuckDB numbers the rows of a file, from 0.
_TABLE, _ROW = "golden_rows", "file_row_number"
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
_TIMES = ("DATE", "TIMESTAMP")


def mutate_parquet(
    content: bytes, random: Random
) -> Iterator[tuple[int, tuple[str, str, str], Callable[[], bytes | None]]]:
    """Yield the wrong forms of a table: the row, what was done (kind, before, after), and what makes the file's new content."""
    try:
        with _open(content) as (engine, _):
            columns = engine.describe(f"SELECT * EXCLUDE ({_ROW}) FROM {_TABLE}")
            ((count,),) = engine.query(f"SELECT count(*) FROM {_TABLE}")
            some = [(name, str(kind), random.randrange(count)) for name, kind in columns[:_MOST_COLUMNS] if count]
            cells = [_Cell(name, kind, at, _read_cell(engine, name, at)) for name, kind, at in some]
    except (DuckDBUnusableError, QueryError, OSError):
        return
    if cells:
        at = random.randrange(count)
        for row, told, select in (*_change_rows(at), *_change_cells(cells)):
            yield row, told, partial(_write, content, select)


class _Cell(NamedTuple):
    """A cell that is changed; `value` is what people see of it, None for an empty one."""

    name: str
    kind: str
    row: int
    value: str | None


def _change_rows(at: int) -> Iterator[tuple[int, tuple[str, str, str], str]]:
    every, told = f"SELECT * FROM {_TABLE}", f"row {at + 1}"
    yield at, ("dropped row", told, "(nothing)"), f"{every} WHERE {_ROW} <> {at}"
    yield at, ("row twice", told, "the same row twice"), f"{every} UNION ALL {every} WHERE {_ROW} = {at}"


def _change_cells(cells: Sequence[_Cell]) -> Iterator[tuple[int, tuple[str, str, str], str]]:
    for name, kind, at, value in cells:
        column = quote_identifier(name)
        changes = [
            ("null", "empty", "NULL"),
            ("date" if kind.startswith(_TIMES) else "constant", "another", _move(column, kind)),
        ]
        for wrong, after, change in changes if value is not None else ():
            if change is not None:
                put = f"SELECT * REPLACE (CASE WHEN {_ROW} = {at} THEN {change} ELSE {column} END AS {column}) FROM {_TABLE}"
                yield at, (wrong, f"{name}: {value}", f"{name}: {after}"), put
    for one, other in pairwise(cells):
        if one.kind == other.kind:
            first, second = quote_identifier(one.name), quote_identifier(other.name)
            swapped = f"SELECT * REPLACE ({second} AS {first}, {first} AS {second}) FROM {_TABLE}"
            yield 0, ("swapped columns", f"{one.name}, {other.name}", f"{other.name}, {one.name}"), swapped


def _move(column: str, kind: str) -> str | None:
    if kind == "BOOLEAN":
        return f"NOT {column}"
    if kind.startswith(_TIMES):
        return f"({column} + INTERVAL 1 DAY)::{kind}"
    return f"({column} + 1)::{kind}" if kind.startswith(_NUMBERS) else None


def _read_cell(engine: Engine, name: str, at: int) -> str | None:
    ((value,),) = engine.query(f"SELECT {quote_identifier(name)}::VARCHAR FROM {_TABLE} WHERE {_ROW} = {at}")
    return None if value is None else str(value)


def _write(content: bytes, select: str) -> bytes | None:
    """Return the file with what a query selects of it; None where that cannot be."""
    try:
        with _open(content) as (engine, folder):
            made = folder / "made.parquet"
            rows = f"SELECT * EXCLUDE ({_ROW}) FROM ({select}) ORDER BY {_ROW}"
            engine.query(f"COPY ({rows}) TO {quote_text(str(made))} (FORMAT parquet)")
            return made.read_bytes()
    except (DuckDBUnusableError, QueryError, OSError):
        return None


@contextmanager
def _open(content: bytes) -> Iterator[tuple[Engine, Path]]:
    """Open a table as `_TABLE`, and a folder."""
    with TemporaryDirectory(prefix="golden-tables-") as name, open_engine() as engine:
        place = Path(name, "read.parquet")
        place.write_bytes(content)
        numbered = f"read_parquet({quote_text(str(place))}, file_row_number = true)"
        engine.query(f"CREATE VIEW {_TABLE} AS SELECT * FROM {numbered}")
        yield engine, Path(name)
