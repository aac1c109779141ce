"""A file as a table: which format it is, its columns and how many rows it has."""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import Content, UnreadableError
from pytest_golden.regression.baselines.opening import is_archive, read_chunks
from pytest_golden.regression.baselines.tables.delimited import read_delimited
from pytest_golden.regression.baselines.tables.engine import QueryError
from pytest_golden.regression.baselines.tables.json_lines import read_json_lines
from pytest_golden.regression.baselines.tables.model import Format, Table
from pytest_golden.regression.baselines.tables.parquet import read_parquet
from pytest_golden.regression.baselines.tables.sampling import part
from pytest_golden.regression.baselines.tables.troubles import describe_trouble

if TYPE_CHECKING:
    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.model import Column

# Enough for a header of 10,000 columns and rows below it.
_HEAD_BYTES = 4 << 20
_SUFFIXES = {
    ".csv": Format.DELIMITED,
    ".tsv": Format.DELIMITED,
    ".parquet": Format.PARQUET,
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
}


def read_table(engine: Engine, content: Content) -> Table:
    """Look at one file: its columns and rows.

    Raises:
        UnreadableError: it is no table, or a broken one.
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
                place, content.side, head, is_whole=is_whole, delimiter=delimiter, in_parallel=in_parallel
            )
        if table.columns:
            rows = int(engine.query(f"SELECT count(*) FROM {table.source}")[0][0])
            table = replace(table, rows=rows, columns=_tell_apart(table.columns))
    except QueryError as error:
        raise UnreadableError(content.side, describe_trouble(error, form, place)) from None
    return table


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
