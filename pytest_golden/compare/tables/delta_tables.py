"""Reads Delta tables that a run wrote: the rows that the newest version of each has, as its log tells.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md. The log is the pipeline's: it may name only files of its table.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pytest_golden.compare.tables.database_files import DatabaseError, ExportedTable, quote_identifier, write_sorted
from pytest_golden.compare.tables.duckdb_engine import QueryError, open_engine, quote_text
from pytest_golden.regression.wording import format_size
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.compare.tables.database_files import Wanted
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.gateway.write_set import WrittenFiles

#: The folder of a table's log, in the folder of the table.
DELTA_LOG = "_delta_log"
_MOST_LOG_BYTES, _MOST_VERSIONS = 64 << 20, 100_000
_VERSION = re.compile(r"(\d{20})\.json")
_LOG_FILE = re.compile(rf"(?:(.+)/)?([^/]+)/{DELTA_LOG}/\d{{20}}\.json", re.DOTALL)
_DECIMAL = re.compile(r"decimal\(\d+,\s*\d+\)")
_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def list_delta_tables(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the Delta tables that were written, by the folder that they are in.

    Folders that begin with `_` or `.` are hidden, such as Odibi's `_system`.
    """
    found: dict[str, set[str]] = {}
    for match in filter(None, map(_LOG_FILE.fullmatch, paths)):
        folder, name = match[1] or "", match[2]
        if not any(part[:1] in {"_", "."} for part in (*folder.split("/"), name)):
            found.setdefault(folder, set()).add(name)
    return {folder: sorted(names) for folder, names in sorted(found.items())}


def export_delta(
    written: WrittenFiles, place: str, names: Sequence[str], wanted: Wanted, folder: Path
) -> list[ExportedTable]:
    """Read the wanted Delta tables of one folder; their names are `main.NAME`.

    Raises:
        GoldenError: DuckDB cannot be used.
    """
    exported: list[ExportedTable] = []
    with open_engine() as engine:
        engine.query("SET TimeZone = 'UTC'")
        for name in names:
            order = wanted(f"main.{name}")
            if order is None:
                continue
            file = folder / f"{len(list(folder.iterdir()))}-{len(exported)}.parquet"
            trouble = ""
            try:
                write_sorted(engine, f"({_select(engine, _read_table(written, f'{place}/{name}'))})", order, file)
            except (DatabaseError, QueryError) as error:
                trouble = " ".join(str(error).split("\n")[0].split())
            except OSError as error:
                trouble = f"one of its files is missing or cannot be read: {error.strerror or error}"
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                trouble = f"its log cannot be read: {type(error).__name__}"
            exported.append(ExportedTable(f"main.{name}", file, trouble))
    return exported


