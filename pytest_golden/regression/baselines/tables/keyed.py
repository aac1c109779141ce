"""Rows compared by a key that must be unique on both sides: one join, and further ones only to show what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import Side
from pytest_golden.regression.baselines.tables.equality import any_of
from pytest_golden.regression.baselines.tables.model import KeyRepeatedError, RowDifferences
from pytest_golden.regression.baselines.tables.sampling import (
    COUNTED_AT_ONCE,
    SAMPLES,
    as_text,
    count_by_column,
    find_others,
    is_wide,
    order_of,
    part,
    read_samples,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.equality import Equality
    from pytest_golden.regression.baselines.tables.model import Pair, Table

_EXAMPLES = 5


def compare_by_key(
    engine: Engine, equality: Equality, keys: Sequence[Pair], pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> RowDifferences:
    """Compare the rows of the output and of the baseline that have the same key.

    Raises:
        KeyRepeatedError: the key is not unique.
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    engine.keep_order(False)
    met = " AND ".join(f"{key.x} IS NOT DISTINCT FROM {key.y}" for key in keys)
    parts = part(pairs)
    # Of a wide table most columns are spared a closer look.
    first, further = ((), parts) if is_wide(parts[0]) else (parts[0], parts[1:])
    joined, only_here, only_baseline, *found = _count(engine, equality, first, tables, met)
    if (joined - only_baseline, joined - only_here) != (here.rows, baseline.rows):
        check_unique(engine, keys, here)
        check_unique(engine, keys, baseline)
    at_once = COUNTED_AT_ONCE if len(parts) > 1 else len(pairs)
    counted = [
        ([found[0]], found[1:]),
        *(_count_further(engine, equality, some, tables, met, at_once) for some in further),
    ]
    totals, counts = [one for each in counted for one in each[0]], [count for each in counted for count in each[1]]
    differing = max(totals)
    order = ", ".join(order_of(key, key.x) for key in keys)
    rest = f"FROM {here.scan('x')} JOIN {baseline.scan('y')} ON {met} WHERE {{differs}} ORDER BY {order}"
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


def check_unique(engine: Engine, keys: Sequence[Pair], table: Table) -> None:
    """Look for keys that stand more than once.

    Raises:
        KeyRepeatedError: there are some.
        QueryError: DuckDB cannot answer.
    """
    columns = _expressions(keys, table)
    grouped = ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns))
    order = ", ".join(f"k{at}" for at in range(len(columns)))
    rows = engine.query(
        f"SELECT {', '.join(as_text(f'k{at}') for at in range(len(columns)))}, times FROM"
        f" (SELECT {grouped}, count(*) AS times FROM {table.scan(_alias(table))}"
        f" GROUP BY {', '.join(columns)} HAVING count(*) > 1) ORDER BY times DESC, {order} LIMIT {_EXAMPLES}"
    )
    _refuse_repeated(rows, keys, table)


def _count(
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


def _count_further(
    engine: Engine,
    equality: Equality,
    pairs: Sequence[Pair],
    tables: tuple[Table, Table],
    met: str,
    at_once: int,
) -> tuple[list[int], Sequence[int]]:
    """Count what differs in some columns of a wide table, where anything looks different at all, so many at a time."""
    here, baseline = tables
    others = find_others(engine, pairs, pairs, f"FROM {here.scan('x')} JOIN {baseline.scan('y')} ON {met}")
    totals: list[int] = []
    counts: list[int] = []
    for some in part(others, at_once) if others else ():
        total, *each = _count(engine, equality, some, tables, met)[3:]
        totals.append(total)
        counts += each
    return totals, spread(pairs, others, counts)


def _unmatched(
    engine: Engine, keys: Sequence[Pair], met: str, tables: tuple[Table, Table], side: Table
) -> tuple[tuple[str | None, ...], ...]:
    """Give the first keys that only one side has; here too none may stand twice."""
    (left, one), (right, other) = zip("xy", tables, strict=True)
    if side is other:
        (left, one), (right, other) = (right, other), (left, one)
    columns = _expressions(keys, side)
    grouped = ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns))
    order = ", ".join(order_of(key, f"k{at}") for at, key in enumerate(keys))
    rows = engine.query(
        f"SELECT {', '.join(as_text(f'k{at}') for at in range(len(columns)))}, times FROM"
        f" (SELECT {grouped}, count(*) AS times FROM {one.scan(left)} ANTI JOIN {other.scan(right)} ON {met}"
        f" GROUP BY {', '.join(columns)}) ORDER BY times DESC, {order} LIMIT {SAMPLES}"
    )
    _refuse_repeated([row for row in rows if row[-1] > 1], keys, side)
    return tuple(row[:-1] for row in rows)


def _refuse_repeated(rows: Sequence[tuple[Any, ...]], keys: Sequence[Pair], table: Table) -> None:
    if not rows:
        return
    raise KeyRepeatedError(table.side, tuple(key.label for key in keys), tuple(rows))


def _expressions(keys: Sequence[Pair], table: Table) -> list[str]:
    return [key.x if table.side is Side.OUTPUT else key.y for key in keys]


def _alias(table: Table) -> str:
    return "x" if table.side is Side.OUTPUT else "y"
