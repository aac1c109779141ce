"""Pairs the rows of a table with those of its baseline, to explain a difference. It never decides whether there is one.

Rows are paired by the declared key, else by the smallest key that both sides have in common, else by the columns that agree,
else as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from pytest_golden.compare.tables.equality import canonical, part
from pytest_golden.compare.tables.model import Column, Pair, Values
from pytest_golden.gateway.table_difference import PairedBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Table

# A key of more columns identifies rows, and says nothing.
_MOST_KEY_COLUMNS = 3
_MOST_CANDIDATES = 12
_MOST_TRIED = 100
# With fewer in common a key pairs nothing.
_LEAST_IN_COMMON = 0.5
# Of approximate counts of distinct values.
_ERROR = 1.2
_AGREES = 0.95
_LEAST_INFERRED, _MOST_INFERRED = 3, 5_000_000
_MOST_AGREEING = 1_000_000
_FRACTIONS = ("FLOAT", "DOUBLE")
# Stands for the number of a row.
_NUMBER = Column("row", "row", 0, Values.TYPED, "BIGINT")
_NESTED = ("STRUCT", "MAP", "UNION", "BIT", "JSON", "VARIANT")


@dataclass(frozen=True, slots=True)
class Pairing:
    """How rows are paired: where the keys of `left`, which is called x, equal those of `right`, which is called y."""

    kind: PairedBy
    keys: tuple[Pair, ...]
    left: str
    right: str

    @property
    def met(self) -> str:
        """Return the condition under which a row of x is that of y."""
        return " AND ".join(f"{key.x} IS NOT DISTINCT FROM {key.y}" for key in self.keys)


def pair_by_key(keys: Sequence[Pair], tables: tuple[Table, Table], kind: PairedBy = PairedBy.KEY) -> Pairing:
    """Pair rows of the same key."""
    here, baseline = tables
    return Pairing(kind, tuple(keys), here.scan("x"), baseline.scan("y"))


def pair_by_position(tables: tuple[Table, Table]) -> Pairing:
    """Pair the first row with the first, and so on."""
    left, right = (
        f"(SELECT row_number() OVER () AS n, * FROM {table.scan('t')}) AS {alias}"
        for alias, table in zip("xy", tables, strict=True)
    )
    return Pairing(PairedBy.POSITION, (_number("row"),), left, right)


def infer_key(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> tuple[Pair, ...]:
    """Return the fewest columns that are unique and filled on both sides, of these the ones with most values in common.

    Return no columns if there is no such key.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    if not all(_LEAST_INFERRED <= table.rows <= _MOST_INFERRED for table in tables):
        return ()
    candidates = _rank_candidates(engine, pairs, tables)
    for size in range(1, _MOST_KEY_COLUMNS + 1):
        best: tuple[float, tuple[Pair, ...]] = (_LEAST_IN_COMMON, ())
        for some in islice(combinations(candidates, size), _MOST_TRIED):
            keys = tuple(pair for pair, _ in some)
            if _can_be_unique([counts for _, counts in some], tables) and _is_unique(engine, keys, tables):
                share = _count_common(engine, keys, tables) / min(table.rows for table in tables)
                if share > best[0] or (share == best[0] and not best[1]):
                    best = (share, keys)
        if best[1]:
            return best[1]
    return ()


def find_repeated_key(engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]) -> tuple[Pair, int] | None:
    """Return a column that is unique on one side and mostly repeated on the other, and how many of its values are.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    if here.rows == baseline.rows or not all(0 < table.rows <= _MOST_INFERRED for table in tables):
        return None
    (less, few), (more, many) = (
        (("y", baseline), ("x", here)) if here.rows > baseline.rows else (("x", here), ("y", baseline))
    )
    for pair in (pair for pair in pairs[:_MOST_CANDIDATES] if _can_be_key(pair)):
        column, other = getattr(pair, less), getattr(pair, more)
        filled, distinct = engine.query(f"SELECT count({column}), count(DISTINCT {column}) FROM {few.scan(less)}")[0]
        if filled != few.rows or distinct != few.rows:
            continue
        met = f"SELECT {other} AS v, count(*) AS times FROM {many.scan(more)} GROUP BY {other}"
        common, repeated = engine.query(
            f"SELECT count(*), count(*) FILTER (times > 1) FROM ({met}) AS m SEMI JOIN {few.scan(less)} ON m.v = {column}"
        )[0]
        if repeated and common >= _LEAST_IN_COMMON * few.rows:
            return pair, repeated
    return None


def pair_by_values(
    engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table], *, unordered: bool
) -> Pairing | None:
    """Pair rows that are equal in the columns that agree, in their order; None if no column does.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    if not all(_LEAST_INFERRED <= table.rows <= _MOST_AGREEING for table in tables):
        return None
    engine.keep_order(True)
    shares = [(_share(engine, pair, tables), pair) for pair in pairs]
    agreeing = [pair for share, pair in shares if share == 1] or [pair for share, pair in shares if share >= _AGREES]
    return pair_by_columns(agreeing, pairs, tables, unordered=unordered) if agreeing else None


