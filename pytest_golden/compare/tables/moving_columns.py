"""Find the columns of a table that differ between two runs on the same input, and the fewest rules that make it stable.

A column is stable if it has the same values in both tables, in any order. Rows are paired by position, else by
the smallest key of stable columns, else in the order of all stable columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.opening import LAST_DIGITS, Movement, UnreadableError, propose_tolerance
from pytest_golden.compare.showing import cut, quote_name, quote_names, show
from pytest_golden.compare.tables.duckdb_engine import QueryError, describe_trouble, open_engine
from pytest_golden.compare.tables.equality import WHOLE_NUMBER, canonical, part
from pytest_golden.compare.tables.formats import read_table
from pytest_golden.compare.tables.model import Values
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Column, Table
    from pytest_golden.manifest.model import DeclaredOutput

_LAST_DIGITS_OF_FLOAT = 1e-5
# A key of more columns identifies rows by chance.
_MOST_KEY_COLUMNS = 3
_MOST_KEY_CANDIDATES = 12
_MOST_KEYS_TRIED = 100
_LONGEST_EXAMPLE = 60
_FLOATS = ("FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class _Moved:
    """One unstable column: the number of rows that differ, the largest difference if all are numbers, and one example."""

    column: Column
    count: int
    share: float | None
    example: tuple[str | None, str | None]

    @property
    def is_in_last_digits(self) -> bool:
        most = _LAST_DIGITS_OF_FLOAT if str(self.column.type) == "FLOAT" else LAST_DIGITS
        return self.share is not None and 0 < self.share <= most

    def describe(self, rows: int, redact: Redact) -> str:
        one, other = (show(cut(redact(text or "null"), _LONGEST_EXAMPLE)) for text in self.example)
        how_many = f"{'all' if self.count == rows else f'{self.count:,} of'} {count_of(rows, 'value')} differ"
        return f"column {quote_name(self.column.label)}: {how_many}, such as {one} and {other}"


def find_moving_columns(declared: DeclaredOutput, one: Content, other: Content, redact: Redact) -> Movement:
    """Find the differences between two tables, and the rules for them.

    Raises:
        UnreadableError: one of them is not a table.
        GoldenError: DuckDB cannot be used.
    """
    with open_engine() as engine:
        here, there = (read_table(engine, each, header=declared.header) for each in (one, other))
        try:
            return _find(engine, declared, (here, there), redact)
        except QueryError as error:
            raise UnreadableError(one.side, describe_trouble(error, here.format, None)) from None


def find_columns_of_times(
    declared: DeclaredOutput, output: Content, baseline: Content, bounds: tuple[datetime, datetime]
) -> tuple[str, ...]:
    """Return the columns that differ from the baseline's and whose values in the output are all times within the bounds.

    A day counts as a time if it is that of a bound, or lies between them.

    Raises:
        UnreadableError: one of them is not a table.
        GoldenError: DuckDB cannot be used.
    """
    with open_engine() as engine:
        here, there = (read_table(engine, each, header=declared.header) for each in (output, baseline))
        known = {column.label for column in there.columns}
        columns = [column for column in here.columns if column.label in known]
        others = [column for label in (c.label for c in columns) for column in there.columns if column.label == label]
        try:
            digests = [_digest_columns(engine, table, some) for table, some in ((here, columns), (there, others))]
            moved = [column for column, mine, its in zip(columns, *digests, strict=True) if mine != its]
            return tuple(column.name for column in moved if _holds_times(engine, here, column, bounds))
        except QueryError as error:
            raise UnreadableError(output.side, describe_trouble(error, here.format, None)) from None


def _holds_times(engine: Engine, table: Table, column: Column, bounds: tuple[datetime, datetime]) -> bool:
    """Tell whether a column has values, and all of them are times within the bounds; without a zone they are in UTC."""
    # JSON quotes its texts. Microseconds, since DuckDB 1.0 compares the texts where only a cast stands beside a constant.
    text = f"""trim(t.c{column.place}::VARCHAR, '"')"""
    first, last = (round(bound.timestamp() * 1e6) for bound in bounds)
    first_day, last_day = (bound.date().isoformat() for bound in bounds)
    time = f"coalesce(epoch_us(TRY_CAST({text} AS TIMESTAMPTZ)) BETWEEN {first} AND {last}, false)"
    day = f"{text} BETWEEN '{first_day}' AND '{last_day}'"
    held = f"CASE WHEN regexp_full_match({text}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') THEN {day} ELSE {time} END"
    engine.query("SET TimeZone = 'UTC'")
    asked = f"SELECT count(t.c{column.place}), count(*) FILTER (WHERE {held}) FROM {table.scan('t')}"
    ((filled, within),) = engine.query(asked)
    return bool(filled and filled == within)


def _find(engine: Engine, declared: DeclaredOutput, tables: tuple[Table, Table], redact: Redact) -> Movement:
    first, second = tables
    labels = [[column.label for column in table.columns] for table in tables]
    if sorted(labels[0]) != sorted(labels[1]):
        apart = quote_names(sorted(set(labels[0]) ^ set(labels[1])))
        return Movement(unsolved=(f"its columns are not the same in both runs: {apart}",))
    if first.rows != second.rows:
        return Movement(unsolved=(f"it has {count_of(first.rows, 'row')} in one run and {second.rows:,} in another",))
    columns = [column for column in first.columns if column.name not in declared.ignore_columns]
    digests = [_digest_columns(engine, table, columns) for table in tables]
    stable = [column for column, mine, its in zip(columns, *digests, strict=True) if mine == its]
    if not stable:
        return Movement(unsolved=("every column moves: fix the seed of what is random, or the time of the run",))
    return _propose(engine, declared, tables, columns, stable, redact)


def _propose(
    engine: Engine,
    declared: DeclaredOutput,
    tables: tuple[Table, Table],
    columns: Sequence[Column],
    stable: Sequence[Column],
    redact: Redact,
) -> Movement:
    rules: dict[str, Any] = {}
    seen = []
    order: Sequence[Column] = [column for column in columns if column.name in declared.key]
    is_unordered = declared.unordered or declared.is_of_tables
    if not order and (is_unordered or _find_moved(engine, tables, stable, ())):
        key = _find_key(engine, tables[0], stable)
        order = key or stable
        if not is_unordered:
            rules["key" if key else "unordered"] = tuple(column.name for column in key) or True
            by = quote_names([column.label for column in key])
            seen.append(f"the order of its rows moves; {by} identifies a row" if key else "the order of its rows moves")
    moved = _find_moved(engine, tables, columns, order)
    numbers = [each for each in moved if each.is_in_last_digits]
    ignored = [each for each in moved if not each.is_in_last_digits]
    seen += [each.describe(tables[0].rows, redact) for each in ignored]
    if ignored:
        rules["ignore_columns"] = tuple(each.column.name for each in ignored)
    if numbers:
        most = max(each.share or 0.0 for each in numbers)
        rules["relative_tolerance"] = propose_tolerance(most)
        named = quote_names([each.column.label for each in numbers])
        seen.append(f"numbers in {named} differ in their last digits, by {most:.1e} of the larger at most")
    return Movement(rules, tuple(seen))


def _digest_columns(engine: Engine, table: Table, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Return a digest of each column that does not depend on the order of its values."""
    digests: list[tuple[Any, ...]] = []
    for some in part(columns):
        values = [f"({canonical(column, f't.c{column.place}')})" for column in some]
        asked = ", ".join(f"sum(hash({value})::HUGEINT), count({value})" for value in values)
        answers = engine.query(f"SELECT {asked} FROM {table.scan('t')}")[0]
        digests += zip(answers[::2], answers[1::2], strict=True)
    return digests


