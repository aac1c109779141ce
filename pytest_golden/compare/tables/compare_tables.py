"""Compares one table with its baseline: the number of rows, the columns, and then the rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from pytest_golden.compare.opening import Content, Mismatch, Side, UnreadableError
from pytest_golden.compare.showing import (
    MOST_NAMES,
    compose,
    cut,
    cut_pair,
    quote_name,
    quote_names,
    show,
    show_name,
)
from pytest_golden.compare.tables import rows
from pytest_golden.compare.tables.duckdb_engine import DuckDBUnusableError, QueryError, describe_trouble, open_engine
from pytest_golden.compare.tables.equality import NUMBER, WHOLE_NUMBER, Equality, is_wide, part
from pytest_golden.compare.tables.formats import read_table, read_whole
from pytest_golden.compare.tables.model import (
    Format,
    KeyRepeatedError,
    Pair,
    Table,
    TablesDifferError,
    Values,
)
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Column, DifferingRow, RowDifferences
    from pytest_golden.manifest.model import DeclaredOutput


# Up to so many rows, and not in wide tables, a difference is checked for rows that have only moved.
_MOST_LOOKED_AT = 1_000_000

# A text column is of the first of these kinds that all its values are of.
_TEXT_KINDS = {
    "whole numbers": f"regexp_full_match({{c}}, '{WHOLE_NUMBER}')",
    "numbers": f"regexp_full_match({{c}}, '{NUMBER}|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?')",
    "booleans": "lower({c}) IN ('true', 'false')",
    "dates": "regexp_full_match({c}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "times": "regexp_full_match({c}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}.*')",
}
_JSON_KINDS = {
    "numbers": f"regexp_full_match({{c}}, '{NUMBER}')",
    "booleans": "{c} IN ('true', 'false')",
    "texts": "starts_with({c}, '\"')",
    "arrays": "starts_with({c}, '[')",
    "objects": "starts_with({c}, '{{')",
}

_LONGEST_VALUE = 48
# Cells come cut, and a cut can make a secret unrecognizable: what is behind this is for redaction alone.
_LOOKED_AT = 2000
_MOST_LINES = 24


def compare_tables(
    declared: DeclaredOutput, actual: Content, baseline: Content | None, *, shown_as: str, redact: Redact
) -> Mismatch | None:
    """Compare a table with its baseline by the rules that are declared for it.

    Without a baseline only that is checked which needs none: the table can be read, its key is unique, its rows are within
    bounds.

    Raises:
        UnreadableError: one of them cannot be read as a table.
        GoldenError: DuckDB is not installed, or cannot be opened.
    """
    try:
        with open_engine() as engine:
            _compare(engine, declared, actual, baseline, Cells(redact))
    except DuckDBUnusableError as error:
        raise DuckDBUnusableError(f"{shown_as} cannot be compared as a table: {error}") from None
    except KeyRepeatedError as error:
        headline, details = describe_repeated(error, Cells(redact))
    except TablesDifferError as error:
        headline, details = str(error), error.details
    else:
        return None
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, compose(f"{shown_as} {headline}", details))


def _compare(engine: Engine, declared: DeclaredOutput, actual: Content, baseline: Content | None, cells: Cells) -> None:
    here = read_table(engine, actual)
    _check_row_range(declared, here)
    if baseline is None:
        _check_alone(engine, declared, here)
        return
    there = read_table(engine, baseline)
    tables = (here, there)
    if here.delimiter and there.delimiter and here.delimiter != there.delimiter:
        raise TablesDifferError(f"has fields parted by {here.delimiter!r}, its baseline by {there.delimiter!r}")
    for table in tables:
        find_keys(declared.key, table)
    pairs = pair_columns(here, there, set(declared.ignore_columns) - set(declared.key))
    try:
        if declared.schema_only:
            compare_kinds(engine, pairs, here, there)
            return
        found = _compare_rows(engine, declared, pairs, tables)
    except QueryError as error:
        _blame(engine, tables, error)
    if found:
        lines = list_differences(found, here.rows, there.rows, cells)
        raise TablesDifferError(f"differs from its baseline: {describe_rows(found)}", tuple(lines))


def _check_row_range(declared: DeclaredOutput, table: Table) -> None:
    rows = count_of(table.rows, "row")
    if declared.min_rows is not None and table.rows < declared.min_rows:
        raise TablesDifferError(f"has {rows}, less than min_rows: {declared.min_rows}")
    if declared.max_rows is not None and table.rows > declared.max_rows:
        raise TablesDifferError(f"has {rows}, more than max_rows: {declared.max_rows}")


def _check_alone(engine: Engine, declared: DeclaredOutput, table: Table) -> None:
    keys = find_keys(declared.key, table)
    try:
        if keys:
            rows.check_unique(engine, keys, table)
    except QueryError as error:
        raise UnreadableError(table.side, describe_trouble(error, table.format, None)) from None


def _compare_rows(
    engine: Engine, declared: DeclaredOutput, pairs: tuple[Pair, ...], tables: tuple[Table, Table]
) -> RowDifferences:
    equality = Equality(declared, arrow_lambdas=engine.arrow_lambdas)
    if declared.key:
        keys = [pair for name in declared.key for pair in pairs if pair.label == name]
        rest = [pair for pair in pairs if pair.label not in declared.key]
        return rows.compare_by_key(engine, equality, keys, rest, tables)
    if declared.unordered or declared.is_of_tables:
        return rows.compare_unordered(engine, equality, pairs, tables)
    found = rows.compare_by_position(engine, equality, pairs, tables)
    return _look_for_order(engine, found, pairs, tables) if found else found


def _look_for_order(
    engine: Engine, found: RowDifferences, pairs: tuple[Pair, ...], tables: tuple[Table, Table]
) -> RowDifferences:
    """Add a note where rows have only moved, or where a few were added or removed among rows that moved."""
    here, baseline = tables
    if not pairs or is_wide(pairs) or max(here.rows, baseline.rows) > _MOST_LOOKED_AT:
        return found
    surplus = rows.count_as_multisets(engine, pairs, tables)
    if not surplus:
        note = "the rows are the same in another order: if that does not matter, declare `unordered: true` or a `key`"
        return replace(found, notes=(note,))
    if surplus.only_here + surplus.only_baseline >= found.differing + found.only_here + found.only_baseline:
        return found
    return replace(surplus, notes=(f"the rest has moved: row by row, {describe_rows(found)}",))


def _blame(engine: Engine, tables: tuple[Table, Table], error: QueryError) -> NoReturn:
    """Find which file cannot be read.

    Raises:
        UnreadableError: always.
    """
    for table in tables:
        read_whole(engine, table)
    raise UnreadableError(Side.OUTPUT, describe_trouble(error, tables[0].format, None)) from None


def pair_columns(here: Table, baseline: Table, ignored: Collection[str]) -> tuple[Pair, ...]:
    """Return the columns that both have, in the output's order.

    Raises:
        TablesDifferError: one is missing, new, of another type or at another place.
    """
    mine = [column for column in here.columns if column.name not in ignored]
    theirs = {column.label: column for column in baseline.columns if column.name not in ignored}
    details = list(_list_other_columns(mine, theirs))
    if details:
        types = [column.label for column in mine if _is_of_another_type(column, theirs)]
        told = f"has another type of column than its baseline: {quote_names(types)}"
        is_type_alone = len(types) == len(details)
        raise TablesDifferError(told if is_type_alone else "has other columns than its baseline", tuple(details))
    if here.format is not Format.JSON_LINES and [column.label for column in mine] != list(theirs):
        places = [at for at, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one.label != other]
        first, last = places[0], min(places[-1] + 1, places[0] + 10)
        raise TablesDifferError(
            "has its columns in another order than its baseline",
            (
                f"  here, from column {first + 1}: {quote_names([column.label for column in mine][first:last])}",
                f"  in the baseline: {quote_names(list(theirs)[first:last])}",
            ),
        )
    return tuple(_pair(column, theirs[column.label]) for column in mine)


def find_keys(names: Sequence[str], table: Table) -> tuple[Pair, ...]:
    """Return the key's columns of one table.

    Raises:
        TablesDifferError: it has no such column, or more than one of that name.
    """
    found = []
    whose = "has" if table.side is Side.OUTPUT else "has a baseline with"
    for name in names:
        columns = [column for column in table.columns if column.name == name]
        called = f"{quote_name(name)}, which is its key"
        if not columns:
            present = quote_names([column.label for column in table.columns]) if table.columns else "none"
            raise TablesDifferError(f"{whose} no column {called}", (f"  columns: {present}",))
        if len(columns) > 1:
            raise TablesDifferError(f"{whose} {count_of(len(columns), 'column')} called {called}")
        found.append(_pair(columns[0], columns[0]))
    return tuple(found)


def compare_kinds(engine: Engine, pairs: Sequence[Pair], here: Table, baseline: Table) -> None:
    """Compare what the values of untyped columns look like; a column without values looks like any.

    Raises:
        TablesDifferError: a column's values are of another kind.
        QueryError: DuckDB cannot answer.
    """
    untyped = [pair for pair in pairs if pair.column.values is not Values.TYPED]
    if not untyped:
        return
    now, was = (
        [kind for some in part(untyped) for kind in _look_like(engine, some, table, alias)]
        for alias, table in (("x", here), ("y", baseline))
    )
    details = tuple(
        f"  {quote_name(pair.label)}: {mine} here, {other} in the baseline"
        for pair, mine, other in zip(untyped, now, was, strict=True)
        if mine and other and mine != other
    )
    if details:
        raise TablesDifferError("has other kinds of values in its columns than its baseline", details)


def _look_like(engine: Engine, pairs: Sequence[Pair], table: Table, alias: str) -> list[str | None]:
    kinds = _JSON_KINDS if pairs[0].column.values is Values.JSON else _TEXT_KINDS
    asked = []
    for column in (getattr(pair, alias) for pair in pairs):
        asked.append(f"count({column})")
        asked += [f"coalesce(bool_and({test.format(c=column)}), false)" for test in kinds.values()]
    answers = engine.query(f"SELECT {', '.join(asked)} FROM {table.scan(alias)}")[0]
    width = len(kinds) + 1
    found: list[str | None] = []
    for start in range(0, len(answers), width):
        count, *holds = answers[start : start + width]
        name = next((kind for kind, is_so in zip(kinds, holds, strict=True) if is_so), "texts")
        found.append(name if count else None)
    return found


def _list_other_columns(mine: Sequence[Column], theirs: dict[str, Column]) -> Iterator[str]:
    labels = {column.label for column in mine}
    missing = [label for label in theirs if label not in labels]
    new = [column.label for column in mine if column.label not in theirs]
    if missing:
        yield f"  missing: {quote_names(missing)}"
    if new:
        yield f"  additional: {quote_names(new)}"
    for column in mine:
        if _is_of_another_type(column, theirs):
            other = theirs[column.label].type
            yield f"  {quote_name(column.label)} is of another type: {column.type} here, {other} in the baseline"


def _is_of_another_type(column: Column, theirs: dict[str, Column]) -> bool:
    return column.label in theirs and str(column.type) != str(theirs[column.label].type)


def _pair(here: Column, baseline: Column) -> Pair:
    return Pair(here.label, f"x.c{here.place}", f"y.c{baseline.place}", here)


@dataclass(frozen=True, slots=True)
class Cells:
    """Takes what is secret out of values; the name of a value's column can tell that it is a secret."""

    redact: Redact

    def hide(self, name: str, value: str | None) -> str | None:
        """Return what may be shown of a value, before it is cut."""
        if value is None:
            return None
        named = json.dumps({name: value}, ensure_ascii=False)
        hidden = self.redact(named)
        if hidden == named:
            return self.redact(value)[:_LOOKED_AT]
        try:
            shown = json.loads(hidden)[name]
        except (ValueError, LookupError, TypeError):
            return MARK
        return shown[:_LOOKED_AT] if isinstance(shown, str) and shown != value else MARK

    def hide_all(self, names: Sequence[str], values: Sequence[str | None]) -> tuple[str | None, ...]:
        """Return what may be shown of a row's values."""
        return tuple(self.hide(name, value) for name, value in zip(names, values, strict=True))


