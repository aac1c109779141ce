"""Rows compared one with one: those of the same key, or those at the same position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.compare.model import Side
from pytest_golden.compare.tables.equality import (
    COUNTED_AT_ONCE,
    SAMPLES,
    any_of,
    as_text,
    count_by_column,
    find_others,
    is_wide,
    order_of,
    part,
    read_samples,
    spread,
)
from pytest_golden.compare.tables.model import KeyRepeatedError, RowDifferences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Equality
    from pytest_golden.compare.tables.model import DifferingRow, Pair, Table


_EXAMPLES = 5


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
    # Of a wide table most columns are spared a closer look.
    first, further = ((), parts) if is_wide(parts[0]) else (parts[0], parts[1:])
    joined, only_here, only_baseline, *found = _count_joined(engine, equality, first, tables, met)
    if (joined - only_baseline, joined - only_here) != (here.rows, baseline.rows):
        check_unique(engine, keys, here)
        check_unique(engine, keys, baseline)
    at_once = COUNTED_AT_ONCE if len(parts) > 1 else len(pairs)
    counted = [
        ([found[0]], found[1:]),
        *(_count_joined_further(engine, equality, some, tables, met, at_once) for some in further),
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
    counted = [_count_differing(engine, equality, some, tables, at_once) for some in parts]
    totals, counts = [one for each in counted for one in each[0]], [count for each in counted for count in each[1]]
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
    columns = _expressions(keys, table)
    grouped = ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns))
    order = ", ".join(f"k{at}" for at in range(len(columns)))
    rows = engine.query(
        f"SELECT {', '.join(as_text(f'k{at}') for at in range(len(columns)))}, times FROM"
        f" (SELECT {grouped}, count(*) AS times FROM {table.scan(_alias(table))}"
        f" GROUP BY {', '.join(columns)} HAVING count(*) > 1) ORDER BY times DESC, {order} LIMIT {_EXAMPLES}"
    )
    _refuse_repeated(rows, keys, table)


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


def _count_joined_further(
    engine: Engine,
    equality: Equality,
    pairs: Sequence[Pair],
    tables: tuple[Table, Table],
    met: str,
    at_once: int,
) -> tuple[list[int], Sequence[int]]:
    """Count what differs in some columns of a wide table: those that look different at all, up to `at_once` at a time."""
    here, baseline = tables
    others = find_others(engine, pairs, pairs, f"FROM {here.scan('x')} JOIN {baseline.scan('y')} ON {met}")
    totals: list[int] = []
    counts: list[int] = []
    for some in part(others, at_once) if others else ():
        total, *each = _count_joined(engine, equality, some, tables, met)[3:]
        totals.append(total)
        counts += each
    return totals, spread(pairs, others, counts)


def _unmatched(
    engine: Engine, keys: Sequence[Pair], met: str, tables: tuple[Table, Table], side: Table
) -> tuple[tuple[str | None, ...], ...]:
    """Return the first keys that only one side has; these must be unique too."""
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


def _find_others_at_positions(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> Sequence[Pair]:
    """Spare most columns of a wide table what it costs DuckDB to plan a comparison of its own for each."""
    if not is_wide(pairs):
        return pairs
    common = min(tables[0].rows, tables[1].rows)
    numbered = f"(SELECT row_number() OVER () AS n, {_select_both(pairs)} FROM {_side_by_side(tables)})"
    return find_others(engine, pairs, [_renamed(pair) for pair in pairs], f"FROM {numbered} WHERE n <= {common}")


def _count_differing(
    engine: Engine, equality: Equality, pairs: Sequence[Pair], tables: tuple[Table, Table], at_once: int
) -> tuple[list[int], tuple[int, ...]]:
    """Count the rows that differ: for each group of up to `at_once` columns that look different, and for each column."""
    common = min(tables[0].rows, tables[1].rows)
    others = _find_others_at_positions(engine, pairs, tables) if pairs and common else ()
    totals, counts = [], []
    for some in part(others, at_once) if others else ():
        total, *each = _count_at_positions(engine, equality, some, tables, common)
        totals.append(total)
        counts += each
    return totals, spread(pairs, others, counts)


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
    return type(pair)(pair.label, _inner_name(pair.x), _inner_name(pair.y), pair.column)


def _inner_name(expression: str) -> str:
    return expression.replace(".", "")


def _number_surplus(common: int, rows: int) -> tuple[tuple[str | None, ...], ...]:
    return tuple((f"{number}",) for number in range(common + 1, min(rows, common + SAMPLES) + 1))