def _find_key(engine: Engine, table: Table, stable: Sequence[Column]) -> tuple[Column, ...]:
    """Return the smallest set of stable columns that is unique and without nulls, the first such in the table's order."""
    candidates = _rank_candidates(engine, table, [column for column in stable if not _holds_fractions(column)])
    for size in range(1, _MOST_KEY_COLUMNS + 1):
        for some in islice(combinations(candidates, size), _MOST_KEYS_TRIED):
            values = ", ".join(f"t.c{column.place}" for column in some)
            distinct = f"SELECT count(*) FROM (SELECT DISTINCT {values} FROM {table.scan('t')})"
            if engine.query(distinct)[0][0] == table.rows:
                return some
    return ()


def _rank_candidates(engine: Engine, table: Table, columns: Sequence[Column]) -> list[Column]:
    """Return the columns without nulls that distinguish most rows, in the table's order."""
    counts: list[tuple[int, int]] = []
    for some in part(columns):
        asked = ", ".join(f"approx_count_distinct(t.c{each.place}), count(t.c{each.place})" for each in some)
        answers = engine.query(f"SELECT {asked} FROM {table.scan('t')}")[0] if some else ()
        counts += zip(answers[::2], answers[1::2], strict=True)
    whole = [(near, each) for each, (near, filled) in zip(columns, counts, strict=True) if filled == table.rows]
    best = sorted(whole, key=lambda pair: -pair[0])[:_MOST_KEY_CANDIDATES]
    return sorted((column for _, column in best), key=lambda column: column.place)


