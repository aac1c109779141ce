"""A table as it is compared, and what was found between two of them. Values only."""

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
    """How a table's file is written."""

    DELIMITED = "delimited"
    JSON_LINES = "JSON Lines"
    PARQUET = "Parquet"


class Values(StrEnum):
    """What the values of a column are to DuckDB: a delimited file's texts, JSON as text, or values of a type."""

    TEXT = "text"
    JSON = "json"
    TYPED = "typed"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `label` is its name, told apart where it stands twice; `place` counts from 0.

    `type` is DuckDB's own where the values are typed.
    """

    name: str
    label: str
    place: int
    values: Values
    type: Any = None


@dataclass(frozen=True, slots=True)
class Table:
    """One side of a comparison. `source` is SQL for its rows, in columns that are to be called c0, c1 and so on."""

    side: Side
    format: Format
    columns: tuple[Column, ...]
    rows: int
    source: str = ""
    delimiter: str | None = None

    def scan(self, alias: str) -> str:
        """Return the SQL that stands behind FROM, under another name."""
        return f"{self.source} AS {alias}({', '.join(f'c{column.place}' for column in self.columns)})"


@dataclass(frozen=True, slots=True)
class Pair:
    """A column of the output (`x`) and the one of the baseline (`y`) that it is compared with, as SQL names them."""

    label: str
    x: str
    y: str
    column: Column


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """One row of both sides: where it is, and by column the baseline's value and the output's, as text."""

    place: tuple[str | None, ...]
    values: tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """What differs between the rows of two tables.

    `places` names what a row is found by: the key's columns, or `row`. `by_column` counts the rows by column that differ.
    The samples are few; rows that only one side has are told by their places, `only_` counts are of rows.
    `at_least` tells that more rows may differ: those of a wide table are counted for some columns at a time.
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
    """The output breaks rules on its values, each told in one sentence."""

    def __init__(self, broken: Sequence[str]) -> None:
        self.broken = tuple(broken)
        super().__init__("; ".join(broken))


class TablesDifferError(GoldenError):
    """The output does not hold: the message goes on after the file's name, `details` follow in lines of their own."""

    def __init__(self, message: str, details: tuple[str, ...] = (), difference: TableDifference | None = None) -> None:
        self.details = details
        self.difference = difference
        super().__init__(message)


class KeyRepeatedError(GoldenError):
    """A key stands more than once: `repeated` are some of its values, each with how often; `names` are those of its columns."""

    def __init__(self, side: Side, names: tuple[str, ...], repeated: tuple[tuple[Any, ...], ...]) -> None:
        self.side = side
        self.names = names
        self.repeated = repeated
        super().__init__("is not unique")
