"""Rows compared in the order in which they stand: the first with the first. Both files are read once, in flat memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.tables.equality import any_of
from pytest_golden.regression.baselines.tables.model import RowDifferences
from pytest_golden.regression.baselines.tables.sampling import (
    COUNTED_AT_ONCE,
    SAMPLES,
    count_by_column,
    find_others,
    is_wide,
    part,
    read_samples,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.equality import Equality
    from pytest_golden.regression.baselines.tables.model import DifferingRow, Pair, Table


def compare_by_position(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> RowDifferences:
    """Compare row by row; where one side has more rows, the last ones are over.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    common = min(here.rows, baseline.rows)
    engine.keep_order(True)
    parts = part(pairs)
    at_once = len(pairs) if len(parts) == 1 else COUNTED_AT_ONCE
    counted = [_count_differing(engine, equality, some, tables, at_once) for some in parts]
    totals, counts = [one for each in counted for one in each[0]], [count for each in counted for count in each[1]]
    differing = max(totals, default=0)
    samples: tuple[DifferingRow, ...] = ()
    if differing:
        wanted = [pair for pair, count in zip(pairs, counts, strict=True) if count]
        numbered = f"(SELECT row_number() OVER () AS n, {_both(wanted)} FROM {_side_by_side(tables)})"
        rest = f"FROM {numbered} AS z WHERE n <= {common} AND {{differs}} ORDER BY n"
        samples = read_samples(engine, equality, ["n"], [_renamed(pair) for pair in pairs], counts, rest)
    return RowDifferences(
        ("row",),
        differing,
        here.rows - common,
        baseline.rows - common,
        count_by_column(pairs, counts),
        samples,
        _over(common, here.rows),
        _over(common, baseline.rows),
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
        differs = any_of([equality.differs(pair) for pair in _find_others(engine, some, tables)])
        if engine.query(f"SELECT 1 FROM {_side_by_side(tables)} WHERE {differs} LIMIT 1"):
            return False
    return True


def _find_others(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> Sequence[Pair]:
    """Spare most columns of a wide table what it costs DuckDB to plan a comparison of its own for each."""
    if not is_wide(pairs):
        return pairs
    common = min(tables[0].rows, tables[1].rows)
    numbered = f"(SELECT row_number() OVER () AS n, {_both(pairs)} FROM {_side_by_side(tables)})"
    return find_others(engine, pairs, [_renamed(pair) for pair in pairs], f"FROM {numbered} WHERE n <= {common}")


def _count_differing(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table], at_once: int
) -> tuple[list[int], tuple[int, ...]]:
    """Give how many rows differ, for so many columns at a time that look different, and for each column in how many it does."""
    common = min(tables[0].rows, tables[1].rows)
    others = _find_others(engine, pairs, tables) if pairs and common else ()
    totals, counts = [], []
    for some in part(others, at_once) if others else ():
        total, *each = _count(engine, equality, some, tables, common)
        totals.append(total)
        counts += each
    return totals, spread(pairs, others, counts)


def _count(
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


def _both(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{pair.x} AS {_inner(pair.x)}, {pair.y} AS {_inner(pair.y)}" for pair in pairs)


def _renamed(pair: Pair) -> Pair:
    return type(pair)(pair.label, _inner(pair.x), _inner(pair.y), pair.column)


def _inner(expression: str) -> str:
    return expression.replace(".", "")


def _over(common: int, rows: int) -> tuple[tuple[str | None, ...], ...]:
    return tuple((f"{number}",) for number in range(common + 1, min(rows, common + SAMPLES) + 1))
