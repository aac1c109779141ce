"""Explains a difference by the pairing of rows that leaves the fewest cells different.

This never changes the verdict: a table whose rows pair up well by an inferred key is still in another order than its baseline.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.compare.opening import Side
from pytest_golden.compare.showing import quote_name, quote_names
from pytest_golden.compare.tables import rows
from pytest_golden.compare.tables.column_figures import read_figures
from pytest_golden.compare.tables.duckdb_engine import QueryError
from pytest_golden.compare.tables.equality import is_wide
from pytest_golden.compare.tables.explaining import MOST_COLUMNS, explain, join_rows
from pytest_golden.compare.tables.pairing import (
    can_be_sorted,
    find_repeated_key,
    infer_key,
    pair_by_columns,
    pair_by_key,
    pair_by_position,
    pair_by_values,
)
from pytest_golden.gateway.table_difference import ChangedCell, ChangedRow, PairedBy, TableDifference
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.equality import Comparison
    from pytest_golden.compare.tables.explaining import Joined
    from pytest_golden.compare.tables.model import KeyRepeatedError, Pair, RowDifferences
    from pytest_golden.compare.tables.pairing import Pairing

# Up to so many rows, and not in wide tables, a difference is checked for rows that have only moved.
_MOST_LOOKED_AT = 1_000_000
_LONGEST_CELL = 300
_MOST_COLUMNS = 50
_SAME_IN_ANOTHER_ORDER = (
    "the rows are the same in another order: if that does not matter, declare `unordered: true` or a `key`"
)


def explain_without_key(
    comparison: Comparison, found: RowDifferences, pairs: Sequence[Pair], *, unordered: bool
) -> TableDifference:
    """Explain what differs between two tables that have no declared key; `found` is what the comparison has counted."""
    told = convert(comparison, found, pairs)
    if not pairs or is_wide(pairs) or not all(table.rows for table in comparison.tables):
        return told
    try:
        return _explain(comparison, told, pairs, unordered=unordered)
    except QueryError:
        # Too little memory for the explanation is no reason against the verdict.
        return told


def _explain(
    comparison: Comparison, told: TableDifference, pairs: Sequence[Pair], *, unordered: bool
) -> TableDifference:
    engine, tables = comparison.engine, comparison.tables
    is_small = max(table.rows for table in tables) <= _MOST_LOOKED_AT
    if not unordered and is_small and not rows.count_as_multisets(engine, pairs, tables):
        return replace(told, notes=(*told.notes, _SAME_IN_ANOTHER_ORDER))
    keys = infer_key(engine, pairs, tables)
    repeated = None if keys else find_repeated_key(engine, pairs, tables)
    pairing, joined = _choose_pairing(comparison, pairs, keys, repeated and repeated[0], unordered=unordered)
    worth = _count_cells(told, len(pairs))
    if pairing is None or joined is None or (not unordered and worth < _cells_of(joined, len(pairs))):
        if unordered or not is_small:
            return told
        pairing = pair_by_position(tables)
        joined = join_rows(comparison, pairing, pairs)
    explained = explain(comparison, pairing, joined, pairs)
    notes = [_describe_repeated(comparison, *repeated)] if repeated else []
    notes += explained.notes
    has_moved = _count_rows(told) > _count_rows(explained)
    if not unordered and has_moved and pairing.kind is not PairedBy.POSITION:
        notes.append(f"the rest has moved: row by row, {count_of(_count_rows(told), 'row')} differ")
    return replace(explained, notes=(*notes, *told.notes))


def _choose_pairing(
    comparison: Comparison, pairs: Sequence[Pair], keys: Sequence[Pair], repeated: Pair | None, *, unordered: bool
) -> tuple[Pairing | None, Joined | None]:
    """Pair rows by an inferred key, by a column that is unique on one side, or else by the columns that agree; join them."""
    tables = comparison.tables
    pairing: Pairing | None = None
    if keys:
        pairing = pair_by_key(keys, tables, PairedBy.INFERRED_KEY)
    elif repeated:
        pairing = pair_by_columns([repeated], pairs, tables, unordered=unordered)
    joined = join_rows(comparison, pairing, pairs) if pairing else None
    if joined is not None and not (keys and joined.only_here and joined.only_baseline):
        return pairing, joined
    # What changed can be part of an inferred key.
    by_values = pair_by_values(comparison.engine, pairs, tables, unordered=unordered)
    other = join_rows(comparison, by_values, pairs) if by_values else None
    if pairing is None or joined is None:
        return by_values, other
    if other is None:
        return pairing, joined
    if _cells_of(other, len(pairs)) < _cells_of(joined, len(pairs)):
        return by_values, other
    return pairing, join_rows(comparison, pairing, pairs)


def _count_cells(told: TableDifference, width: int) -> int:
    return sum(column.cells for column in told.columns) + (told.rows_added + told.rows_removed) * width


def _cells_of(joined: Joined, width: int) -> int:
    return sum(joined.counts) + (joined.only_here + joined.only_baseline) * width


def _count_rows(told: TableDifference) -> int:
    return told.rows_changed + told.rows_added + told.rows_removed


def _describe_repeated(comparison: Comparison, pair: Pair, repeated: int) -> str:
    here, baseline = comparison.tables
    unique, other = ("in the baseline", "here") if here.rows > baseline.rows else ("here", "in the baseline")
    name = quote_name(comparison.cells.name(pair.label))
    values = f"{count_of(repeated, 'value')} of it occur{'s' if repeated == 1 else ''} more than once {other}"
    became = "multiplied, as by a join" if here.rows > baseline.rows else "merged"
    return f"{name} is unique {unique}, and {values}: rows were {became}"


def convert(comparison: Comparison, found: RowDifferences, pairs: Sequence[Pair]) -> TableDifference:
    """Return what a comparison has counted as the difference that all faces show.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = comparison.tables
    cells = comparison.cells
    by_label = {pair.label: pair for pair in pairs}
    measured = [(by_label[label], count, (None, None, False)) for label, count in found.by_column[:MOST_COLUMNS]]
    is_position = found.places == ("row",)
    kind = PairedBy.POSITION if is_position else PairedBy.KEY if found.by_column else PairedBy.NOTHING
    names = found.places
    return TableDifference(
        baseline.rows,
        here.rows,
        found.differing,
        found.only_here,
        found.only_baseline,
        kind,
        tuple(map(cells.name, names)),
        columns=read_figures(comparison, measured, here.rows - found.only_here),
        columns_changed=len(found.by_column),
        changed_rows=tuple(
            ChangedRow(
                cells.place(names, row.place),
                tuple(
                    ChangedCell(cells.name(name), *cells.pair(name, before, after, _LONGEST_CELL))
                    for name, before, after in row.values
                ),
            )
            for row in found.samples
        ),
        added_places=tuple(cells.place(names, place) for place in found.here_samples),
        removed_places=tuple(cells.place(names, place) for place in found.baseline_samples),
        notes=found.notes,
    )


