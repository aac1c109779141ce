"""One table compared with its baseline: what can differ, in the order in which it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from pytest_golden.regression.baselines.model import Content, Mismatch, Side, UnreadableError
from pytest_golden.regression.baselines.showing import compose, count_of
from pytest_golden.regression.baselines.tables.columns import compare_kinds, find_keys, pair_columns
from pytest_golden.regression.baselines.tables.engine import (
    DuckDBMissingError,
    DuckDBRefusedError,
    QueryError,
    open_engine,
)
from pytest_golden.regression.baselines.tables.equality import Equality
from pytest_golden.regression.baselines.tables.keyed import check_unique, compare_by_key
from pytest_golden.regression.baselines.tables.model import KeyRepeatedError, TablesDifferError, Tolerance
from pytest_golden.regression.baselines.tables.positional import compare_by_position
from pytest_golden.regression.baselines.tables.reading import read_table, read_whole
from pytest_golden.regression.baselines.tables.sampling import is_wide
from pytest_golden.regression.baselines.tables.troubles import describe_trouble
from pytest_golden.regression.baselines.tables.unordered import compare_unordered, count_as_multisets
from pytest_golden.regression.baselines.tables.wording import Cells, describe_repeated, describe_rows, list_differences
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.manifest.model import DeclaredOutput
    from pytest_golden.regression.baselines.showing import Redact
    from pytest_golden.regression.baselines.tables.engine import Engine
    from pytest_golden.regression.baselines.tables.model import Pair, RowDifferences, Table

# What else could be said of tables in another order is looked for up to so many rows, and not in wide ones.
_MOST_LOOKED_AT = 1_000_000


def compare_tables(
    declared: DeclaredOutput, actual: Path, baseline: Path | None, *, shown_as: str, redact: Redact = str
) -> Mismatch | None:
    """Compare a table with its baseline by the rules that are declared for it.

    Without a baseline only what needs none is looked at: the table can be read, its key holds, so many rows are in it.
    What is in the files is never raised, only told.

    Raises:
        DuckDBMissingError: it is not installed.
        DuckDBRefusedError: it cannot be opened.
    """
    try:
        with open_engine() as engine:
            _compare(engine, declared, actual, baseline, Cells(redact))
    except DuckDBMissingError as error:
        raise DuckDBMissingError(f"{shown_as} is to be compared as a table, which {error}") from None
    except DuckDBRefusedError as error:
        raise DuckDBRefusedError(f"{shown_as} cannot be compared as a table: {error}") from None
    except UnreadableError as error:
        if error.side is Side.OUTPUT:
            return Mismatch(ReasonKind.OUTPUT_UNREADABLE, compose(redact(f"{shown_as} {error}")))
        return Mismatch(ReasonKind.BASELINE_UNREADABLE, compose(redact(f"the baseline of {shown_as} {error}")))
    except KeyRepeatedError as error:
        headline, details = describe_repeated(error, Cells(redact))
        return Mismatch(ReasonKind.OUTPUT_DIFFERS, compose(f"{shown_as} {headline}", details))
    except TablesDifferError as error:
        return Mismatch(ReasonKind.OUTPUT_DIFFERS, compose(f"{shown_as} {error}", error.details))
    return None


def _compare(engine: Engine, declared: DeclaredOutput, actual: Path, baseline: Path | None, cells: Cells) -> None:
    here = read_table(engine, Content(actual, Side.OUTPUT))
    _check_row_range(declared, here)
    if baseline is None:
        _check_alone(engine, declared, here)
        return
    there = read_table(engine, Content(baseline, Side.BASELINE))
    tables = (here, there)
    _check_delimiters(here, there)
    _ = find_keys(declared.key, here), find_keys(declared.key, there)
    pairs = pair_columns(here, there, set(declared.ignore_columns) - set(declared.key))
    try:
        if declared.schema_only:
            compare_kinds(engine, pairs, here, there)
            return
        found = _compare_rows(engine, declared, pairs, tables)
    except QueryError as error:
        _blame(engine, tables, error)
    if found:
        lines = list_differences(found, here.rows, there.rows, cells)
        raise TablesDifferError(f"differs from its baseline: {describe_rows(found)}", tuple(lines))


def _check_row_range(declared: DeclaredOutput, table: Table) -> None:
    rows = count_of(table.rows, "row")
    if declared.min_rows is not None and table.rows < declared.min_rows:
        raise TablesDifferError(f"has {rows}, less than min_rows: {declared.min_rows}")
    if declared.max_rows is not None and table.rows > declared.max_rows:
        raise TablesDifferError(f"has {rows}, more than max_rows: {declared.max_rows}")


def _check_alone(engine: Engine, declared: DeclaredOutput, table: Table) -> None:
    keys = find_keys(declared.key, table)
    try:
        if keys:
            check_unique(engine, keys, table)
    except QueryError as error:
        raise UnreadableError(table.side, describe_trouble(error, table.format, None)) from None


def _check_delimiters(here: Table, baseline: Table) -> None:
    if here.delimiter and baseline.delimiter and here.delimiter != baseline.delimiter:
        raise TablesDifferError(f"has fields parted by {here.delimiter!r}, its baseline by {baseline.delimiter!r}")


def _compare_rows(
    engine: Engine, declared: DeclaredOutput, pairs: tuple[Pair, ...], tables: tuple[Table, Table]
) -> RowDifferences:
    tolerance = Tolerance(declared.absolute_tolerance, declared.relative_tolerance)
    equality = Equality(tolerance, arrow_lambdas=engine.arrow_lambdas)
    if declared.key:
        keys = [pair for name in declared.key for pair in pairs if pair.label == name]
        rest = [pair for pair in pairs if pair.label not in declared.key]
        return compare_by_key(engine, equality, keys, rest, tables)
    if declared.unordered:
        return compare_unordered(engine, equality, pairs, tables, tolerance)
    found = compare_by_position(engine, equality, pairs, tables)
    return _look_for_order(engine, found, pairs, tables) if found else found


def _look_for_order(
    engine: Engine, found: RowDifferences, pairs: tuple[Pair, ...], tables: tuple[Table, Table]
) -> RowDifferences:
    """Say so where rows have only moved, or where a few were put in or left out."""
    here, baseline = tables
    if not pairs or is_wide(pairs) or max(here.rows, baseline.rows) > _MOST_LOOKED_AT:
        return found
    surplus = count_as_multisets(engine, pairs, tables)
    if not surplus:
        note = "the rows are the same in another order: if that does not matter, declare `unordered: true` or a `key`"
        return replace(found, notes=(note,))
    if surplus.only_here + surplus.only_baseline >= found.differing + found.only_here + found.only_baseline:
        return found
    return replace(surplus, notes=(f"the rest has moved: row by row, {describe_rows(found)}",))


def _blame(engine: Engine, tables: tuple[Table, Table], error: QueryError) -> NoReturn:
    """Find out whose file cannot be read.

    Raises:
        UnreadableError: always.
    """
    for table in tables:
        read_whole(engine, table)
    raise UnreadableError(Side.OUTPUT, describe_trouble(error, tables[0].format, None)) from None
