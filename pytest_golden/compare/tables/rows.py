"""Rows compared: those of the same key, those at the same position, or all as a multiset."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.documents.document_values import find_partner
from pytest_golden.compare.opening import Side
from pytest_golden.compare.tables.equality import (
    COUNTED_AT_ONCE,
    NUMBER,
    SAMPLES,
    any_of,
    as_text,
    canonical,
    count_by_column,
    find_others,
    holds_numbers,
    is_wide,
    order_of,
    part,
    read_samples,
)
from pytest_golden.compare.tables.model import KeyRepeatedError, RowDifferences, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Equality
    from pytest_golden.compare.tables.model import DifferingRow, Pair, Table


_EXAMPLES = 5

_SHOWN_COLUMNS = 8
_MOST_TRIED = 500
_DIGESTED_AT_ONCE = 250
_ADVICE = "if they should hold, declare a `key` instead of `unordered`"
_TOO_WIDE = f"rows of so many columns are compared without the tolerance: {_ADVICE}"


def compare_by_key(
    engine: Engine, equality: Equality, keys: Sequence[Pair], pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> RowDifferences:
    """Compare the rows of the output and of the baseline that have the same key, which must be unique on both sides.

    One join counts; further ones only show what differs.

    Raises:
        KeyRepeatedError: the key is not unique.
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    engine.keep_order(False)
    met = " AND ".join(f"{key.x} IS NOT DISTINCT FROM {key.y}" for key in keys)
    parts = part(pairs)
    # In a wide table, only columns that look different are compared more closely.
    first, further = ((), parts) if is_wide(parts[0]) else (parts[0], parts[1:])
    joined, only_here, only_baseline, *found = _count_joined(engine, equality, first, tables, met)
    if (joined - only_baseline, joined - only_here) != (here.rows, baseline.rows):
        check_unique(engine, keys, here)
        check_unique(engine, keys, baseline)
    at_once = COUNTED_AT_ONCE if len(parts) > 1 else len(pairs)
    joined_rows = f"FROM {here.scan('x')} JOIN {baseline.scan('y')} ON {met}"
    more_totals, more_counts = _count_in_parts(
        further,
        at_once,
        lambda some: find_others(engine, some, some, joined_rows),
        lambda some: _count_joined(engine, equality, some, tables, met)[3:],
    )
    totals, counts = [found[0], *more_totals], [*found[1:], *more_counts]
    differing = max(totals)
    order = ", ".join(order_of(key, key.x) for key in keys)
    rest = f"{joined_rows} WHERE {{differs}} ORDER BY {order}"
    samples = read_samples(engine, equality, [key.x for key in keys], pairs, counts, rest) if differing else ()
    return RowDifferences(
        tuple(key.label for key in keys),
        differing,
        only_here,
        only_baseline,
        count_by_column(pairs, counts),
        samples,
        _unmatched(engine, keys, met, tables, here) if only_here else (),
        _unmatched(engine, keys, met, tables, baseline) if only_baseline else (),
        at_least=sum(total > 0 for total in totals) > 1,
    )


