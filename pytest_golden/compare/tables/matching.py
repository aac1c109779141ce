"""Matches the columns of a table with those of its baseline: by name, and renamed ones by their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from pytest_golden.compare.tables.duckdb_engine import QueryError
from pytest_golden.compare.tables.equality import canonical
from pytest_golden.compare.tables.model import Format, Pair, Values

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Column, Table

# A column was renamed if this share of its values is found under the new name, each as often.
_LEAST_SHARE = 0.9
_MOST_LOOKED_AT = 20
_MOST_ROWS = 5_000_000


@dataclass(frozen=True, slots=True)
class Match:
    """The columns of two tables. `pairs` can be compared; the others are on one side only, or have two types.

    `moved` are the names from the first to the last column whose place changed: here, and in the baseline.
    """

    pairs: tuple[Pair, ...]
    added: tuple[Column, ...] = ()
    removed: tuple[Column, ...] = ()
    renamed: tuple[tuple[Column, Column], ...] = ()
    retyped: tuple[tuple[Column, Column], ...] = ()
    moved: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def is_same(self) -> bool:
        """Tell whether both have the same columns."""
        return not (self.added or self.removed or self.renamed or self.retyped or self.moved[0])


def match_columns(here: Table, baseline: Table, ignored: Collection[str]) -> Match:
    """Match columns by their names; pairs are in the output's order."""
    mine = [column for column in here.columns if column.name not in ignored]
    theirs = {column.label: column for column in baseline.columns if column.name not in ignored}
    shared = [(column, theirs[column.label]) for column in mine if column.label in theirs]
    labels = {column.label for column in mine}
    is_moved = here.format is not Format.JSON_LINES
    return Match(
        tuple(_pair(one, other) for one, other in shared if _is_of_one_type(one, other)),
        tuple(column for column in mine if column.label not in theirs),
        tuple(column for label, column in theirs.items() if label not in labels),
        retyped=tuple((one, other) for one, other in shared if not _is_of_one_type(one, other)),
        moved=_find_moved([one.label for one, _ in shared], [*theirs], labels) if is_moved else ((), ()),
    )


def _find_moved(
    mine: Sequence[str], theirs: Sequence[str], labels: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    shared = [label for label in theirs if label in labels]
    places = [at for at, (one, other) in enumerate(zip(mine, shared, strict=True)) if one != other]
    if not places:
        return (), ()
    first, last = places[0], min(places[-1] + 1, places[0] + 10)
    return tuple(mine[first:last]), tuple(shared[first:last])


def find_renamed(engine: Engine, match: Match, tables: tuple[Table, Table]) -> Match:
    """Pair columns that only one side has by their values; the pairs get the output's name.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    if (
        not (match.added and match.removed and here.rows and baseline.rows)
        or max(here.rows, baseline.rows) > _MOST_ROWS
    ):
        return match
    found = []
    for one in match.added[:_MOST_LOOKED_AT]:
        for other in match.removed[:_MOST_LOOKED_AT]:
            if _is_of_one_type(one, other):
                alike = SequenceMatcher(None, one.label.lower(), other.label.lower()).ratio()
                found.append((_share_values(engine, one, other, tables), alike, one, other))
    renamed: list[tuple[Column, Column]] = []
    for share, _, one, other in sorted(found, key=lambda each: each[:2], reverse=True):
        if share >= _LEAST_SHARE and not any(one is mine or other is its for mine, its in renamed):
            renamed.append((one, other))
    renamed.sort(key=lambda each: each[0].place)
    pairs = sorted((*match.pairs, *(_pair(*each) for each in renamed)), key=lambda pair: pair.column.place)
    return replace(
        match,
        pairs=tuple(pairs),
        renamed=tuple(renamed),
        added=tuple(column for column in match.added if not any(column is one for one, _ in renamed)),
        removed=tuple(column for column in match.removed if not any(column is other for _, other in renamed)),
    )


def _share_values(engine: Engine, one: Column, other: Column, tables: tuple[Table, Table]) -> float:
    """Return which part of the smaller table's values stand in the other column as well; nulls alone are not values."""
    left, right = (
        f"SELECT v, count(*) AS times FROM (SELECT {canonical(column, f't.c{column.place}')} AS v"
        f" FROM {table.scan('t')}) GROUP BY v"
        for column, table in zip((one, other), tables, strict=True)
    )
    shared, valued = engine.query(
        f"SELECT coalesce(sum(least(x.times, y.times)), 0), count(x.v) FROM ({left}) AS x JOIN ({right}) AS y"
        " ON x.v IS NOT DISTINCT FROM y.v"
    )[0]
    return float(shared) / min(table.rows for table in tables) if valued else 0.0


def compare_as_texts(engine: Engine, match: Match) -> Match:
    """Let columns that are of another type be compared all the same: numbers as numbers, others as they are written."""
    if not match.retyped:
        return match
    pairs = list(match.pairs)
    for one, other in match.retyped:
        are_numbers = all(_is_number(column) for column in (one, other))
        pairs.append(_cast(engine, _pair(one, other), "DOUBLE" if are_numbers else "VARCHAR"))
    return replace(match, pairs=tuple(sorted(pairs, key=lambda pair: pair.column.place)))


def make_comparable(engine: Engine, key: Pair, baseline: Column, tables: tuple[Table, Table]) -> Pair:
    """Return a column of a key so that DuckDB can compare both sides: as texts, if one side has another type.

    Raises:
        QueryError: DuckDB cannot answer.
    """
    if str(key.column.type) == str(baseline.type):
        return key
    here, there = tables
    try:
        engine.describe(f"SELECT CASE WHEN true THEN {key.x} ELSE {key.y} END FROM {here.scan('x')}, {there.scan('y')}")
    except QueryError:
        return _cast(engine, key, "VARCHAR")
    return key


def _cast(engine: Engine, pair: Pair, name: str) -> Pair:
    ((_, kind),) = engine.describe(f"SELECT NULL::{name}")
    return replace(pair, x=f"{pair.x}::{name}", y=f"{pair.y}::{name}", column=replace(pair.column, type=kind))


def _is_number(column: Column) -> bool:
    name = str(column.type)
    return name.startswith(("DECIMAL", "FLOAT", "DOUBLE")) or name.endswith("INT") or name == "INTEGER"


def _is_of_one_type(one: Column, other: Column) -> bool:
    return one.values is other.values and (one.values is not Values.TYPED or str(one.type) == str(other.type))


def _pair(here: Column, baseline: Column) -> Pair:
    return Pair(here.label, f"x.c{here.place}", f"y.c{baseline.place}", here)
