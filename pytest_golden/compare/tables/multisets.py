"""Rows compared as multisets: how often each occurs counts, its position does not.

With a tolerance, rows that agree in all other columns are paired in the order of their numbers, which is optimal for one
column of numbers; the few pairs that are then too far apart are tried with one another.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.tables.equality import (
    NUMBER,
    SAMPLES,
    any_of,
    as_text,
    canonical,
    holds_numbers,
    is_wide,
    part,
)
from pytest_golden.compare.tables.model import RowDifferences, Values
from pytest_golden.compare.tables.row_by_row import is_same_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Equality
    from pytest_golden.compare.tables.model import Pair, Table, Tolerance


_SHOWN_COLUMNS = 8
_MOST_TRIED = 500
_DIGESTED_AT_ONCE = 250
_ADVICE = "if they should hold, declare a `key` instead of `unordered`"
_TOO_WIDE = f"rows of so many columns are compared without the tolerance: {_ADVICE}"


def compare_unordered(
    engine: Engine,
    equality: Equality,
    pairs: Sequence[Pair],
    tables: tuple[Table, Table],
    tolerance: Tolerance,
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
    if not tolerance:
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
    samples = [
        _sample(engine, surplus, shown, sign) if count else []
        for sign, count in ((">", only_here), ("<", only_baseline))
    ]
    places = tuple(pair.label for pair in pairs[:_SHOWN_COLUMNS])
    return RowDifferences(
        places,
        only_here=only_here,
        only_baseline=only_baseline,
        here_samples=tuple(samples[0]),
        baseline_samples=tuple(samples[1]),
    )


def _sample(engine: Engine, surplus: str, shown: Sequence[str], sign: str) -> list[Any]:
    return engine.query(
        f"SELECT {', '.join(map(as_text, shown))} FROM ({surplus}) WHERE more {sign} 0"
        f" ORDER BY {', '.join(shown)} LIMIT {SAMPLES}"
    )


def _count_by_digests(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> RowDifferences:
    """Count the rows of wide tables by a digest of each; which rows they are is told by their number."""
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
    """Return the columns of which all values are numbers, or made of numbers."""
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
    left = _ranked(here, "x", [(pair, pair.x) for pair in pairs], numbers)
    right = _ranked(baseline, "y", [(pair, pair.y) for pair in pairs], numbers)
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
    return _can_be_paired_otherwise(engine, equality, pairs, apart), ""


def _ranked(table: Table, alias: str, columns: list[tuple[Pair, str]], numbers: set[str]) -> str:
    exact = [canonical(pair.column, expression) for pair, expression in columns if pair.label not in numbers]
    order = [
        expression if pair.column.values is Values.TYPED else f"TRY_CAST({expression} AS DOUBLE)"
        for pair, expression in columns
        if pair.label in numbers
    ]
    parted = f"PARTITION BY {', '.join(exact)} " if exact else ""
    return f"(SELECT *, row_number() OVER ({parted}ORDER BY {', '.join(order)}) AS rank FROM {table.scan(alias)})"


def _can_be_paired_otherwise(engine: Engine, equality: Equality, pairs: Sequence[Pair], count: int) -> bool:
    differs = any_of(
        [equality.differs(type(each)(each.label, f"x.x{at}", f"y.y{at}", each.column)) for at, each in enumerate(pairs)]
    )
    near = engine.query(f"SELECT x.n, y.n FROM far AS x, far AS y WHERE NOT {differs}")
    return can_all_be_paired(count, near)


def can_all_be_paired(count: int, near: Iterable[Sequence[int]]) -> bool:
    """Tell whether all `count` rows of each side can be paired, by the pairs that `near` allows (augmenting paths)."""
    partners: dict[int, list[int]] = defaultdict(list)
    for left, right in near:
        partners[left].append(right)
    taken: dict[int, int] = {}
    return len(partners) == count and all(_augment(left, partners, taken) for left in list(partners))


def _augment(start: int, partners: Mapping[int, Sequence[int]], taken: dict[int, int]) -> bool:
    """Find a partner for one more, moving others to new partners where that helps; breadth first."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for left in waiting:
        for right in partners[left]:
            if right in came_from:
                continue
            came_from[right] = left
            if right not in taken:
                _turn(right, start, came_from, taken)
                return True
            waiting.append(taken[right])
    return False


def _turn(right: int, start: int, came_from: Mapping[int, int], taken: dict[int, int]) -> None:
    before = {left: partner for partner, left in taken.items()}
    while True:
        left = came_from[right]
        taken[right] = left
        if left == start:
            return
        right = before[left]
