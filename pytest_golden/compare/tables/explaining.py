"""Explain how two tables differ: rows are paired and joined once, and each column that differs gets its figures.

Rows that only one side has are searched for what they share, such as a status that a filter dropped. All this follows a
comparison that found a difference, and decides nothing. What it finds is bounded, and redacted as it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.showing import quote_name
from pytest_golden.compare.tables.column_figures import read_figures
from pytest_golden.compare.tables.equality import any_of, as_text, order_of
from pytest_golden.compare.tables.model import Values
from pytest_golden.gateway.table_difference import ChangedCell, ChangedRow, PairedBy, TableDifference
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.cells import Cells
    from pytest_golden.compare.tables.column_figures import Change
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.equality import Comparison
    from pytest_golden.compare.tables.model import Pair
    from pytest_golden.compare.tables.pairing import Pairing
    from pytest_golden.gateway.table_difference import Place

MOST_COLUMNS = 20
_MOST_ROWS = 200
_MOST_BYTES = 60_000
_MOST_PLACES = 50
# More rows that differ are joined again where they are needed.
_MOST_HELD = 1_000_000
_LONGEST_CELL = 300
_MOST_PLACE_COLUMNS = 8
_WORD_BITS = 60
# Of rows that only one side has: columns that are searched, values that are named, and sentences.
_MOST_SEARCHED = 50
_MOST_VALUES = 3
_MOST_TOLD = 2
_NESTED = ("STRUCT", "MAP", "UNION", "BIT", "BLOB")


@dataclass(frozen=True, slots=True)
class Joined:
    """What one join of the paired rows found. The rows that differ are in the table `found`, with their keys and what differs.

    `counts` are the rows that differ, by column.
    """

    joined: int
    changed: int
    only_here: int
    only_baseline: int
    counts: tuple[int, ...]


def join_rows(comparison: Comparison, pairing: Pairing, pairs: Sequence[Pair]) -> Joined:
    """Join the paired rows, and keep those that differ in a table of DuckDB's: their keys alone, so that it stays small.

    All rows that are equal are counted as one group, so that one pass finds everything. A key that is not unique could join
    more rows than can ever be counted: one row more than both sides have is enough.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    engine, equality = comparison.engine, comparison.equality
    engine.keep_order(pairing.kind is not PairedBy.KEY)
    here, baseline = comparison.tables
    keys = [f"CASE WHEN x.here THEN {key.x} ELSE {key.y} END AS k{at}" for at, key in enumerate(pairing.keys)]
    differs = [f"{equality.differs(pair)} AS d{at}" for at, pair in enumerate(pairs)]
    inner = (
        f"SELECT x.here AS h, y.here AS t, {', '.join([*keys, *differs])}"
        f" FROM (SELECT true AS here, * FROM {pairing.left}) AS x"
        f" FULL OUTER JOIN (SELECT true AS here, * FROM {pairing.right}) AS y ON {pairing.met}"
        f" LIMIT {here.rows + baseline.rows + 1}"
    )
    flags = [f"d{at}" for at in range(len(pairs))]
    kept = [f"k{at}" for at in range(len(keys))]
    packed = [*("h", "t"), *(f"(h AND t AND {flag})" for flag in flags)]
    words = [_pack(packed[start : start + _WORD_BITS]) for start in range(0, len(packed), _WORD_BITS)]
    # Grouping by many columns would take as long as the join.
    told = [f"CASE WHEN e THEN {name} END AS {name}" for name in kept]
    told += [f"CASE WHEN e THEN {word} ELSE 0 END AS w{at}" for at, word in enumerate(words)]
    engine.query(
        f"CREATE OR REPLACE TEMP TABLE grouped AS SELECT {', '.join(told)}, count(*) AS times"
        f" FROM (SELECT *, (h IS NULL OR t IS NULL OR {any_of(flags)}) AS e FROM ({inner})) GROUP BY ALL"
    )
    named = [f"nullif({_unpack(at)}, false) AS {name}" for at, name in enumerate(("h", "t"))]
    named += [f"{_unpack(at)} AS {flag}" for at, flag in enumerate(flags, start=len(named))]
    engine.query(
        f"CREATE OR REPLACE TEMP VIEW found AS SELECT w0 <> 0 AS e, {', '.join([*named, *kept])}, times FROM grouped"
    )
    return _count(engine, pairs)


