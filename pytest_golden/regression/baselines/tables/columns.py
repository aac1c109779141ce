"""Which columns of two tables belong together, and what differs between the columns themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import Side
from pytest_golden.regression.baselines.showing import count_of
from pytest_golden.regression.baselines.tables.equality import NUMBER, WHOLE_NUMBER
from pytest_golden.regression.baselines.tables.model import Format, Pair, Table, TablesDifferError, Values
from pytest_golden.regression.baselines.tables.sampling import part
from pytest_golden.regression.baselines.tables.wording import quote_name, quote_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.model import Column

# In this order: the first that all values of a text column are.
_TEXT_KINDS = {
    "whole numbers": f"regexp_full_match({{c}}, '{WHOLE_NUMBER}')",
    "numbers": f"regexp_full_match({{c}}, '{NUMBER}|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?')",
    "booleans": "lower({c}) IN ('true', 'false')",
    "dates": "regexp_full_match({c}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "times": "regexp_full_match({c}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}.*')",
}
_JSON_KINDS = {
    "numbers": f"regexp_full_match({{c}}, '{NUMBER}')",
    "booleans": "{c} IN ('true', 'false')",
    "texts": "starts_with({c}, '\"')",
    "arrays": "starts_with({c}, '[')",
    "objects": "starts_with({c}, '{{')",
}


def pair_columns(here: Table, baseline: Table, ignored: Collection[str]) -> tuple[Pair, ...]:
    """Give the columns that both have, in the output's order.

    Raises:
        TablesDifferError: one is missing, new, of another type or at another place.
    """
    mine = [column for column in here.columns if column.name not in ignored]
    theirs = {column.label: column for column in baseline.columns if column.name not in ignored}
    details = list(_list_other_columns(mine, theirs))
    if details:
        types = [column.label for column in mine if _is_of_another_type(column, theirs)]
        told = f"has another type of column than its baseline: {quote_names(types)}"
        is_type_alone = len(types) == len(details)
        raise TablesDifferError(told if is_type_alone else "has other columns than its baseline", tuple(details))
    if here.format is not Format.JSON_LINES and [column.label for column in mine] != list(theirs):
        places = [at for at, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one.label != other]
        first, last = places[0], min(places[-1] + 1, places[0] + 10)
        raise TablesDifferError(
            "has its columns in another order than its baseline",
            (
                f"  here, from column {first + 1}: {quote_names([column.label for column in mine][first:last])}",
                f"  in the baseline: {quote_names(list(theirs)[first:last])}",
            ),
        )
    return tuple(_pair(column, theirs[column.label]) for column in mine)


def find_keys(names: Sequence[str], table: Table) -> tuple[Pair, ...]:
    """Give the key's columns of one table.

    Raises:
        TablesDifferError: it has no such column, or more than one of that name.
    """
    found = []
    whose = "has" if table.side is Side.OUTPUT else "has a baseline with"
    for name in names:
        columns = [column for column in table.columns if column.name == name]
        if not columns:
            present = quote_names([column.label for column in table.columns]) if table.columns else "none"
            raise TablesDifferError(
                f"{whose} no column {quote_name(name)}, which is its key", (f"  columns: {present}",)
            )
        if len(columns) > 1:
            raise TablesDifferError(
                f"{whose} {count_of(len(columns), 'column')} called {quote_name(name)}, which is its key"
            )
        found.append(_pair(columns[0], columns[0]))
    return tuple(found)


def compare_kinds(engine: Engine, pairs: Sequence[Pair], here: Table, baseline: Table) -> None:
    """Compare what the values of untyped columns look like; a column without values looks like any.

    Raises:
        TablesDifferError: a column's values are of another kind.
        QueryError: DuckDB cannot answer.
    """
    untyped = [pair for pair in pairs if pair.column.values is not Values.TYPED]
    if not untyped:
        return
    now, was = (
        [kind for some in part(untyped) for kind in _look_like(engine, some, table, alias)]
        for alias, table in (("x", here), ("y", baseline))
    )
    details = tuple(
        f"  {quote_name(pair.label)}: {mine} here, {other} in the baseline"
        for pair, mine, other in zip(untyped, now, was, strict=True)
        if mine and other and mine != other
    )
    if details:
        raise TablesDifferError("has other kinds of values in its columns than its baseline", details)


def _look_like(engine: Engine, pairs: Sequence[Pair], table: Table, alias: str) -> list[str | None]:
    kinds = _JSON_KINDS if pairs[0].column.values is Values.JSON else _TEXT_KINDS
    asked = []
    for column in (getattr(pair, alias) for pair in pairs):
        asked.append(f"count({column})")
        asked += [f"coalesce(bool_and({test.format(c=column)}), false)" for test in kinds.values()]
    answers = engine.query(f"SELECT {', '.join(asked)} FROM {table.scan(alias)}")[0]
    width = len(kinds) + 1
    found: list[str | None] = []
    for start in range(0, len(answers), width):
        count, *holds = answers[start : start + width]
        name = next((kind for kind, is_so in zip(kinds, holds, strict=True) if is_so), "texts")
        found.append(name if count else None)
    return found


def _list_other_columns(mine: Sequence[Column], theirs: dict[str, Column]) -> Iterator[str]:
    labels = {column.label for column in mine}
    missing = [label for label in theirs if label not in labels]
    new = [column.label for column in mine if column.label not in theirs]
    if missing:
        yield f"  missing: {quote_names(missing)}"
    if new:
        yield f"  additional: {quote_names(new)}"
    for column in mine:
        if _is_of_another_type(column, theirs):
            other = theirs[column.label].type
            yield f"  {quote_name(column.label)} is of another type: {column.type} here, {other} in the baseline"


def _is_of_another_type(column: Column, theirs: dict[str, Column]) -> bool:
    return column.label in theirs and str(column.type) != str(theirs[column.label].type)


def _pair(here: Column, baseline: Column) -> Pair:
    return Pair(here.label, f"x.c{here.place}", f"y.c{baseline.place}", here)
