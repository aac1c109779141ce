"""SQL that the ways of comparing rows share: joined expressions, and the first rows that differ as texts. Rows are read here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.regression.baselines.tables.equality import any_of, is_other
from pytest_golden.regression.baselines.tables.model import DifferingRow, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.equality import Equality
    from pytest_golden.regression.baselines.tables.model import Pair

SAMPLES = 10
# What DuckDB needs grows with the columns that are asked for at once, in planning more than in proportion.
_AT_ONCE = 1000
#: Of columns that look different, in a table that is asked for in parts: to plan more comparisons at once takes a gigabyte.
COUNTED_AT_ONCE = 250
_MANY = 100
_SHOWN_COLUMNS = 20
# More than is ever shown: redaction sees the end of what a cut would hide from it.
_MOST_CHARACTERS = 10_000
_T = TypeVar("_T")


def part(pairs: Sequence[_T], at_once: int = _AT_ONCE) -> list[Sequence[_T]]:
    """Part columns into as many as are asked for at once; there is always one part."""
    return [pairs[start : start + at_once] for start in range(0, len(pairs), at_once)] or [pairs]


def is_wide(pairs: Sequence[object]) -> bool:
    """Tell whether it is worth a query of its own to find out that nothing at all looks different."""
    return len(pairs) > _MANY


def find_others(engine: Engine, pairs: Sequence[Pair], named: Sequence[Pair], rest: str) -> Sequence[Pair]:
    """Give the columns in which anything looks different at all; `named` are the same as the SQL of `rest` calls them."""
    asked = ", ".join(f"coalesce(bool_or({is_other(pair)}), false)" for pair in named)
    found = engine.query(f"SELECT {asked} {rest}")[0]
    return [pair for pair, is_so in zip(pairs, found, strict=True) if is_so]


def spread(pairs: Sequence[Pair], some: Sequence[Pair], counts: Sequence[int]) -> tuple[int, ...]:
    """Give a count for each column, of which only some were counted."""
    known = {pair.label: count for pair, count in zip(some, counts, strict=True)}
    return tuple(known.get(pair.label, 0) for pair in pairs)


def as_text(expression: str) -> str:
    """Give an expression as text that may be cut."""
    return f"left({expression}::VARCHAR, {_MOST_CHARACTERS})"


def order_of(pair: Pair, expression: str) -> str:
    """Give what rows are sorted by: texts of numbers as numbers."""
    if pair.column.values is Values.TYPED:
        return expression
    return f"TRY_CAST({expression} AS DOUBLE) NULLS LAST, {expression}"


def count_by_column(pairs: Sequence[Pair], counts: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Give the columns that differ, those that do in most rows first."""
    found = [(pair.label, count) for pair, count in zip(pairs, counts, strict=True) if count]
    return tuple(sorted(found, key=lambda each: -each[1]))


def read_samples(
    engine: Engine,
    equality: Equality,
    places: Sequence[str],
    pairs: Sequence[Pair],
    counts: Sequence[int],
    rest: str,
) -> tuple[DifferingRow, ...]:
    """Read the first rows that differ.

    Args:
        engine: where to ask.
        equality: what differs.
        places: expressions for where a row is.
        pairs: the columns.
        counts: in how many rows each differs.
        rest: SQL from FROM to ORDER BY; `{differs}` stands for the condition.
    """
    differing = sorted((pair for pair in zip(counts, pairs, strict=True) if pair[0]), key=lambda each: -each[0])
    differing = differing[:_AT_ONCE]
    shown = [pair for _, pair in differing[:_SHOWN_COLUMNS]]
    condition = any_of([equality.differs(pair) for _, pair in differing])
    wanted = [as_text(place) for place in places]
    for pair in shown:
        wanted += [equality.differs(pair), as_text(pair.y), as_text(pair.x)]
    rows = engine.query(f"SELECT {', '.join(wanted)} {rest.replace('{differs}', condition)} LIMIT {SAMPLES}")
    return tuple(_sample(row, len(places), shown) for row in rows)


def _sample(row: tuple[Any, ...], places: int, shown: Sequence[Pair]) -> DifferingRow:
    cells = row[places:]
    values = ((pair.label, cells[3 * at + 1], cells[3 * at + 2]) for at, pair in enumerate(shown) if cells[3 * at])
    return DifferingRow(row[:places], tuple(values))
