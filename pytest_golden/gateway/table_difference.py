"""What differs between a table and its baseline, as values: every face shows the same. Bounded, and redacted when it is made.

`before` is the baseline, `after` is what this run wrote. A cell is the text of its value, None for NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pytest_golden.values.shape import Count, Shape, form

Place = tuple[str | None, ...]


class PairedBy(StrEnum):
    """How the rows of both sides were paired to explain the difference."""

    KEY = "key"
    INFERRED_KEY = "inferred_key"
    VALUES = "values"
    POSITION = "position"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class RenamedColumn(Shape):
    """A column whose values stand under another name."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RetypedColumn(Shape):
    """A column that is of another type."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangedCell(Shape):
    """One value that differs."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangedRow(Shape):
    """A row of both sides: its place is that of `paired_by`, in the same order; only cells that differ are listed."""

    place: Place
    cells: tuple[ChangedCell, ...]


@dataclass(frozen=True, slots=True)
class HistogramBar(Shape):
    """How many values of each side are in one bin, or are one value; estimated in tables of more than 1,000,000 rows."""

    label: str
    before: Count
    after: Count


@dataclass(frozen=True, slots=True)
class ColumnDifference(Shape):
    """The figures of one column that differs.

    `equal_share` is of the rows that both sides have. `largest_change` is the greatest absolute one of numbers, or of times in
    seconds (`is_time`); None for all else. `is_constant` tells that each differs by the same. `distinct_before` and
    `distinct_after` are estimates in tables of more than 200,000 rows.
    """

    name: str
    cells: Count
    equal_share: float
    nulls_before: Count
    nulls_after: Count
    distinct_before: Count
    distinct_after: Count
    largest_change: float | None = None
    is_time: bool = False
    is_constant: bool = False
    histogram: tuple[HistogramBar, ...] = ()


@dataclass(frozen=True, slots=True)
class TableDifference(Shape):
    """What differs between a table and its baseline.

    `place_names` are the columns that a row is found by, or `row`. `changed_rows` are the first ones of `rows_changed`, and
    `rows_added`, `rows_removed` count those that only one side has; `added_places` and `removed_places` are the first of them.
    `notes` are sentences.
    """

    rows_before: Count
    rows_after: Count
    rows_changed: Count = 0
    rows_added: Count = 0
    rows_removed: Count = 0
    paired_by: PairedBy = PairedBy.NOTHING
    place_names: tuple[str, ...] = ()
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_renamed: tuple[RenamedColumn, ...] = ()
    columns_retyped: tuple[RetypedColumn, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()
    columns_changed: Count = 0
    changed_rows: tuple[ChangedRow, ...] = ()
    added_places: tuple[Place, ...] = field(default=(), metadata=form(about="Places of rows that only the output has."))
    removed_places: tuple[Place, ...] = field(
        default=(), metadata=form(about="Places of rows that only the baseline has.")
    )
    notes: tuple[str, ...] = ()