def compare_by_position(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> RowDifferences:
    """Compare the first row with the first, and so on; where one side has more rows, its last ones are the surplus.

    Both files are read once, in flat memory.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    common = min(here.rows, baseline.rows)
    engine.keep_order(True)
    parts = part(pairs)
    at_once = len(pairs) if len(parts) == 1 else COUNTED_AT_ONCE
    totals, counts = _count_in_parts(
        parts,
        at_once,
        lambda some: _find_others_at_positions(engine, some, tables) if some and common else (),
        lambda some: _count_at_positions(engine, equality, some, tables, common),
    )
    differing = max(totals, default=0)
    samples: tuple[DifferingRow, ...] = ()
    if differing:
        wanted = [pair for pair, count in zip(pairs, counts, strict=True) if count]
        numbered = f"(SELECT row_number() OVER () AS n, {_select_both(wanted)} FROM {_side_by_side(tables)})"
        rest = f"FROM {numbered} AS z WHERE n <= {common} AND {{differs}} ORDER BY n"
        samples = read_samples(engine, equality, ["n"], [_renamed(pair) for pair in pairs], counts, rest)
    return RowDifferences(
        ("row",),
        differing,
        here.rows - common,
        baseline.rows - common,
        count_by_column(pairs, counts),
        samples,
        _number_surplus(common, here.rows),
        _number_surplus(common, baseline.rows),
        at_least=sum(total > 0 for total in totals) > 1,
    )


def is_same_in_order(engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> bool:
    """Tell whether no row differs from the one at the same position; ends at the first that does.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    if here.rows != baseline.rows:
        return False
    engine.keep_order(True)
    for some in part(pairs):
        differs = any_of([equality.differs(pair) for pair in _find_others_at_positions(engine, some, tables)])
        if engine.query(f"SELECT 1 FROM {_side_by_side(tables)} WHERE {differs} LIMIT 1"):
            return False
    return True


def check_unique(engine: Engine, keys: Sequence[Pair], table: Table) -> None:
    """Look for keys that stand more than once.

    Raises:
        KeyRepeatedError: there are some.
        QueryError: DuckDB cannot answer.
    """
    alias = "x" if table.side is Side.OUTPUT else "y"
    _refuse_repeated(
        _group_by_key(engine, keys, alias, table.scan(alias), _EXAMPLES, " HAVING count(*) > 1"), keys, table
    )


def _group_by_key(
    engine: Engine, keys: Sequence[Pair], alias: str, source: str, limit: int, having: str = ""
) -> list[tuple[Any, ...]]:
    """Return the first keys, each with how often it stands, those that stand most often first."""
    columns = [getattr(key, alias) for key in keys]
    grouped = ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns))
    order = ", ".join(order_of(key, f"k{at}") for at, key in enumerate(keys))
    return engine.query(
        f"SELECT {', '.join(as_text(f'k{at}') for at in range(len(columns)))}, times FROM"
        f" (SELECT {grouped}, count(*) AS times FROM {source} GROUP BY {', '.join(columns)}{having})"
        f" ORDER BY times DESC, {order} LIMIT {limit}"
    )


def _count_joined(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table], met: str
) -> tuple[int, ...]:
    """Count joined rows, those of one side, those that differ in all and by column.

    A key that is not unique could join more rows than can ever be counted: one row more than both sides have is enough.
    """
    here, baseline = tables
    differs = [f"{equality.differs(pair)} AS d{at}" for at, pair in enumerate(pairs)]
    inner = (
        f"SELECT {', '.join(['x.here AS here', 'y.here AS there', *differs])}"
        f" FROM (SELECT true AS here, * FROM {here.scan('x')}) AS x"
        f" FULL OUTER JOIN (SELECT true AS here, * FROM {baseline.scan('y')}) AS y ON {met}"
        f" LIMIT {here.rows + baseline.rows + 1}"
    )
    flags = [f"d{at}" for at in range(len(pairs))]
    counted = ["here AND there IS NULL", "there AND here IS NULL", f"here AND there AND {any_of(flags)}"]
    counted += [f"here AND there AND {flag}" for flag in flags]
    return engine.query(
        f"SELECT count(*), {', '.join(f'count(*) FILTER ({each})' for each in counted)} FROM ({inner})"
    )[0]


def _unmatched(
    engine: Engine, keys: Sequence[Pair], met: str, tables: tuple[Table, Table], side: Table
) -> tuple[tuple[str | None, ...], ...]:
    """Return the first keys that only one side has; these must be unique too."""
    (left, one), (right, other) = zip("xy", tables, strict=True)
    if side is other:
        (left, one), (right, other) = (right, other), (left, one)
    source = f"{one.scan(left)} ANTI JOIN {other.scan(right)} ON {met}"
    rows = _group_by_key(engine, keys, left, source, SAMPLES)
    _refuse_repeated([row for row in rows if row[-1] > 1], keys, side)
    return tuple(row[:-1] for row in rows)


