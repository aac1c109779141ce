"""A table's difference as a person reads it: one sentence, a summary, the columns that differ, and the first rows.

Everything here is made of the `TableDifference`, so that it is redacted already, and all faces say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.compare.showing import MOST_NAMES, quote_name, quote_names, show_name
from pytest_golden.compare.tables.cells import show_value, side_by_side
from pytest_golden.gateway.table_difference import PairedBy
from pytest_golden.regression.wording import count_of, name_some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.gateway.table_difference import ChangedRow, ColumnDifference, Place, TableDifference

# A message has forty lines: the columns, the rows, and those of one side share what the first lines leave.
_MOST_COLUMNS = 8
_MOST_ROWS = 10
_ROW_LINES = 20
_MOST_IN_SENTENCE = 3
_EXAMPLES = 3
_SECONDS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def describe(found: TableDifference, *, at_least: bool = False) -> str:
    """Say in one sentence what differs: the columns, then the rows; empty if nothing does."""
    return "; ".join(filter(None, (_describe_columns(found), describe_rows(found, at_least=at_least))))


def _describe_columns(found: TableDifference) -> str:
    told = [f"{quote_name(one.before)} was renamed to {quote_name(one.after)}" for one in found.columns_renamed[:10]]
    if found.columns_removed:
        names, verb = _name_columns(found.columns_removed)
        told.append(f"{names} {verb} missing")
    if found.columns_added:
        names, verb = _name_columns(found.columns_added)
        told.append(f"{names} {verb} new")
    told += [
        f"{quote_name(one.name)} is {one.after}, and {one.before} in the baseline" for one in found.columns_retyped[:3]
    ]
    if len(found.columns_retyped) > 3:
        told.append(f"{len(found.columns_retyped) - 3} more columns are of another type")
    return ", ".join(told)


def _name_columns(names: Sequence[str]) -> tuple[str, str]:
    word, verb = ("column", "is") if len(names) == 1 else ("columns", "are")
    return f"{word} {quote_names(names)}", verb


def describe_rows(found: TableDifference, *, at_least: bool = False) -> str:
    """Say how many rows differ, and in which columns."""
    amounts = (
        (found.rows_changed, "differs", "differ"),
        (found.rows_added, "is only here", "are only here"),
        (found.rows_removed, "is only in the baseline", "are only in the baseline"),
    )
    parts = [f"{count_of(amount, 'row')} {one if amount == 1 else many}" for amount, one, many in amounts if amount]
    if found.rows_changed:
        parts[0] = f"{'at least ' if at_least else ''}{parts[0]}{_name_changed(found)}"
    return ", ".join(parts)


def _name_changed(found: TableDifference) -> str:
    if not found.columns:
        return ""
    named = [quote_name(column.name) for column in found.columns[:_MOST_IN_SENTENCE]]
    more = max(found.columns_changed, len(found.columns)) - len(named)
    return f" in {name_some([*named, *[''] * more], _MOST_IN_SENTENCE)}" if more else f" in {', '.join(named)}"


def list_difference(found: TableDifference) -> Iterator[str]:
    """Return the lines below that sentence."""
    paired = _describe_pairing(found)
    yield f"rows: {found.rows_after:,} here, {found.rows_before:,} in the baseline{f'; {paired}' if paired else ''}"
    yield from found.notes
    for column in found.columns[:_MOST_COLUMNS]:
        yield _describe_column(column)
    more = max(found.columns_changed, len(found.columns)) - _MOST_COLUMNS
    if more > 0:
        yield f"{count_of(more, 'more column')} differ{'s' if more == 1 else ''}"
    if found.changed_rows:
        yield from _table(found)
    is_alone = not found.changed_rows
    for places, count, where in (
        (found.added_places, found.rows_added, "only here"),
        (found.removed_places, found.rows_removed, "only in the baseline"),
    ):
        yield from _list_only(found.place_names, places, count, where, MOST_NAMES if is_alone else MOST_NAMES // 2)


def _describe_pairing(found: TableDifference) -> str:
    names = quote_names(list(found.place_names))
    if found.paired_by is PairedBy.INFERRED_KEY:
        listed = ", ".join(found.place_names)
        key = listed if len(found.place_names) == 1 else f"[{listed}]"
        return f"rows are paired by {names} (inferred; declare `key: {key}`)"
    if found.paired_by is PairedBy.VALUES:
        agreeing = quote_names(found.place_names[:-1])
        return f"rows are paired by what agrees: {agreeing}" if len(found.place_names) > 1 else ""
    return ""


def _describe_column(column: ColumnDifference) -> str:
    told = [f"{quote_name(column.name)}: {count_of(column.cells, 'cell')} differ{'s' if column.cells == 1 else ''}"]
    told[0] += f" ({_percent(column.equal_share)} equal)"
    if column.largest_change:
        amount = _amount(column)
        told.append(f"each by {amount}" if column.is_constant and column.cells > 1 else f"by {amount} at most")
    if column.nulls_before != column.nulls_after:
        told.append(f"nulls {column.nulls_before:,} -> {column.nulls_after:,}")
    if column.distinct_before != column.distinct_after:
        told.append(f"distinct {column.distinct_before:,} -> {column.distinct_after:,}")
    return ", ".join(told)


def _percent(share: float) -> str:
    # 99.96 % is not all.
    return f"{int(share * 1000) / 10:g} %"


def _amount(column: ColumnDifference) -> str:
    change = column.largest_change or 0.0
    if not column.is_time:
        return f"{change:.6g}"
    for unit, seconds in _SECONDS:
        if change and change % seconds == 0:
            return count_of(int(change // seconds), unit)
    return f"{change:.6g} seconds"


def _table(found: TableDifference) -> Iterator[str]:
    rows = _choose_rows(found)
    is_first = rows == list(found.changed_rows[: len(rows)])
    many = f"the first {len(rows)} of them:" if is_first else f"{len(rows)} of them:"
    yield many if found.rows_changed > len(rows) else "they are:"
    lines = [("  " + ", ".join(map(show_name, found.place_names)), "column", "baseline", "here")]
    each = max(1, _ROW_LINES // len(rows))
    for row in rows:
        place = ", ".join(map(show_value, row.place))
        shown = row.cells[:each]
        for at, cell in enumerate(shown):
            was, now = side_by_side(cell.before, cell.after)
            left = len(row.cells) - each
            more = f"  (and {count_of(left, 'more column')})" if left > 0 and at == len(shown) - 1 else ""
            lines.append(("  " + (place if at == 0 else ""), show_name(cell.column), was, now + more))
    widths = [max(len(line[at]) for line in lines) for at in range(3)]
    for line in lines:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip()


def _choose_rows(found: TableDifference) -> list[ChangedRow]:
    """Return the first ten rows, or of ten rows so many that each column has three examples, as far as there is room."""
    left = {column.name: _EXAMPLES for column in found.columns[:_MOST_COLUMNS]}
    if len(left) < 2 or len(found.changed_rows) <= _MOST_ROWS:
        return list(found.changed_rows[:_MOST_ROWS])
    chosen: list[int] = []
    for at, row in enumerate(found.changed_rows):
        wanted = [cell.column for cell in row.cells if left.get(cell.column, 0) > 0]
        if wanted and len(chosen) < _MOST_ROWS:
            chosen.append(at)
            for name in wanted:
                left[name] -= 1
    rest = (at for at in range(len(found.changed_rows)) if at not in chosen)
    chosen += [at for at, _ in zip(rest, range(_MOST_ROWS - len(chosen)), strict=False)]
    return [found.changed_rows[at] for at in sorted(chosen)]


def _list_only(names: Sequence[str], places: Sequence[Place], count: int, where: str, most: int) -> Iterator[str]:
    if not places:
        return
    shown = places[:most]
    yield f"{where}{f', the first {len(shown)}' if count > len(shown) else ''}:"
    for place in shown:
        yield f"  {describe_place(names, place)}"


def describe_place(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Write where a row is: `id=5, day=2024-01-01`."""
    return ", ".join(f"{show_name(name)}={show_value(value)}" for name, value in zip(names, values, strict=True))
