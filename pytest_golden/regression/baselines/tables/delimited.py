"""A CSV or TSV file as a table of texts: nothing is guessed about types, so both sides are read alike.

An empty field is NULL, and `""` is empty text. The first line holds the names. DuckDB reads the rows.
"""

from __future__ import annotations

import codecs
import csv
import io
from itertools import islice
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import UnreadableError
from pytest_golden.regression.baselines.tables.engine import quote_text
from pytest_golden.regression.baselines.tables.model import Column, Format, Table, Values

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.regression.baselines.model import Side

_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 20
_LONGEST_LINE_BYTES = 16 << 20


def read_delimited(
    place: Path, side: Side, head: bytes, *, is_whole: bool, delimiter: str | None, in_parallel: bool = True
) -> Table:
    """Read the names of the columns; without a delimiter it is told from the first rows.

    Raises:
        UnreadableError: it is no text in UTF-8, or has no line that could be a header.
    """
    text = _decode(head, side, is_whole=is_whole)
    if not text.strip("\r\n"):
        return Table(side, Format.DELIMITED, (), 0)
    used = delimiter or _find_delimiter(text, is_whole=is_whole)
    names = next(iter(_rows(text, used)), None)
    if names is None:
        raise UnreadableError(side, "has a first line that is too long, or not closed, to be the names of columns")
    columns = tuple(Column(name, name, at, Values.TEXT) for at, name in enumerate(names))
    types = ", ".join(f"'c{column.place}': 'VARCHAR'" for column in columns)
    source = (
        f"read_csv({quote_text(str(place))}, auto_detect = false, header = true, delim = {quote_text(used)},"
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
    return "is no text, and so no CSV"


def _find_delimiter(text: str, *, is_whole: bool) -> str:
    """Give the one that parts the first rows into equally many fields, as many as possible; else the header's."""
    best, best_worth = ",", (False, 1)
    for delimiter in _DELIMITERS:
        rows = [row for row in islice(_rows(text, delimiter), _LOOKED_AT) if row]
        looked = rows if is_whole or len(rows) == 1 else rows[:-1]
        widths = {len(row) for row in looked}
        width = len(looked[0]) if looked else 1
        worth = (len(widths) == 1 and width > 1, width)
        if worth > best_worth:
            best, best_worth = delimiter, worth
    return best


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Give the first rows, as far as they can be read."""
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows.extend(islice(reader, _LOOKED_AT + 1))
    except csv.Error:
        return rows
    return rows