def _refuse_repeated(rows: Sequence[tuple[Any, ...]], keys: Sequence[Pair], table: Table) -> None:
    if rows:
        raise KeyRepeatedError(table.side, tuple(key.label for key in keys), tuple(rows))


def _find_others_at_positions(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> Sequence[Pair]:
    """Return the columns of a wide table that look different: to plan a comparison for each column would cost DuckDB too much."""
    if not is_wide(pairs):
        return pairs
    common = min(tables[0].rows, tables[1].rows)
    numbered = f"(SELECT row_number() OVER () AS n, {_select_both(pairs)} FROM {_side_by_side(tables)})"
    return find_others(engine, pairs, [_renamed(pair) for pair in pairs], f"FROM {numbered} WHERE n <= {common}")


def _count_in_parts(
    parts: Iterable[Sequence[Pair]],
    at_once: int,
    find: Callable[[Sequence[Pair]], Sequence[Pair]],
    count: Callable[[Sequence[Pair]], Sequence[int]],
) -> tuple[list[int], list[int]]:
    """Count the rows that differ in up to `at_once` of the columns at a time that `find` says look different.

    Return the rows of each group of columns, and those of each column.
    """
    totals: list[int] = []
    counts: list[int] = []
    for pairs in parts:
        others, found = find(pairs), []
        for some in part(others, at_once) if others else ():
            total, *each = count(some)
            totals.append(total)
            found += each
        known = {pair.label: amount for pair, amount in zip(others, found, strict=True)}
        counts += [known.get(pair.label, 0) for pair in pairs]
    return totals, counts


def _count_at_positions(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table], common: int
) -> tuple[int, ...]:
    differs = ", ".join(f"{equality.differs(pair)} AS d{at}" for at, pair in enumerate(pairs))
    flags = [f"d{at}" for at in range(len(pairs))]
    counted = ", ".join(f"count(*) FILTER ({each})" for each in (any_of(flags), *flags))
    inner = f"SELECT row_number() OVER () AS n, {differs} FROM {_side_by_side(tables)}"
    return engine.query(f"SELECT {counted} FROM ({inner}) WHERE n <= {common}")[0]


def _side_by_side(tables: tuple[Table, Table]) -> str:
    here, baseline = tables
    return f"{here.scan('x')} POSITIONAL JOIN {baseline.scan('y')}"