def describe_repeated(error: KeyRepeatedError, cells: Cells) -> tuple[str, tuple[str, ...]]:
    """Say whose key is not unique, and below it how often some of them stand."""
    whose = "has" if error.side is Side.OUTPUT else "has a baseline with"
    told = ((cells.hide_all(error.names, row[:-1]), row[-1]) for row in error.repeated)
    examples = tuple(f"  {describe_place(error.names, place)} stands {times:,} times" for place, times in told)
    return f"{whose} a key that is not unique: {quote_names(error.names)}", examples


def describe_rows(found: RowDifferences) -> str:
    """Say in one sentence how many rows differ."""
    amounts = [
        (found.differing, "differs", "differ"),
        (found.only_here, "is only here", "are only here"),
        (found.only_baseline, "is only in the baseline", "are only in the baseline"),
    ]
    parts = [f"{count_of(amount, 'row')} {one if amount == 1 else many}" for amount, one, many in amounts if amount]
    if found.at_least and found.differing:
        parts[0] = f"at least {parts[0]}"
    return ", ".join(parts)


def list_differences(found: RowDifferences, rows_here: int, rows_baseline: int, cells: Cells) -> Iterator[str]:
    """Return the lines below that sentence; values are redacted before they are cut."""
    yield f"rows: {rows_here:,} here, {rows_baseline:,} in the baseline"
    if found.by_column:
        counted = [f"{quote_name(name)} ({count_of(count, 'row')})" for name, count in found.by_column[:MOST_NAMES]]
        shown = f", the first {len(counted)} of {len(found.by_column)}" if len(counted) < len(found.by_column) else ""
        yield f"columns that differ{shown}: {', '.join(counted)}"
    yield from found.notes
    if found.samples:
        yield from _table(found.places, found.samples, found.differing, cells)
    for samples, count, where in (
        (found.here_samples, found.only_here, "only here"),
        (found.baseline_samples, found.only_baseline, "only in the baseline"),
    ):
        yield from _list_only(found.places, [cells.hide_all(found.places, one) for one in samples], count, where)


