"""Tells what rows that only one side has share, such as a status that a filter dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.compare.showing import quote_name
from pytest_golden.compare.tables.equality import as_text
from pytest_golden.compare.tables.model import Values
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Comparison
    from pytest_golden.compare.tables.model import Pair
    from pytest_golden.compare.tables.pairing import Pairing

_MOST_COLUMNS = 50
_MOST_VALUES = 3
_MOST_TOLD = 2
_NESTED = ("STRUCT", "MAP", "UNION", "BIT", "BLOB")


def describe_surplus(
    comparison: Comparison, pairing: Pairing, counts: tuple[int, int], pairs: Sequence[Pair]
) -> tuple[str, ...]:
    """Return one sentence for the rows of each side that the other lacks, if they share what no other row has.

    `counts` are those rows: only here, and only in the baseline.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = comparison.tables
    told = []
    sides = (
        (True, counts[0], baseline, "only here", "no row of the baseline has"),
        (False, counts[1], here, "only in the baseline", "no row here has"),
    )
    for is_here, count, others, whose, nobody in sides:
        if not count or not others.rows:
            continue
        found = _find_common(comparison, pairing, pairs, nobody, is_here=is_here)
        if found:
            subject = f"the {count_of(count, 'row')} {whose}" if count > 1 else f"the row {whose}"
            told.append(f"{subject} {'all have' if count > 1 else 'has'} {' and '.join(found[:_MOST_TOLD])}")
    return tuple(told)


def _find_common(
    comparison: Comparison, pairing: Pairing, pairs: Sequence[Pair], nobody: str, *, is_here: bool
) -> list[str]:
    """Return what the rows share, values first; `nobody` says which rows do not have them."""
    engine, cells = comparison.engine, comparison.cells
    able = [
        pair for pair in pairs if not str(pair.column.type).startswith(_NESTED) and str(pair.column.type)[-1:] != "]"
    ]
    able = able[:_MOST_COLUMNS]
    if not able:
        return []
    own, source, other, others = "x", pairing.left, "y", pairing.right
    if not is_here:
        own, source, other, others = other, others, own, source
    where = "t IS NULL" if is_here else "h IS NULL"
    keys = " AND ".join(f"{getattr(key, own)} IS NOT DISTINCT FROM w.k{at}" for at, key in enumerate(pairing.keys))
    alone = f"{source} SEMI JOIN (SELECT * FROM found WHERE e AND {where}) AS w ON {keys}"
    mine = _ask(engine, [getattr(pair, own) for pair in able], alone)
    theirs = _ask(engine, [getattr(pair, other) for pair in able], others)
    key_labels = {key.label for key in pairing.keys}
    exact, ranges = [], []
    for pair, one, its in zip(able, mine, theirs, strict=True):
        name = quote_name(cells.name(pair.label))
        filled, distinct, least, most, rows = one
        if not filled and its[0] == its[4]:
            exact.append(f"no {name}, which every other row has")
        elif filled == rows and 0 < distinct <= _MOST_VALUES and distinct < rows and pair.label not in key_labels:
            values = _read_values(engine, (getattr(pair, own), alone), (getattr(pair, other), others))
            if values is not None:
                shown = " or ".join(cells.show(pair.label, value) for value in values)
                exact.append(f"{name} = {shown}, which {nobody}")
        if filled == rows and its[0] and _is_beyond(pair, one, its) and pair.label not in key_labels:
            bounds = [cells.show(pair.label, str(value)) for value in (least, most, its[2], its[3])]
            ranges.append(f"{name} from {bounds[0]} to {bounds[1]}, the others from {bounds[2]} to {bounds[3]}")
    return [*exact, *ranges]


def _ask(engine: Engine, columns: Sequence[str], source: str) -> list[tuple[Any, ...]]:
    asked = ", ".join(
        f"count({column}), count(DISTINCT {column}), min({column})::VARCHAR, max({column})::VARCHAR, count(*)"
        for column in columns
    )
    answers = engine.query(f"SELECT {asked} FROM {source}")[0]
    return [answers[at : at + 5] for at in range(0, len(answers), 5)]


def _read_values(engine: Engine, own: tuple[str, str], others: tuple[str, str]) -> list[str | None] | None:
    """Return the values of the rows of one side, unless the other side has one of them."""
    mine, alone = own
    its, there = others
    rows = engine.query(f"SELECT DISTINCT {as_text(mine)} AS v FROM {alone} ORDER BY v LIMIT {_MOST_VALUES}")
    values = [row[0] for row in rows]
    listed = f"SELECT DISTINCT {mine} AS v FROM {alone}"
    is_there = engine.query(f"SELECT 1 FROM {there} SEMI JOIN ({listed}) AS l ON {its} = l.v LIMIT 1")
    return None if is_there else values


def _is_beyond(pair: Pair, one: Sequence[Any], its: Sequence[Any]) -> bool:
    """Tell whether all numbers or times are less than the least of the other side's, or greater than its greatest."""
    if pair.column.values is not Values.TYPED:
        return False
    kind = str(pair.column.type)
    if kind.startswith(("DATE", "TIMESTAMP")):
        return bool(one[3] < its[2] or one[2] > its[3])
    try:
        least, most, low, high = (float(each) for each in (one[2], one[3], its[2], its[3]))
    except ValueError:
        return False
    return most < low or least > high