def compare_keyed(
    comparison: Comparison, keys: Sequence[Pair], rest: Sequence[Pair]
) -> tuple[TableDifference | None, bool]:
    """Compare rows by their declared key, and explain in the same pass; also tell whether more rows may differ.

    Raises:
        KeyRepeatedError: the key is not unique.
        QueryError: DuckDB cannot answer.
    """
    engine, tables = comparison.engine, comparison.tables
    if is_wide(rest):
        found = rows.compare_by_key(engine, comparison.equality, keys, rest, tables)
        return (convert(comparison, found, rest) if found else None), found.at_least
    pairing: Pairing = pair_by_key(keys, tables)
    joined = join_rows(comparison, pairing, rest)
    here, baseline = tables
    matched = joined.joined - joined.only_baseline, joined.joined - joined.only_here
    if matched != (here.rows, baseline.rows) or engine.query("SELECT 1 FROM found WHERE e AND times > 1 LIMIT 1"):
        for table in tables:
            rows.check_unique(engine, keys, table)
    if not (joined.changed or joined.only_here or joined.only_baseline):
        return None, False
    return explain(comparison, pairing, joined, rest), False


def explain_repeated(
    comparison: Comparison, keys: Sequence[Pair], rest: Sequence[Pair], error: KeyRepeatedError
) -> TableDifference:
    """Tell how many values of a declared key are repeated, and in which columns their rows differ.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = comparison.tables
    table, alias = (here, "x") if error.side is Side.OUTPUT else (baseline, "y")
    able = [pair for pair in rest[:_MOST_COLUMNS] if can_be_sorted(pair)]
    columns = [getattr(pair, alias) for pair in able]
    by = ", ".join(getattr(key, alias) for key in keys)
    asked = "".join(f", min({one}) IS DISTINCT FROM max({one}) AS d{at}" for at, one in enumerate(columns))
    counted = "".join(f", count(*) FILTER (d{at})" for at in range(len(columns)))
    total, *counts = comparison.engine.query(
        f"SELECT count(*){counted} FROM (SELECT 1{asked} FROM {table.scan(alias)} GROUP BY {by} HAVING count(*) > 1)"
    )[0]
    names = [comparison.cells.name(pair.label) for pair, count in zip(able, counts, strict=True) if count]
    subject, whose = ("1 key occurs", "its") if total == 1 else (f"{total:,} keys occur", "their")
    told = f"rows differ in {quote_names(names)}" if names else "rows are otherwise equal"
    note = f"{subject} more than once: {whose} {told}"
    return TableDifference(
        baseline.rows,
        here.rows,
        paired_by=PairedBy.KEY,
        place_names=tuple(comparison.cells.name(key.label) for key in keys),
        notes=(note,),
    )
