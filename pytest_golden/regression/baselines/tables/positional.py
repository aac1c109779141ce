"""Rows compared in the order in which they stand: the first with the first. Both files are read once, in flat memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.tables.equality import any_of
from pytest_golden.regression.baselines.tables.model import RowDifferences
from pytest_golden.regression.baselines.tables.sampling import (
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
    counted = [_count_differing(engine, equality, some, tables) for some in part(pairs)]
    differing, counts = max(each[0] for each in counted), [count for each in counted for count in each[1]]
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
        at_least=sum(each[0] > 0 for each in counted) > 1,
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
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> tuple[int, tuple[int, ...]]:
    here, baseline = tables
    common = min(here.rows, baseline.rows)
    if not pairs or not common:
        return 0, (0,) * len(pairs)
    others = _find_others(engine, pairs, tables)
    if not others:
        return 0, (0,) * len(pairs)
    differs = ", ".join(f"{equality.differs(pair)} AS d{at}" for at, pair in enumerate(others))
    flags = [f"d{at}" for at in range(len(others))]
    counted = ", ".join(f"count(*) FILTER ({each})" for each in (any_of(flags), *flags))
    inner = f"SELECT row_number() OVER () AS n, {differs} FROM {_side_by_side(tables)}"
    total, *counts = engine.query(f"SELECT {counted} FROM ({inner}) WHERE n <= {common}")[0]
    return total, spread(pairs, others, counts)


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