def pair_by_columns(
    agreeing: Sequence[Pair], pairs: Sequence[Pair], tables: tuple[Table, Table], *, unordered: bool
) -> Pairing:
    """Pair rows that are equal in some columns: the first with the first, and so on."""
    rest = [pair for pair in pairs if pair not in agreeing]
    sides = []
    for alias, table in zip("xy", tables, strict=True):
        values = [f"({canonical(pair.column, getattr(pair, alias))})" for pair in agreeing]
        order = ", ".join(getattr(pair, alias) for pair in rest if can_be_sorted(pair)) if unordered else ""
        numbered = f"row_number() OVER (PARTITION BY {', '.join(values)} ORDER BY {order or 'p'}) AS n"
        placed = f"(SELECT row_number() OVER () AS p, * FROM {table.scan(alias)}) AS {alias}"
        named = ", ".join(f"{value} AS g{at}" for at, value in enumerate(values))
        sides.append(f"(SELECT {alias}.*, {named}, {numbered} FROM {placed}) AS {alias}")
    keys = [Pair(pair.label, f"x.g{at}", f"y.g{at}", pair.column) for at, pair in enumerate(agreeing)]
    return Pairing(PairedBy.VALUES, (*keys, _number("nth")), sides[0], sides[1])


def _number(label: str) -> Pair:
    return Pair(label, "x.n", "y.n", _NUMBER)


def _rank_candidates(
    engine: Engine, pairs: Sequence[Pair], tables: tuple[Table, Table]
) -> list[tuple[Pair, tuple[int, int]]]:
    """Return the columns without nulls that tell most rows apart, in the table's order, with their distinct values."""
    able = [pair for pair in pairs if _can_be_key(pair)]
    filled: list[list[tuple[int, int]]] = []
    for alias, table in zip("xy", tables, strict=True):
        counts: list[tuple[int, int]] = []
        for some in part(able):
            asked = ", ".join(
                f"approx_count_distinct({getattr(each, alias)}), count({getattr(each, alias)})" for each in some
            )
            answers = engine.query(f"SELECT {asked} FROM {table.scan(alias)}")[0] if some else ()
            counts += zip(answers[::2], answers[1::2], strict=True)
        filled.append(counts)
    here, baseline = tables
    whole = [
        (pair, (x[0], y[0]))
        for pair, x, y in zip(able, *filled, strict=True)
        if x[1] == here.rows and y[1] == baseline.rows
    ]
    best = sorted(whole, key=lambda each: -min(each[1]))[:_MOST_CANDIDATES]
    return sorted(best, key=lambda each: each[0].column.place)


def _can_be_unique(counts: Sequence[tuple[int, int]], tables: tuple[Table, Table]) -> bool:
    for at, table in enumerate(tables):
        most = 1.0
        for each in counts:
            most *= each[at] * _ERROR
        if most < table.rows:
            return False
    return True


def _is_unique(engine: Engine, keys: Sequence[Pair], tables: tuple[Table, Table]) -> bool:
    for alias, table in zip("xy", tables, strict=True):
        values = ", ".join(getattr(key, alias) for key in keys)
        if (
            engine.query(f"SELECT count(*) FROM (SELECT DISTINCT {values} FROM {table.scan(alias)})")[0][0]
            != table.rows
        ):
            return False
    return True


def _count_common(engine: Engine, keys: Sequence[Pair], tables: tuple[Table, Table]) -> int:
    here, baseline = tables
    met = " AND ".join(f"{key.x} = {key.y}" for key in keys)
    return int(engine.query(f"SELECT count(*) FROM {here.scan('x')} JOIN {baseline.scan('y')} ON {met}")[0][0])


def _share(engine: Engine, pair: Pair, tables: tuple[Table, Table]) -> float:
    left, right = (
        f"SELECT v, count(*) AS times FROM (SELECT {canonical(pair.column, getattr(pair, alias))} AS v"
        f" FROM {table.scan(alias)}) GROUP BY v"
        for alias, table in zip("xy", tables, strict=True)
    )
    common = engine.query(
        f"SELECT coalesce(sum(least(x.times, y.times)), 0) FROM ({left}) AS x JOIN ({right}) AS y ON x.v IS NOT DISTINCT FROM y.v"
    )[0][0]
    return float(common) / min(table.rows for table in tables)


def _can_be_key(pair: Pair) -> bool:
    return can_be_sorted(pair) and not _is_fraction(pair.column)


def can_be_sorted(pair: Pair) -> bool:
    """Tell whether the values of a column have a least and a greatest."""
    name = str(pair.column.type)
    return pair.column.values is not Values.TYPED or not (name.startswith(_NESTED) or name.endswith("]"))


def _is_fraction(column: Column) -> bool:
    return column.values is Values.TYPED and str(column.type).startswith(_FRACTIONS)