def _select_both(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{pair.x} AS {_inner_name(pair.x)}, {pair.y} AS {_inner_name(pair.y)}" for pair in pairs)


def _renamed(pair: Pair) -> Pair:
    return replace(pair, x=_inner_name(pair.x), y=_inner_name(pair.y))


def _inner_name(expression: str) -> str:
    """Name a column, such as `x.c1`, or one that is cast: `x.c1::VARCHAR`."""
    return expression.partition("::")[0].replace(".", "")


def _number_surplus(common: int, rows: int) -> tuple[tuple[str | None, ...], ...]:
    return tuple((f"{number}",) for number in range(common + 1, min(rows, common + SAMPLES) + 1))


def compare_unordered(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> RowDifferences:
    """Compare the rows, whatever their positions.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    if not pairs:
        common = min(here.rows, baseline.rows)
        return RowDifferences((), 0, here.rows - common, baseline.rows - common)
    # What usually holds is found in one pass and in flat memory.
    if is_same_in_order(engine, equality, pairs, tables):
        return RowDifferences(())
    if equality.is_exact:
        return count_as_multisets(engine, pairs, tables)
    if len(part(pairs)) > 1:
        return replace(count_as_multisets(engine, pairs, tables), notes=(_TOO_WIDE,))
    engine.keep_order(False)
    numbers = _find_numbers(engine, pairs, tables)
    is_same, note = _is_same_within(engine, equality, pairs, numbers, tables) if numbers else (False, "")
    if is_same:
        return RowDifferences(())
    return replace(count_as_multisets(engine, pairs, tables), notes=(note,) if note else ())


def count_as_multisets(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> RowDifferences:
    """Count and show the rows that one side has more often than the other; nothing is tolerated.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    # JSON takes DuckDB longer to plan than to read.
    if len(part(pairs)) > 1 or (is_wide(pairs) and pairs[0].column.values is Values.JSON):
        return _count_by_digests(engine, pairs, tables)
    engine.keep_order(False)
    values = [f"v{at}" for at in range(len(pairs))]
    left = ", ".join(f"{canonical(pair.column, pair.x)} AS v{at}" for at, pair in enumerate(pairs))
    right = ", ".join(f"{canonical(pair.column, pair.y)} AS v{at}" for at, pair in enumerate(pairs))
    surplus = (
        f"SELECT {', '.join(values)}, sum(side) AS more FROM (SELECT {left}, 1 AS side FROM {here.scan('x')}"
        f" UNION ALL SELECT {right}, -1 AS side FROM {baseline.scan('y')})"
        f" GROUP BY {', '.join(values)} HAVING sum(side) <> 0"
    )
    counts = engine.query(
        f"SELECT coalesce(sum(greatest(more, 0)), 0)::BIGINT, coalesce(sum(greatest(-more, 0)), 0)::BIGINT FROM ({surplus})"
    )[0]
    only_here, only_baseline = (int(count) for count in counts)
    shown = values[:_SHOWN_COLUMNS]
    here_samples, baseline_samples = (
        engine.query(
            f"SELECT {', '.join(map(as_text, shown))} FROM ({surplus}) WHERE more {sign} 0"
            f" ORDER BY {', '.join(shown)} LIMIT {SAMPLES}"
        )
        if count
        else []
        for sign, count in ((">", only_here), ("<", only_baseline))
    )
    return RowDifferences(
        tuple(pair.label for pair in pairs[:_SHOWN_COLUMNS]),
        only_here=only_here,
        only_baseline=only_baseline,
        here_samples=tuple(here_samples),
        baseline_samples=tuple(baseline_samples),
    )


def _count_by_digests(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> RowDifferences:
    """Count the rows of wide tables by a digest of each; samples are row numbers."""
    engine.keep_order(True)
    for alias, table in zip("xy", tables, strict=True):
        engine.query(f"CREATE OR REPLACE TEMP TABLE digests_{alias} AS SELECT '' AS h FROM range({table.rows})")
        for some in part(pairs, _DIGESTED_AT_ONCE):
            texts = ", ".join(f"({canonical(pair.column, getattr(pair, alias))})::VARCHAR" for pair in some)
            engine.query(
                f"CREATE OR REPLACE TEMP TABLE digests_{alias} AS SELECT md5(d.h || s.h) AS h FROM digests_{alias} AS d"
                f" POSITIONAL JOIN (SELECT md5(to_json([{texts}])::VARCHAR) AS h FROM {table.scan(alias)}) AS s"
            )
    found = []
    for one, other in (("x", "y"), ("y", "x")):
        # The n-th row of a digest is only here when there are fewer of it there.
        left, right = (
            f"(SELECT n, h, row_number() OVER (PARTITION BY h ORDER BY n) AS nth FROM"
            f" (SELECT row_number() OVER () AS n, h FROM digests_{each}))"
            for each in (one, other)
        )
        found.append(
            engine.query(
                f"SELECT l.n::VARCHAR, count(*) OVER () FROM {left} AS l"
                f" ANTI JOIN {right} AS r ON l.h = r.h AND l.nth = r.nth ORDER BY l.n LIMIT {SAMPLES}"
            )
        )
    mine, theirs = found
    return RowDifferences(
        ("row",),
        only_here=mine[0][1] if mine else 0,
        only_baseline=theirs[0][1] if theirs else 0,
        here_samples=tuple(row[:1] for row in mine),
        baseline_samples=tuple(row[:1] for row in theirs),
    )


def _find_numbers(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> set[str]:
    """Return the columns in which all values are numbers, or contain numbers."""
    numbers = {pair.label for pair in pairs if pair.column.values is Values.TYPED and holds_numbers(pair.column.type)}
    texts = [pair for pair in pairs if pair.column.values is not Values.TYPED]
    if not texts:
        return numbers
    answers = []
    for alias, table in zip("xy", tables, strict=True):
        asked = ", ".join(
            f"coalesce(bool_and(regexp_full_match({getattr(pair, alias)}, '{NUMBER}')), true)" for pair in texts
        )
        answers.append(engine.query(f"SELECT {asked} FROM {table.scan(alias)}")[0])
    return numbers | {pair.label for pair, x, y in zip(texts, *answers, strict=True) if x and y}


def _is_same_within(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], numbers: set[str], tables: tuple[Table, Table]
) -> tuple[bool, str]:
    """Tell whether each row has a partner on the other side within the tolerance, and what is to be said of that."""
    here, baseline = tables
    if here.rows != baseline.rows:
        return False, ""
    exact = [pair for pair in pairs if pair.label not in numbers]
    met = " AND ".join(
        ["x.rank = y.rank"]
        + [f"({canonical(p.column, p.x)}) IS NOT DISTINCT FROM ({canonical(p.column, p.y)})" for p in exact]
    )
    left, right = (_ranked(table, alias, pairs, numbers) for alias, table in zip("xy", tables, strict=True))
    far = any_of([equality.differs(pair) for pair in pairs if pair.label in numbers])
    columns = ", ".join(f"{each.x} AS x{at}, {each.y} AS y{at}" for at, each in enumerate(pairs))
    joined = f"FROM {left} AS x FULL OUTER JOIN {right} AS y ON {met}"
    lonely, apart = engine.query(
        f"SELECT count(*) FILTER (x.rank IS NULL OR y.rank IS NULL), count(*) FILTER ({far}) {joined}"
    )[0]
    if lonely or not apart:
        return not lonely, ""
    if apart > _MOST_TRIED:
        told = f"{apart:,} rows are beyond the tolerance when rows are paired in order, too many to try other pairs"
        return False, f"{told}: {_ADVICE}"
    engine.query(
        f"CREATE OR REPLACE TEMP TABLE far AS SELECT row_number() OVER () AS n, {columns} {joined} WHERE {far}"
    )
    differs = any_of([equality.differs(replace(each, x=f"x.x{at}", y=f"y.y{at}")) for at, each in enumerate(pairs)])
    near = engine.query(f"SELECT x.n, y.n FROM far AS x, far AS y WHERE NOT {differs}")
    return can_all_be_paired(apart, near), ""


def _ranked(table: Table, alias: str, pairs: Sequence[Pair], numbers: set[str]) -> str:
    columns = [(pair, getattr(pair, alias)) for pair in pairs]
    exact = [canonical(pair.column, expression) for pair, expression in columns if pair.label not in numbers]
    order = [
        expression if pair.column.values is Values.TYPED else f"TRY_CAST({expression} AS DOUBLE)"
        for pair, expression in columns
        if pair.label in numbers
    ]
    parted = f"PARTITION BY {', '.join(exact)} " if exact else ""
    return f"(SELECT *, row_number() OVER ({parted}ORDER BY {', '.join(order)}) AS rank FROM {table.scan(alias)})"


def can_all_be_paired(count: int, near: Iterable[Sequence[int]]) -> bool:
    """Tell whether all `count` rows of each side can be paired, by the pairs that `near` allows (augmenting paths)."""
    partners: dict[int, list[int]] = defaultdict(list)
    for left, right in near:
        partners[left].append(right)
    taken: dict[int, int] = {}
    return len(partners) == count and all(
        find_partner(left, partners.__getitem__, lambda *_: True, taken) for left in list(partners)
    )