@dataclass(slots=True)
class _DeltaTable:
    """The newest version of a table: its files with the values of its partitions, and its columns with their types."""

    files: dict[str, Mapping[str, str | None]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    places: list[Path] = field(default_factory=list)


def _read_table(written: WrittenFiles, table: str) -> _DeltaTable:
    """Read a table's log. What is in it can be anything: the pipeline wrote it.

    Raises:
        DatabaseError: it is none that is read here, or names files elsewhere.
        OSError: a file is not there.
        ValueError, KeyError, TypeError, AttributeError, RecursionError: it is not a log.
    """
    found = _DeltaTable()
    left = _MOST_LOG_BYTES
    for version in _list_versions(written, table):
        with open_regular(_find(written, f"{table}/{DELTA_LOG}/{version:020}.json")) as file:
            told = file.read(left + 1)
        left -= len(told)
        if left < 0:
            raise DatabaseError(f"its log is larger than {format_size(_MOST_LOG_BYTES)}")
        for line in told.splitlines():
            _apply(found, json.loads(line))
    found.places = [_find(written, f"{table}/{path}") for path in found.files]
    for place in found.places:
        open_regular(place).close()
    return found


def _list_versions(written: WrittenFiles, table: str) -> list[int]:
    """Return the versions of a table's log: those that this run wrote, and those before them."""
    folder = f"{table}/{DELTA_LOG}/"
    names = [path.removeprefix(folder) for path in written.paths if path.startswith(folder)]
    versions = sorted(int(match[1]) for match in map(_VERSION.fullmatch, names) if match)
    first = versions[0]
    if first > _MOST_VERSIONS or versions != list(range(first, first + len(versions))):
        raise DatabaseError(f"its log has gaps, or more than {_MOST_VERSIONS:,} versions")
    # A table that is made anew begins with version 0: what was there before is not part of it.
    return [*range(first), *versions]


def _find(written: WrittenFiles, path: str) -> Path:
    """Return a file of the view: one that this run wrote, or one that was there before and still is.

    Raises:
        OSError: it is not there.
    """
    try:
        return written.locate(path)
    except FileNotFoundError:
        place = written.find_file(path)
        if place is None:
            raise
        return place


def _apply(found: _DeltaTable, action: Mapping[str, Any]) -> None:
    """Follow one action of the log."""
    if "add" in action:
        told = action["add"]
        if told.get("deletionVector"):
            raise DatabaseError("it has deletion vectors, which are not read: write it without them")
        found.files[_check_path(told["path"])] = dict(told.get("partitionValues") or {})
    elif "remove" in action:
        found.files.pop(_check_path(action["remove"]["path"]), None)
    elif "metaData" in action:
        told = action["metaData"]
        if (told.get("configuration") or {}).get("delta.columnMapping.mode", "none") != "none":
            raise DatabaseError(
                "its columns are mapped to other names, which is not read: write it without column mapping"
            )
        fields = json.loads(told["schemaString"])["fields"]
        found.columns = {one["name"]: _translate(one["type"]) for one in fields}
        found.partitioned_by = tuple(told.get("partitionColumns") or ())


def _check_path(path: str) -> str:
    plain = unquote(path)
    if ":" in plain.partition("/")[0] or plain.startswith("/") or ".." in PurePosixPath(plain).parts or "\0" in plain:
        raise DatabaseError("its log names files outside its folder")
    return plain


def _translate(kind: Any) -> str:
    """Return the type of DuckDB; text for a nested one, which only an empty table needs."""
    if isinstance(kind, str) and _DECIMAL.fullmatch(kind):
        return kind
    return _TYPES.get(kind, "VARCHAR") if isinstance(kind, str) else "VARCHAR"


def _select(engine: Engine, table: _DeltaTable) -> str:
    """Return the rows of a table as SQL."""
    columns = {name: f"NULL::{kind} AS {quote_identifier(name)}" for name, kind in table.columns.items()}
    if not columns:
        raise DatabaseError("it has no columns")
    if not table.places:
        return f"SELECT {', '.join(columns.values())} WHERE false"
    files = ", ".join(quote_text(str(place)) for place in table.places)
    source = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false"
    present = {name.lower() for name, _ in engine.describe(f"SELECT * FROM {source})")}
    columns |= {name: f"d.{quote_identifier(name)}" for name in columns if name.lower() in present}
    if not table.partitioned_by:
        return f"SELECT {', '.join(columns.values())} FROM {source}) d"
    parts = [f"p{at}" for at in range(len(table.partitioned_by))]
    for part, name in zip(parts, table.partitioned_by, strict=True):
        columns[name] = f"v.{part}::{table.columns[name]} AS {quote_identifier(name)}"
    values = ", ".join(
        f"({', '.join([quote_text(str(place)), *(_quote_value(told.get(name)) for name in table.partitioned_by)])})"
        for place, told in zip(table.places, table.files.values(), strict=True)
    )
    joined = f"{source}, filename = true) d JOIN (VALUES {values}) v(file, {', '.join(parts)}) ON d.filename = v.file"
    return f"SELECT {', '.join(columns.values())} FROM {joined}"


def _quote_value(value: str | None) -> str:
    return "NULL" if value is None else quote_text(value)
