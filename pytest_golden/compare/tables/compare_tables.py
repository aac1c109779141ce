"""Compares one table with its baseline: the number of rows, the columns, and then the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from pytest_golden.compare.opening import Content, Mismatch, Side, UnreadableError
from pytest_golden.compare.showing import compose, describe_broken, quote_name, quote_names
from pytest_golden.compare.tables import rows
from pytest_golden.compare.tables.cells import Cells
from pytest_golden.compare.tables.duckdb_engine import DuckDBUnusableError, QueryError, describe_trouble, open_engine
from pytest_golden.compare.tables.equality import (
    NUMBER,
    WHOLE_NUMBER,
    Comparison,
    Equality,
    holds_numbers,
    is_wide,
    part,
)
from pytest_golden.compare.tables.formats import read_table, read_whole
from pytest_golden.compare.tables.matching import compare_as_texts, find_renamed, make_comparable, match_columns
from pytest_golden.compare.tables.model import (
    KeyRepeatedError,
    Pair,
    RulesBrokenError,
    Table,
    TablesDifferError,
    Values,
)
from pytest_golden.compare.tables.profiles import compare_profiles, find_ignored, make_profile, read_profile
from pytest_golden.compare.tables.row_causes import compare_keyed, explain_repeated, explain_without_key
from pytest_golden.compare.tables.telling import describe, describe_place, list_difference
from pytest_golden.compare.tables.value_rules import check_row_count, check_values
from pytest_golden.gateway.table_difference import RenamedColumn, RetypedColumn, TableDifference
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import count_of, name_some

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.matching import Match
    from pytest_golden.compare.tables.profiles import Profile
    from pytest_golden.manifest.model import DeclaredOutput


# A text column is of the first of these kinds that all its values are of.
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
_MOST_TYPES = 3
_ABOUT_PROFILES = "the baseline is a profile, since the table is large: `golden diff` shows which rows a change alters"


def compare_tables(
    declared: DeclaredOutput,
    actual: Content,
    baseline: Content | None,
    *,
    shown_as: str,
    redact: Redact,
    warn: Callable[[str], None],
    known_key: Sequence[str] = (),
) -> Mismatch | None:
    """Compare a table with its baseline by the rules that are declared for it.

    Without a baseline only that is checked which needs none: the table can be read, its key is unique, its rows are within
    bounds. `warn` is told of numbers that are written otherwise and equal. `known_key` is used where no key is declared, if it
    is one of the baseline.

    Raises:
        UnreadableError: one of them cannot be read as a table.
        GoldenError: DuckDB is not installed, or cannot be opened.
    """
    cells = Cells(redact)
    try:
        with open_engine() as engine:
            written = _compare(engine, declared, actual, baseline, cells, known_key)
            if written:
                warn(f"{shown_as}: {written}")
    except DuckDBUnusableError as error:
        raise DuckDBUnusableError(f"{shown_as} cannot be compared as a table: {error}") from None
    except RulesBrokenError as error:
        return Mismatch(ReasonKind.RULE_BROKEN, describe_broken(shown_as, error.broken))
    except KeyRepeatedError as error:
        headline, details = describe_repeated(error, cells)
        return Mismatch(ReasonKind.OUTPUT_DIFFERS, compose(f"{shown_as} {headline}", details))
    except TablesDifferError as error:
        message = compose(f"{shown_as} {error}", error.details)
        return Mismatch(ReasonKind.OUTPUT_DIFFERS, message, error.difference)
    return None


def _compare(
    engine: Engine,
    declared: DeclaredOutput,
    actual: Content,
    baseline: Content | None,
    cells: Cells,
    known_key: Sequence[str],
) -> str:
    """Compare two tables; return what is to be said of tables that are equal.

    Raises:
        TablesDifferError: they differ.
    """
    own, accepted = (
        read_profile(engine, each) if each is not None and declared.is_of_tables else None
        for each in (actual, baseline)
    )
    here = own.table if own is not None else _read_output(engine, declared, actual, cells)
    if own is None and (baseline is None or accepted is not None):
        _check_key(engine, declared, here)
    if baseline is None:
        return ""
    there = accepted.table if accepted is not None else read_table(engine, baseline, header=declared.header)
    check_row_count(declared, here, there)
    if own is None and accepted is None:
        return _compare_whole(engine, declared, (here, there), cells, known_key)
    ignored = find_ignored(declared)
    now, was = (one or make_profile(engine, table, ignored) for one, table in ((own, here), (accepted, there)))
    _compare_profiles(declared, now, was, cells)
    return ""


def _read_output(engine: Engine, declared: DeclaredOutput, actual: Content, cells: Cells) -> Table:
    """Read an output, and check it by the rules on its rows and values."""
    here = read_table(engine, actual, header=declared.header)
    _check_row_range(declared, here)
    _check_tolerance(declared, here)
    try:
        check_values(engine, declared, here, cells)
    except QueryError as error:
        raise UnreadableError(here.side, describe_trouble(error, here.format, None)) from None
    return here


def _compare_whole(
    engine: Engine, declared: DeclaredOutput, tables: tuple[Table, Table], cells: Cells, known_key: Sequence[str]
) -> str:
    here, there = tables
    if here.delimiter and there.delimiter and here.delimiter != there.delimiter:
        raise TablesDifferError(f"has fields parted by {here.delimiter!r}, its baseline by {there.delimiter!r}")
    match = match_columns(here, there, set(declared.ignore_columns) - set(declared.key))
    comparison = Comparison(engine, Equality(declared, arrow_lambdas=engine.arrow_lambdas), tables, cells)
    try:
        if not match.is_same:
            match = find_renamed(engine, match, tables)
        names = declared.key or _confirm_key(engine, declared, known_key, there)
        keys = _find_key_pairs(engine, names, match, tables)
        if declared.schema_only:
            compare_kinds(engine, match.pairs, here, there)
            found, at_least = None, False
        else:
            match = compare_as_texts(engine, match)
            found, at_least = _compare_rows(comparison, declared, keys, match.pairs)
        if found is None and match.is_same:
            return "" if declared.schema_only else _find_other_writing(comparison, match.pairs)
    except QueryError as error:
        _blame(engine, tables, error)
    found = _add_columns(found or TableDifference(there.rows, here.rows), match, cells)
    raise TablesDifferError(_headline(found, at_least=at_least, match=match), tuple(list_difference(found)), found)


def _compare_profiles(declared: DeclaredOutput, here: Profile, baseline: Profile, cells: Cells) -> None:
    """Compare a table with the profile that is kept of its baseline.

    Raises:
        TablesDifferError: they differ.
        UnreadableError: they were made by other rules.
    """
    differing = compare_profiles(declared, here, baseline, cells)
    grown = here.rows - baseline.rows
    if differing.match.is_same and not differing.rows_changed and (declared.schema_only or not grown):
        return
    found = TableDifference(
        baseline.rows,
        here.rows,
        differing.rows_changed,
        max(0, grown),
        max(0, -grown),
        notes=(*differing.notes, _ABOUT_PROFILES),
    )
    found = _add_columns(found, differing.match, cells)
    headline = _headline(found, at_least=bool(differing.rows_changed), match=differing.match)
    named = f" in {quote_names([cells.name(name) for name in differing.changed])}" if differing.changed else ""
    raise TablesDifferError(f"{headline}{named}", tuple(list_difference(found)), found)


def _headline(found: TableDifference, *, at_least: bool, match: Match) -> str:
    told = describe(found, at_least=at_least)
    if match.moved[0]:
        told = f"its columns are in another order{f'; {told}' if told else ''}"
    return f"differs from its baseline: {told}"


def _find_other_writing(comparison: Comparison, pairs: Sequence[Pair]) -> str:
    """Name the columns of texts that are equal as numbers, and of another length: `33.0` and `33`."""
    texts = [pair for pair in pairs if pair.column.values is Values.TEXT]
    if not texts or not comparison.equality.is_exact or is_wide(texts):
        return ""
    now, was = (
        comparison.engine.query(
            f"SELECT {', '.join(f'sum(strlen({getattr(pair, alias)}))' for pair in texts)} FROM {table.scan(alias)}"
        )[0]
        for alias, table in zip("xy", comparison.tables, strict=True)
    )
    other = [comparison.cells.name(pair.label) for pair, x, y in zip(texts, now, was, strict=True) if x != y]
    return (
        f"numbers of {quote_names(other)} are written differently than in the baseline, but are equal" if other else ""
    )


def _add_columns(found: TableDifference, match: Match, cells: Cells) -> TableDifference:
    """Add what differs in the columns themselves."""
    moved = match.moved
    notes = (f"columns here: {quote_names(moved[0])}", f"in the baseline: {quote_names(moved[1])}") if moved[0] else ()
    return replace(
        found,
        columns_added=tuple(cells.name(column.label) for column in match.added),
        columns_removed=tuple(cells.name(column.label) for column in match.removed),
        columns_renamed=tuple(
            RenamedColumn(cells.name(other.label), cells.name(one.label)) for one, other in match.renamed
        ),
        columns_retyped=tuple(
            RetypedColumn(cells.name(one.label), str(other.type), str(one.type)) for one, other in match.retyped
        ),
        notes=(*map(cells.redact, notes), *found.notes),
    )


def _find_key_pairs(
    engine: Engine, names: Sequence[str], match: Match, tables: tuple[Table, Table]
) -> tuple[Pair, ...]:
    """Return the columns of the key on both sides; one that was renamed is found by its values.

    Raises:
        TablesDifferError: a side has no such column, or more than one of that name.
        QueryError: DuckDB cannot answer.
    """
    here, baseline = tables
    renamed = {other.name: one.name for one, other in match.renamed}
    mine = find_keys([renamed.get(name, name) for name in names], here)
    theirs = find_keys(names, baseline)
    return tuple(
        make_comparable(engine, Pair(one.label, one.x, other.y, one.column), other.column, tables)
        for one, other in zip(mine, theirs, strict=True)
    )


def _confirm_key(engine: Engine, declared: DeclaredOutput, names: Sequence[str], baseline: Table) -> Sequence[str]:
    """Return the key that an engine claims for a table, if it is unique in the baseline and no column of it is ignored; else none."""
    if not set(names).isdisjoint(declared.ignore_columns):
        return ()
    try:
        keys = find_keys(names, baseline)
        if keys:
            rows.check_unique(engine, keys, baseline)
    except (KeyRepeatedError, TablesDifferError):
        return ()
    return names


def _check_row_range(declared: DeclaredOutput, table: Table) -> None:
    rows = count_of(table.rows, "row")
    if declared.min_rows is not None and table.rows < declared.min_rows:
        raise TablesDifferError(f"has {rows}, less than min_rows: {declared.min_rows}")
    if declared.max_rows is not None and table.rows > declared.max_rows:
        raise TablesDifferError(f"has {rows}, more than max_rows: {declared.max_rows}")


def _check_tolerance(declared: DeclaredOutput, table: Table) -> None:
    """Refuse a tolerance for one table whose columns have types, none of them of numbers: it would never apply."""
    tolerances = [name for name in ("absolute_tolerance", "relative_tolerance") if getattr(declared, name)]
    names_many = bool(declared.tables or declared.dbt) or any(sign in (declared.path or "") for sign in "*?[{")
    columns = [column for column in table.columns if column.name not in declared.ignore_columns]
    if not tolerances or names_many or not columns:
        return
    if not any(column.values is not Values.TYPED or holds_numbers(column.type) for column in columns):
        types = name_some([f"{quote_name(column.label)} is {column.type}" for column in columns], _MOST_TYPES)
        raise RulesBrokenError([f"{tolerances[0]} is for numbers, and no column holds any ({types}): remove it"])


def _check_key(engine: Engine, declared: DeclaredOutput, table: Table) -> None:
    keys = find_keys(declared.key, table)
    try:
        if keys:
            rows.check_unique(engine, keys, table)
    except QueryError as error:
        raise UnreadableError(table.side, describe_trouble(error, table.format, None)) from None


def _compare_rows(
    comparison: Comparison, declared: DeclaredOutput, keys: tuple[Pair, ...], pairs: tuple[Pair, ...]
) -> tuple[TableDifference | None, bool]:
    """Return what differs in the rows, None if nothing does, and whether more rows may differ than were counted."""
    if keys:
        places = {key.x for key in keys}
        rest = [pair for pair in pairs if pair.x not in places]
        try:
            return compare_keyed(comparison, keys, rest)
        except KeyRepeatedError as error:
            headline, examples = describe_repeated(error, comparison.cells)
            told = explain_repeated(comparison, keys, rest, error)
            raise TablesDifferError(headline, (*list_difference(told), *examples), told) from None
    unordered = declared.unordered or declared.is_of_tables
    compare = rows.compare_unordered if unordered else rows.compare_by_position
    found = compare(comparison.engine, comparison.equality, pairs, comparison.tables)
    if not found:
        return None, False
    return explain_without_key(comparison, found, pairs, unordered=unordered), found.at_least


def _blame(engine: Engine, tables: tuple[Table, Table], error: QueryError) -> NoReturn:
    """Find which file cannot be read.

    Raises:
        UnreadableError: always.
    """
    for table in tables:
        read_whole(engine, table)
    raise UnreadableError(Side.OUTPUT, describe_trouble(error, tables[0].format, None)) from None


def find_keys(names: Sequence[str], table: Table) -> tuple[Pair, ...]:
    """Return the key's columns of one table.

    Raises:
        TablesDifferError: it has no such column, or more than one of that name.
    """
    found = []
    whose = "has" if table.side is Side.OUTPUT else "has a baseline with"
    for name in names:
        columns = [column for column in table.columns if column.name == name]
        called = f"{quote_name(name)}, which is its key"
        if not columns:
            present = quote_names([column.label for column in table.columns]) if table.columns else "none"
            raise TablesDifferError(f"{whose} no column {called}", (f"  columns: {present}",))
        if len(columns) > 1:
            raise TablesDifferError(f"{whose} {count_of(len(columns), 'column')} called {called}")
        found.append(Pair(columns[0].label, f"x.c{columns[0].place}", f"y.c{columns[0].place}", columns[0]))
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


def describe_repeated(error: KeyRepeatedError, cells: Cells) -> tuple[str, tuple[str, ...]]:
    """Say whose key is not unique, and below it how often some of them stand."""
    whose = "has" if error.side is Side.OUTPUT else "has a baseline with"
    told = ((cells.hide_all(error.names, row[:-1]), row[-1]) for row in error.repeated)
    examples = tuple(f"  {describe_place(error.names, place)} occurs {times:,} times" for place, times in told)
    return f"{whose} a key that is not unique: {quote_names(error.names)}", examples