def _table(places: Sequence[str], samples: Sequence[DifferingRow], differing: int, cells: Cells) -> Iterator[str]:
    yield f"the first {len(samples)} of them:" if differing > len(samples) else "they are:"
    lines = [("  " + ", ".join(map(show_name, places)), "column", "baseline", "here")]
    each = max(1, _MOST_LINES // len(samples) - 1)
    for sample in samples:
        place = ", ".join(_value(value) for value in cells.hide_all(places, sample.place))
        for at, (name, baseline, here) in enumerate(sample.values[:each]):
            was, now = side_by_side(cells.hide(name, baseline), cells.hide(name, here))
            lines.append(("  " + (place if at == 0 else ""), show_name(name), was, now))
        left = len(sample.values) - each
        if left > 0:
            lines.append(("", f"({count_of(left, 'more column')})", "", ""))
    widths = [max(len(line[at]) for line in lines) for at in range(3)]
    for line in lines:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip()


def _list_only(
    places: Sequence[str], samples: Sequence[tuple[str | None, ...]], count: int, where: str
) -> Iterator[str]:
    if not samples:
        return
    yield f"{where}{f', the first {len(samples)}' if count > len(samples) else ''}:"
    for sample in samples[: MOST_NAMES // 2 if len(places) > 1 else MOST_NAMES]:
        yield f"  {describe_place(places, sample)}"


def describe_place(places: Sequence[str], values: Sequence[str | None]) -> str:
    """Write where a row is: `id=5, day=2024-01-01`."""
    return ", ".join(f"{show_name(name)}={_value(value)}" for name, value in zip(places, values, strict=True))


def side_by_side(baseline: str | None, here: str | None) -> tuple[str, str]:
    """Write two values so that what is different between them can be seen."""
    if baseline is None or here is None:
        return _value(baseline), _value(here)
    was, now = cut_pair(baseline, here, _LONGEST_VALUE)
    return _quoted(was), _quoted(now)


def _value(value: str | None) -> str:
    return "NULL" if value is None else cut(_quoted(value), _LONGEST_VALUE)


def _quoted(text: str) -> str:
    """Quote a text that would else be overlooked or taken for NULL."""
    shown = show(text)
    return f"'{shown}'" if not text or text != text.strip() or text == "NULL" else shown
