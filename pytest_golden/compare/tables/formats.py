"""Reads a file as a table: its format, its columns and the number of its rows. DuckDB reads the rows."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_golden.compare.opening import Content, Side, UnreadableError, is_archive, read_chunks
from pytest_golden.compare.showing import quote_name
from pytest_golden.compare.tables.duckdb_engine import QueryError, describe_trouble, open_engine, quote_text
from pytest_golden.compare.tables.equality import is_wide, part
from pytest_golden.compare.tables.model import Column, Format, Table, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from pytest_golden.compare.tables.duckdb_engine import Engine


# Enough for a header of 10,000 columns and rows below it.
_HEAD_BYTES = 4 << 20
_SUFFIXES = {
    ".csv": Format.DELIMITED,
    ".tsv": Format.DELIMITED,
    ".parquet": Format.PARQUET,
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
}

_DELIMITERS = (",", ";", "\t", "|")
_ROWS_LOOKED_AT = 20
_LONGEST_LINE_BYTES = 16 << 20

_DEEPEST = 8
# What DuckDB takes to plan a query grows faster than the columns that it computes.
_MOST_KEYS = 1000
# An object with more keys is a map from data to data.
_MOST_INNER_KEYS = 1000
# Beyond 64 bits.
_HUGE_NUMBER = (
    r"[:\[,]\s*(-(9[3-9][0-9]{17}|[1-9][0-9]{19,})|1(8[5-9]|9[0-9])[0-9]{17}|[2-9][0-9]{19}|[1-9][0-9]{20,})\s*[,\]}]"
)
_TOO_OLD = "this version of DuckDB does not read exactly: pip install --upgrade duckdb"

# As DuckDB calls its types, at the beginning: `BIGINT`, `DECIMAL(18,3)`, `TIMESTAMP WITH TIME ZONE`.
_WITHOUT_TEXTS = re.compile(r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE|DECIMAL|DATE|TIME|UUID|INTERVAL")


def read_table(engine: Engine, content: Content, *, header: bool = True) -> Table:
    """Look at one file: its columns and rows; without a `header` a CSV file has no names, and its columns are numbered.

    Raises:
        UnreadableError: it is not a table, or is broken.
    """
    head, is_whole = _read_head(content)
    suffix = PurePath(
        content.path.name.removesuffix(content.path.suffix) if is_archive(content) else content.path
    ).suffix
    form = _SUFFIXES.get(suffix.lower()) or _recognise(head)
    # DuckDB reads a byte-order mark in CSV alone.
    is_marked = form is Format.JSON_LINES and head.startswith(codecs.BOM_UTF8)
    place = engine.lay_out(content, skipped_bytes=len(codecs.BOM_UTF8) if is_marked else 0)
    try:
        if form is Format.PARQUET:
            table = read_parquet(engine, place, content.side)
        elif form is Format.JSON_LINES:
            table = read_json_lines(engine, place, content.side)
        else:
            delimiter = "\t" if suffix.lower() == ".tsv" else None
            in_parallel = is_whole or not engine.loses_long_rows
            table = read_delimited(
                place,
                content.side,
                head,
                is_whole=is_whole,
                delimiter=delimiter,
                in_parallel=in_parallel,
                header=header,
            )
        if table.columns:
            rows = int(engine.query(f"SELECT count(*) FROM {table.source}")[0][0])
            table = replace(table, rows=rows, columns=_tell_apart(table.columns))
    except QueryError as error:
        raise UnreadableError(content.side, describe_trouble(error, form, place)) from None
    return table


def measure_table(path: Path) -> tuple[int, int]:
    """Return how many rows and columns a file has as a table.

    Raises:
        GoldenError: it is not a table, or DuckDB cannot be used.
    """
    with open_engine() as engine:
        table = read_table(engine, Content(path, Side.OUTPUT))
        return table.rows, len(table.columns)


def read_whole(engine: Engine, table: Table) -> None:
    """Read every value of a table.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    try:
        for some in part(table.columns) if table.columns else ():
            columns = ", ".join(f"t.c{column.place}" for column in some)
            engine.query(f"SELECT bit_xor(hash({columns})) FROM {table.scan('t')}")
    except QueryError as error:
        raise UnreadableError(table.side, describe_trouble(error, table.format, None)) from None


