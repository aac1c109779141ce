"""A table's rows as lines of JSON, for whoever looks for something in its texts. DuckDB reads them as a stream."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_golden.compare.model import UnreadableError
from pytest_golden.compare.tables.duckdb_engine import QueryError, describe_trouble, open_engine
from pytest_golden.compare.tables.formats import read_table
from pytest_golden.compare.tables.model import Format, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pytest_golden.compare.model import Content
    from pytest_golden.compare.tables.model import Column

# As DuckDB calls its types, at the beginning: `BIGINT`, `DECIMAL(18,3)`, `TIMESTAMP WITH TIME ZONE`.
_WITHOUT_TEXTS = re.compile(r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE|DECIMAL|DATE|TIME|UUID|INTERVAL")


def read_row_texts(content: Content, is_telling: Callable[[str], bool], ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield one line per row: a JSON object of its texts by column, without the columns in `ignored`.

    A text file such as a CSV can also be read as it is, so only its columns with an `is_telling` name are yielded. If
    some columns are ignored, all others are yielded: in plain text they cannot be told apart.

    Raises:
        DuckDBMissingError: it is not installed.
        UnreadableError: it is no table, or a broken one.
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