def _holds_fractions(column: Column) -> bool:
    return column.values is Values.TYPED and str(column.type).startswith(_FLOATS)


def _find_moved(
    engine: Engine, tables: tuple[Table, Table], columns: Iterable[Column], order: Sequence[Column]
) -> list[_Moved]:
    """Pair the rows in the order of some columns, or by position, and return the columns that differ."""
    engine.keep_order(True)
    moved: list[_Moved] = []
    others = {column.label: column for column in tables[1].columns}
    for some in part([*columns]):
        pairs = [(column, f"x.v{at}", f"y.v{at}") for at, column in enumerate(some)]
        left = _number_rows(tables[0], some, order)
        right = _number_rows(tables[1], [others[column.label] for column in some], [others[c.label] for c in order])
        asked = ", ".join(_ask(column, x, y) for column, x, y in pairs)
        answers = engine.query(f"SELECT {asked} FROM {left} AS x JOIN {right} AS y ON x.n = y.n")[0] if pairs else ()
        for column, at in zip(some, range(0, len(answers), 5), strict=True):
            count, numbers, share, one, its = answers[at : at + 5]
            if count:
                is_number = numbers == count and share is not None and isfinite(share)
                moved.append(_Moved(column, count, share if is_number else None, (one, its)))
    return moved


def _number_rows(table: Table, columns: Iterable[Column], order: Sequence[Column]) -> str:
    values = "".join(f", {canonical(column, f't.c{column.place}')} AS v{at}" for at, column in enumerate(columns))
    by = ", ".join(f"{canonical(column, f't.c{column.place}')}" for column in order)
    return f"(SELECT row_number() OVER ({f'ORDER BY {by}' if by else ''}) AS n{values} FROM {table.scan('t')})"


def _ask(column: Column, x: str, y: str) -> str:
    """Write the query about one column: how many values differ, how many of them are fractions, by what share, and one example."""
    differs = f"{x} IS DISTINCT FROM {y}"
    one, other = f"TRY_CAST({x}::VARCHAR AS DOUBLE)", f"TRY_CAST({y}::VARCHAR AS DOUBLE)"
    fractions = f"{differs} AND {one} IS NOT NULL AND {other} IS NOT NULL"
    if column.values is not Values.TYPED:
        fractions += f" AND NOT (regexp_full_match({x}, '{WHOLE_NUMBER}') AND regexp_full_match({y}, '{WHOLE_NUMBER}'))"
    elif not _holds_fractions(column):
        fractions = "false"
    share = f"max(abs({one} - {other}) / greatest(abs({one}), abs({other}))) FILTER (WHERE {fractions})"
    return (
        f"count(*) FILTER (WHERE {differs}), count(*) FILTER (WHERE {fractions}), {share},"
        f" first({x}::VARCHAR) FILTER (WHERE {differs}), first({y}::VARCHAR) FILTER (WHERE {differs})"
    )
