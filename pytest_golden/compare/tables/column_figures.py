"""The figures of a column that differs: nulls, distinct values, the largest change, and a histogram of both sides."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.tables.equality import as_text, canonical
from pytest_golden.compare.tables.model import Values
from pytest_golden.gateway.table_difference import ColumnDifference, HistogramBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.cells import Cells
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Comparison
    from pytest_golden.compare.tables.model import Pair, Table

    Change = tuple[float | None, float | None, bool]
    Measured = tuple[Pair, int, Change]

_MOST_HISTOGRAMS = 8
_BINS = 10
_MOST_VALUES = 8
# In larger tables distinct values are estimated, and those of texts are not counted one by one.
_MOST_EXACT = 200_000
_MOST_BINNED = 1_000_000
_LONGEST_LABEL = 40
_NUMBERS = ("DECIMAL", "FLOAT", "DOUBLE")


def read_figures(comparison: Comparison, measured: Sequence[Measured], both: int) -> tuple[ColumnDifference, ...]:
    """Return the figures of some columns, in that order; `both` is how many rows were paired.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    if not measured:
        return ()
    engine, tables, cells = comparison.engine, comparison.tables, comparison.cells
    pairs = [pair for pair, *_ in measured]
    after, before = (_ask(engine, pairs, alias, table) for alias, table in zip("xy", tables, strict=True))
    charts = _read_histograms(comparison, pairs[:_MOST_HISTOGRAMS], (after, before))
    found = []
    for at, (pair, count, change) in enumerate(measured):
        here, baseline = after[at], before[at]
        found.append(
            ColumnDifference(
                cells.name(pair.label),
                count,
                1 - count / both if both else 0.0,
                tables[1].rows - baseline[0],
                tables[0].rows - here[0],
                baseline[1],
                here[1],
                None if cells.hides(pair.label) else _largest(change),
                *_direction(pair, change, here, baseline),
                charts[at] if at < len(charts) else (),
            )
        )
    return tuple(found)


def _largest(change: Change) -> float | None:
    low, high, is_whole = change
    if low is None or high is None or not is_whole:
        return None
    largest = max(abs(low), abs(high))
    return largest if isfinite(largest) else None


def _direction(pair: Pair, change: Change, here: Sequence[Any], baseline: Sequence[Any]) -> tuple[bool, bool]:
    """Tell whether the change is one of time, in seconds, and whether it is the same in all rows."""
    low, high, is_whole = change
    are_numbers = here[2] is not None or baseline[2] is not None
    kind = str(pair.column.type)
    is_time = kind.startswith(("DATE", "TIMESTAMP")) if pair.column.values is Values.TYPED else not are_numbers
    return is_time and is_whole and low is not None, bool(is_whole and low is not None and low == high)


def _ask(engine: Engine, pairs: Sequence[Pair], alias: str, table: Table) -> list[tuple[Any, ...]]:
    """Return values, distinct values, and the least and greatest number where all are numbers."""
    distinct = "count(DISTINCT {})" if table.rows <= _MOST_EXACT else "approx_count_distinct({})"
    asked = []
    for pair in pairs:
        column = getattr(pair, alias)
        asked += [f"count({column})", distinct.format(f"({canonical(pair.column, column)})")]
        number = _number(pair, column)
        asked += [f"min({number})", f"max({number})", f"count({number}) FILTER (isfinite({number}))"]
    answers = engine.query(f"SELECT {', '.join(asked)} FROM {table.scan(alias)}")[0]
    return [_settle(answers[at : at + 5]) for at in range(0, len(answers), 5)]


def _settle(answers: tuple[Any, ...]) -> tuple[Any, ...]:
    count, distinct, least, most, finite = answers
    return (count, distinct, least, most) if count and finite == count else (count, distinct, None, None)


def _number(pair: Pair, column: str) -> str:
    if pair.column.values is not Values.TYPED:
        return f"TRY_CAST({column} AS DOUBLE)"
    kind = str(pair.column.type)
    is_number = kind.startswith(_NUMBERS) or kind.endswith(("INT", "INTEGER"))
    return f"({column})::DOUBLE" if is_number and not kind.endswith("]") else "NULL::DOUBLE"


def _read_histograms(
    comparison: Comparison, pairs: Sequence[Pair], asked: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
) -> list[tuple[HistogramBar, ...]]:
    found: list[tuple[HistogramBar, ...]] = []
    engine, tables, cells = comparison.engine, comparison.tables, comparison.cells
    for pair, after, before in zip(pairs, *asked, strict=False):
        if cells.hides(pair.label):
            found.append(())
            continue
        numbers = [each for each in (after, before) if each[0]]
        if numbers and all(each[2] is not None for each in numbers):
            bounds = min(each[2] for each in numbers), max(each[3] for each in numbers)
            found.append(_read_bins(engine, pair, bounds, tables))
        elif max(table.rows for table in tables) <= _MOST_EXACT:
            found.append(_read_values(engine, pair, tables, cells))
        else:
            found.append(())
    return found


def _read_bins(
    engine: Engine, pair: Pair, bounds: tuple[float, float], tables: tuple[Table, Table]
) -> tuple[HistogramBar, ...]:
    low, high = bounds
    width = (high - low) / _BINS
    if not 0 < width < float("inf"):
        return ()
    counts: list[dict[int, int]] = []
    for alias, table in zip("xy", tables, strict=True):
        number = _number(pair, getattr(pair, alias))
        place = f"least(greatest(floor(({number} - {low!r}) / {width!r}), 0), {_BINS - 1})::INTEGER"
        percent = min(100.0, 100 * _MOST_BINNED / max(1, table.rows))
        sample = f" TABLESAMPLE system({percent}%) REPEATABLE (1)" if percent < 100 else ""
        bins = engine.query(
            f"SELECT {place} AS b, count(*) FROM {table.scan(alias)}{sample} WHERE {number} IS NOT NULL GROUP BY b"
        )
        counts.append({at: round(count * 100 / percent) for at, count in bins})
    after, before = counts
    return tuple(
        HistogramBar(f"{low + at * width:.4g} to {low + (at + 1) * width:.4g}", before.get(at, 0), after.get(at, 0))
        for at in range(_BINS)
    )


def _read_values(engine: Engine, pair: Pair, tables: tuple[Table, Table], cells: Cells) -> tuple[HistogramBar, ...]:
    """Count the values that are most frequent on either side; none where almost every value stands alone."""
    sides = " UNION ALL ".join(
        f"SELECT {as_text(getattr(pair, alias))} AS v, {side} AS side FROM {table.scan(alias)}"
        for alias, table, side in zip("xy", tables, (1, 0), strict=True)
    )
    rows = engine.query(
        f"SELECT v, count(*) FILTER (side = 0), count(*) FILTER (side = 1) FROM ({sides}) WHERE v IS NOT NULL GROUP BY v"
        f" ORDER BY count(*) DESC, v LIMIT {_MOST_VALUES}"
    )
    if not rows or rows[0][1] + rows[0][2] <= len(tables):
        return ()
    return tuple(
        HistogramBar(cells.cut(pair.label, value, _LONGEST_LABEL) or "", before, after) for value, before, after in rows
    )
