"""A table as it is compared, and the differences between two tables. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.opening import Side
    from pytest_golden.gateway.table_difference import TableDifference


class Format(StrEnum):
    """The file format of a table."""

    DELIMITED = "delimited"
    JSON_LINES = "JSON Lines"
    PARQUET = "Parquet"


class Values(StrEnum):
    """How DuckDB sees a column's values: texts of a delimited file, JSON as text, or typed values."""

    TEXT = "text"
    JSON = "json"
    TYPED = "typed"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `label` is its name, made unique if the name occurs twice; `place` counts from 0.

    If the values are typed, `type` is DuckDB's type.
    """

    name: str
    label: str
    place: int
    values: Values
    type: Any = None


@dataclass(frozen=True, slots=True)
class Table:
    """One side of a comparison. `source` is SQL for its rows; the caller names its columns c0, c1 and so on."""

    side: Side
    format: Format
    columns: tuple[Column, ...]
    rows: int
    source: str = ""
    delimiter: str | None = None

    def scan(self, alias: str) -> str:
        """Return SQL for a FROM clause, under another name."""
        return f"{self.source} AS {alias}({', '.join(f'c{column.place}' for column in self.columns)})"


@dataclass(frozen=True, slots=True)
class Pair:
    """A column of the output (`x`) and the baseline's column (`y`) that it is compared with, as SQL names them."""

    label: str
    x: str
    y: str
    column: Column


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """One row of both sides: what identifies it, and by column the baseline's value and the output's, as text."""

    place: tuple[str | None, ...]
    values: tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """The differences between the rows of two tables.

    `places` names what identifies a row: the key's columns, or `row`. `by_column` counts the differing rows by column.
    The samples are few. Rows that only one side has are identified by their places; `only_` fields count rows.
    `at_least` means that more rows may differ: the rows of a wide table are counted for some columns at a time.
    """

    places: tuple[str, ...]
    differing: int = 0
    only_here: int = 0
    only_baseline: int = 0
    by_column: tuple[tuple[str, int], ...] = ()
    samples: tuple[DifferingRow, ...] = ()
    here_samples: tuple[tuple[str | None, ...], ...] = ()
    baseline_samples: tuple[tuple[str | None, ...], ...] = ()
    notes: tuple[str, ...] = ()
    at_least: bool = False

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.differing or self.only_here or self.only_baseline)


class RulesBrokenError(GoldenError):
    """The output breaks rules on its values; each broken rule is one sentence."""

    def __init__(self, broken: Sequence[str]) -> None:
        self.broken = tuple(broken)
        super().__init__("; ".join(broken))


class TablesDifferError(GoldenError):
    """The output differs. The message continues a sentence that begins with the file's name; `details` are the following lines."""

    def __init__(self, message: str, details: tuple[str, ...] = (), difference: TableDifference | None = None) -> None:
        self.details = details
        self.difference = difference
        super().__init__(message)


class KeyRepeatedError(GoldenError):
    """A key value occurs more than once: `repeated` are some of the values with their counts, `names` the names of the key's columns."""

    def __init__(self, side: Side, names: tuple[str, ...], repeated: tuple[tuple[Any, ...], ...]) -> None:
        self.side = side
        self.names = names
        self.repeated = repeated
        super().__init__("is not unique")