def _read_head(content: Content) -> tuple[bytes, bool]:
    head = b""
    for chunk in read_chunks(content):
        head += chunk
        if len(head) >= _HEAD_BYTES:
            return head, False
    return head, True


def _recognise(head: bytes) -> Format:
    """Tell the format where the file's name does not."""
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    return (
        Format.JSON_LINES if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"{", b"[")) else Format.DELIMITED
    )


def _tell_apart(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Number the columns whose name stands more than once: `amount`, `amount (2)`."""
    seen: Counter[str] = Counter()
    told = []
    for column in columns:
        seen[column.name] += 1
        count = seen[column.name]
        told.append(column if count == 1 else replace(column, label=f"{column.name} ({count})"))
    return tuple(told)


def read_delimited(
    place: Path,
    side: Side,
    head: bytes,
    *,
    is_whole: bool,
    delimiter: str | None,
    in_parallel: bool = True,
    header: bool = True,
) -> Table:
    """Read the header of a CSV or TSV file; without a `delimiter` it is found from the first rows.

    All values are texts: no types are guessed, so both sides are read alike. An empty field is NULL, `""` is empty text.

    Raises:
        UnreadableError: it is not UTF-8 text, or has no line that could be a header.
    """
    text = _decode(head, side, is_whole=is_whole)
    if not text.strip("\r\n"):
        return Table(side, Format.DELIMITED, (), 0)
    used = delimiter or _find_delimiter(text, is_whole=is_whole)
    names = next(iter(_rows(text, used)), None)
    if names is None:
        raise UnreadableError(side, "has a first line that is too long, or not closed, to be the names of columns")
    names = names if header else [f"column{at}" for at in range(1, len(names) + 1)]
    columns = tuple(Column(name, name, at, Values.TEXT) for at, name in enumerate(names))
    types = ", ".join(f"'c{column.place}': 'VARCHAR'" for column in columns)
    source = (
        f"read_csv({quote_text(str(place))}, auto_detect = false, header = {str(header).lower()}, delim = {quote_text(used)},"
        f" quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, columns = {{{types}}},"
        f" max_line_size = {_LONGEST_LINE_BYTES}"
        f"{'' if in_parallel else ', parallel = false'})"
    )
    return Table(side, Format.DELIMITED, columns, 0, source, used if len(columns) > 1 else None)


def _decode(head: bytes, side: Side, *, is_whole: bool) -> str:
    if b"\0" in head:
        is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        told = "is UTF-16, and only UTF-8 is read as CSV" if is_wide else _describe_no_text(head)
        raise UnreadableError(side, told)
    if not is_whole:
        head = head[: head.rfind(b"\n") + 1] or head
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise UnreadableError(side, f"is not UTF-8 in line {line}, and so no CSV that can be read") from None


def _describe_no_text(head: bytes) -> str:
    if head.startswith(b"PK\3\4"):
        return "is a workbook or another ZIP archive, and no table that is read: write CSV or Parquet, or declare `compare: bytes`"
    return "is not text, so it is not CSV"


def _find_delimiter(text: str, *, is_whole: bool) -> str:
    """Return the delimiter that splits the first rows into equally many fields, as many as possible; else the header's."""
    best, best_worth = ",", (False, 1)
    for delimiter in _DELIMITERS:
        rows = [row for row in islice(_rows(text, delimiter), _ROWS_LOOKED_AT) if row]
        looked = rows if is_whole or len(rows) == 1 else rows[:-1]
        widths = {len(row) for row in looked}
        width = len(looked[0]) if looked else 1
        worth = (len(widths) == 1 and width > 1, width)
        if worth > best_worth:
            best, best_worth = delimiter, worth
    return best


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows, as far as they can be read."""
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    with suppress(csv.Error):
        rows.extend(islice(reader, _ROWS_LOOKED_AT + 1))
    return rows


def read_json_lines(engine: Engine, place: Path, side: Side) -> Table:
    """Find the columns of a JSON Lines file: one for each key, and `address.city` for a key of an object within.

    Values are JSON texts in one spelling. A missing key is the same as null, as in any table.

    Raises:
        UnreadableError: a line is not an object, or there are too many keys.
        QueryError: a line is not JSON.
    """
    lines = f"read_json_objects({quote_text(str(place))}, format = 'newline_delimited')"
    others = engine.query(f"SELECT json_type(json) FROM {lines} WHERE json_type(json) <> 'OBJECT' LIMIT 1")
    if others:
        kinds = {"ARRAY": "an array", "VARCHAR": "a text", "BOOLEAN": "a boolean", "NULL": "null"}
        kind = kinds.get(others[0][0], "a number")
        raise UnreadableError(side, f"has a line that is not an object but {kind}, and so no row of a table")
    keys = _find_keys(engine, lines, side)
    _refuse_misread(engine, lines, keys, side)
    columns = tuple(Column(name, name, at, Values.JSON) for at, name in enumerate(".".join(key.names) for key in keys))
    if not columns:
        rows = int(engine.query(f"SELECT count(*) FROM {lines}")[0][0])
        return Table(side, Format.JSON_LINES, (), rows)
    return Table(side, Format.JSON_LINES, columns, 0, _lay_down(engine, _write_source(lines, keys), side, columns))


@dataclass(frozen=True, slots=True)
class _Key:
    names: tuple[str, ...]
    is_object: bool = False

    @property
    def pointer(self) -> str:
        return quote_text("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in self.names))


def _lay_down(engine: Engine, source: str, side: Side, columns: tuple[Column, ...]) -> str:
    """Store many columns in a table of DuckDB's, since planning how to read them takes long and each query would repeat it."""
    if not is_wide(columns):
        return source
    name = f"lines_of_{side}"
    engine.keep_order(True)
    named = ", ".join(f"c{column.place}" for column in columns)
    engine.query(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {source} AS t({named})")
    return name


def _find_keys(engine: Engine, lines: str, side: Side) -> list[_Key]:
    found: list[_Key] = []
    level = [_Key((), is_object=True)]
    for _ in range(_DEEPEST):
        below: list[_Key] = []
        for parent in level:
            below += _keys_below(engine, lines, parent) if parent.is_object else []
            if len(found) + len(below) > _MOST_KEYS:
                told = f"has more than {_MOST_KEYS:,} columns (keys), too many to be compared as JSON Lines"
                raise UnreadableError(side, f"{told}: write it as Parquet or CSV, or declare `compare: text`")
        if not below:
            break
        level = _find_objects(engine, lines, below)
        found.extend(level)
    return sorted(found, key=lambda key: key.names)


def _refuse_misread(engine: Engine, lines: str, keys: list[_Key], side: Side) -> None:
    """Refuse what DuckDB would not see, and so call equal."""
    for parent in (_Key((), is_object=True), *(key for key in keys if key.is_object)):
        path = f", {parent.pointer}" if parent.names else ""
        keys_of = f"(SELECT json_keys(json{path}) AS k FROM {lines})"
        if engine.query(f"SELECT coalesce(bool_or(len(k) <> list_unique(k)), false) FROM {keys_of}")[0][0]:
            ((found,),) = engine.query(f"SELECT list_sort(k) FROM {keys_of} WHERE len(k) <> list_unique(k) LIMIT 1")
            name = next(one for one, other in pairwise(found) if one == other)
            told = quote_name(".".join((*parent.names, str(name))))
            raise UnreadableError(side, f"has a line in which the key {told} stands twice, and so no row of a table")
    if any(key.names == ("",) for key in keys) and engine.misreads_json_names:
        raise UnreadableError(side, f"has a key without a name, which {_TOO_OLD}")
    if engine.rounds_json_numbers and engine.query(
        f"SELECT 1 FROM {lines} WHERE regexp_matches(json::VARCHAR, '{_HUGE_NUMBER}') LIMIT 1"
    ):
        raise UnreadableError(side, f"has whole numbers of more than 64 bits, which {_TOO_OLD}")


def _keys_below(engine: Engine, lines: str, parent: _Key) -> list[_Key]:
    path = f", {parent.pointer}" if parent.names else ""
    most = _MOST_INNER_KEYS if parent.names else _MOST_KEYS
    rows = engine.query(f"SELECT DISTINCT unnest(json_keys(json{path})) FROM {lines} LIMIT {most + 1}")
    if parent.names and len(rows) > most:
        return []
    return [_Key((*parent.names, str(name))) for (name,) in rows]


def _find_objects(engine: Engine, lines: str, keys: list[_Key]) -> list[_Key]:
    """Tell which keys have objects for values."""
    looked: list[_Key] = []
    for some in part(keys):
        # One call for all, since each call has a buffer of its own.
        types = f"json_type(json, [{', '.join(key.pointer for key in some)}])"
        asked = ", ".join(f"coalesce(bool_or(t[{at}] = 'OBJECT'), false)" for at in range(1, len(some) + 1))
        answers = engine.query(f"SELECT {asked} FROM (SELECT {types} AS t FROM {lines})")[0]
        looked += [_Key(key.names, bool(answer)) for key, answer in zip(some, answers, strict=True)]
    return looked


def _write_source(lines: str, keys: list[_Key]) -> str:
    parents = {key.names[:-1] for key in keys}
    pointers = ", ".join(key.pointer for key in keys)
    values = []
    for at, key in enumerate(keys, 1):
        text = f"e[{at}]::VARCHAR"
        value = f"nullif({text}, 'null')"
        is_told_by_keys = key.names in parents
        values.append(f"CASE WHEN starts_with({text}, '{{') THEN '{{}}' ELSE {value} END" if is_told_by_keys else value)
    return f"(SELECT {', '.join(values)} FROM (SELECT json_extract(json, [{pointers}]) AS e FROM {lines}))"


def read_parquet(engine: Engine, place: Path, side: Side) -> Table:
    """Read names and types of the columns of a Parquet file.

    Raises:
        QueryError: it is not a Parquet file.
    """
    # Otherwise a folder called `year=2024` would become a column.
    source = f"read_parquet({quote_text(str(place))}, hive_partitioning = false)"
    described = engine.describe(f"SELECT * FROM {source}")
    columns = tuple(Column(name, name, at, Values.TYPED, kind) for at, (name, kind) in enumerate(described))
    return Table(side, Format.PARQUET, columns, 0, source)


def read_row_texts(content: Content, is_telling: Callable[[str], bool], ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield one line per row: a JSON object of its texts by column, without the columns in `ignored`.

    A text file such as a CSV can also be read as it is, so only its columns with an `is_telling` name are yielded. If
    some columns are ignored, all others are yielded: in plain text they cannot be told apart.

    Raises:
        DuckDBUnusableError: DuckDB is not installed, or cannot be opened.
        UnreadableError: it is not a table, or is broken.
    """
    with open_engine() as engine:
        table = read_table(engine, content)
        columns = [column for column in table.columns if _is_wanted(column, table.format, is_telling, ignored)]
        if not columns:
            return
        names = [column.label for column in columns]
        selected = ", ".join(f"CAST(t.c{column.place} AS VARCHAR)" for column in columns)
        try:
            for row in engine.stream(f"SELECT {selected} FROM {table.scan('t')}"):
                yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"
        except QueryError as error:
            raise UnreadableError(content.side, describe_trouble(error, table.format, None)) from None


def _is_wanted(column: Column, form: Format, is_telling: Callable[[str], bool], ignored: Collection[str]) -> bool:
    if column.name in ignored:
        return False
    if form is not Format.PARQUET:
        return bool(ignored) or is_telling(column.name)
    return column.values is not Values.TYPED or _WITHOUT_TEXTS.match(str(column.type)) is None