def _pack(conditions: Sequence[str]) -> str:
    """Write conditions as the bits of one whole number; NULL counts as false."""
    return " + ".join(f"coalesce({each}, false)::BIGINT * {1 << at}" for at, each in enumerate(conditions))


def _unpack(at: int) -> str:
    word, bit = divmod(at, _WORD_BITS)
    return f"((w{word} & {1 << bit}) <> 0)"


def _change(pair: Pair) -> str:
    """Write by how much a value changes: numbers, and times in seconds; NULL for all else."""
    x, y, kind = pair.x, pair.y, str(pair.column.type)
    if pair.column.values is not Values.TYPED:
        x, y = (f"""trim({side}, '"')""" for side in (x, y))
        return f"coalesce(TRY_CAST({x} AS DOUBLE) - TRY_CAST({y} AS DOUBLE), {_seconds(x, y)})"
    if kind.startswith(("DATE", "TIMESTAMP")):
        return _seconds(x, y)
    if kind.startswith(("DECIMAL", "FLOAT", "DOUBLE")) or kind.endswith(("INT", "INTEGER")):
        return f"({x})::DOUBLE - ({y})::DOUBLE"
    return "NULL::DOUBLE"


def _seconds(x: str, y: str) -> str:
    one, other = f"TRY_CAST({x} AS TIMESTAMP)", f"TRY_CAST({y} AS TIMESTAMP)"
    return f"CASE WHEN isfinite({one}) AND isfinite({other}) THEN (epoch({one}) - epoch({other}))::DOUBLE END"


def _count(engine: Engine, pairs: Sequence[Pair]) -> Joined:
    asked = ["sum(times)", "sum(times) FILTER (e AND h AND t)", "sum(times) FILTER (t IS NULL AND e)"]
    asked.append("sum(times) FILTER (h IS NULL AND e)")
    asked += [f"sum(times) FILTER (d{at})" for at in range(len(pairs))]
    joined, changed, only_here, only_baseline, *rest = engine.query(f"SELECT {', '.join(asked)} FROM found")[0]
    counts = tuple(int(count or 0) for count in rest)
    totals = [int(each or 0) for each in (joined, changed, only_here, only_baseline)]
    return Joined(totals[0], totals[1], totals[2], totals[3], counts)


def explain(comparison: Comparison, pairing: Pairing, joined: Joined, pairs: Sequence[Pair]) -> TableDifference:
    """Tell what the join found: the figures of the columns that differ, the first rows, and what rows of one side share.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = comparison.tables
    cells = comparison.cells
    differing = sorted((at for at, count in enumerate(joined.counts) if count), key=lambda at: -joined.counts[at])
    shown = differing[:MOST_COLUMNS]
    changes = _gather_changed(comparison.engine, pairing, pairs, shown, joined.changed) if shown else ()
    both = joined.joined - joined.only_here - joined.only_baseline
    names = tuple(key.label for key in pairing.keys[:_MOST_PLACE_COLUMNS])
    return TableDifference(
        baseline.rows,
        here.rows,
        joined.changed,
        joined.only_here,
        joined.only_baseline,
        pairing.kind,
        tuple(cells.name(name) for name in names),
        columns=read_figures(
            comparison,
            [(pairs[at], joined.counts[at], change) for at, change in zip(shown, changes, strict=True)],
            both,
        ),
        columns_changed=len(differing),
        changed_rows=_read_rows(comparison, pairing, [pairs[at] for at in shown]) if shown else (),
        added_places=_read_places(comparison, pairing, "t IS NULL") if joined.only_here else (),
        removed_places=_read_places(comparison, pairing, "h IS NULL") if joined.only_baseline else (),
        notes=describe_surplus(comparison, pairing, (joined.only_here, joined.only_baseline), pairs),
    )


def _order(pairing: Pairing) -> str:
    return ", ".join(order_of(key, f"k{at}") for at, key in enumerate(pairing.keys))


def _gather_changed(
    engine: Engine, pairing: Pairing, pairs: Sequence[Pair], shown: Sequence[int], rows: int
) -> list[Change]:
    """Bring the values of the rows that differ together; return the least and greatest change of each column."""
    met = [
        " AND ".join(f"w.k{at} IS NOT DISTINCT FROM {getattr(key, side)}" for at, key in enumerate(pairing.keys))
        for side in "xy"
    ]
    wanted = [f"w.k{at}" for at in range(len(pairing.keys))]
    for at, place in enumerate(shown):
        wanted += [f"w.d{place} AS d{at}", f"{pairs[place].x} AS x{at}", f"{pairs[place].y} AS y{at}"]
    held = "TABLE" if rows <= _MOST_HELD else "VIEW"
    engine.query(
        f"CREATE TEMP {held} changed AS SELECT {', '.join(wanted)} FROM {pairing.left}"
        f" JOIN (SELECT * FROM found WHERE e AND h AND t) AS w ON {met[0]} JOIN {pairing.right} ON {met[1]}"
    )
    asked = []
    for at, place in enumerate(shown):
        change = f"CASE WHEN d{at} THEN {_change(_within_changed(pairs[place], at))} END"
        asked += [f"min({change})", f"max({change})", f"count({change}) = count(*) FILTER (d{at})"]
    answers = engine.query(f"SELECT {', '.join(asked)} FROM changed")[0]
    return list(zip(answers[::3], answers[1::3], answers[2::3], strict=True))


def _within_changed(pair: Pair, at: int) -> Pair:
    return replace(pair, x=f"x{at}", y=f"y{at}")


def _read_rows(comparison: Comparison, pairing: Pairing, shown: Sequence[Pair]) -> tuple[ChangedRow, ...]:
    """Read the first rows that differ."""
    names = [key.label for key in pairing.keys[:_MOST_PLACE_COLUMNS]]
    wanted = [as_text(f"k{at}") for at in range(len(names))]
    for at in range(len(shown)):
        wanted += [f"d{at}", as_text(f"y{at}"), as_text(f"x{at}")]
    first = f"(SELECT * FROM changed ORDER BY {_order(pairing)} LIMIT {_MOST_ROWS})"
    rows = comparison.engine.query(f"SELECT {', '.join(wanted)} FROM {first} ORDER BY {_order(pairing)}")
    return tuple(_bound(_make_row(row, names, shown, comparison.cells) for row in rows))


def _make_row(row: Sequence[Any], names: Sequence[str], shown: Sequence[Pair], cells: Cells) -> ChangedRow:
    values = row[len(names) :]
    changed = tuple(
        ChangedCell(
            cells.name(pair.label),
            *cells.pair(pair.label, values[3 * at + 1], values[3 * at + 2], _LONGEST_CELL),
        )
        for at, pair in enumerate(shown)
        if values[3 * at]
    )
    return ChangedRow(cells.place(names, row[: len(names)]), changed)


def _bound(rows: Any) -> Any:
    room = _MOST_BYTES
    for row in rows:
        texts = [*row.place, *(text for cell in row.cells for text in (cell.column, cell.before, cell.after))]
        room -= sum(len((text or "").encode("utf-8", "replace")) + 8 for text in texts)
        if room < 0:
            return
        yield row


def _read_places(comparison: Comparison, pairing: Pairing, where: str) -> tuple[Place, ...]:
    names = [key.label for key in pairing.keys[:_MOST_PLACE_COLUMNS]]
    wanted = ", ".join(as_text(f"k{at}") for at in range(len(names)))
    rows = comparison.engine.query(
        f"SELECT {wanted} FROM found WHERE e AND {where} ORDER BY {_order(pairing)} LIMIT {_MOST_PLACES}"
    )
    return tuple(comparison.cells.place(names, row) for row in rows)


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
    able = able[:_MOST_SEARCHED]
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
