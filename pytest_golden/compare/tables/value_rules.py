"""Rules on the values of a table, which need no baseline: filled, unique, within bounds, accepted, and new enough."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.compare.showing import cut, quote_name, quote_names
from pytest_golden.compare.tables.duckdb_engine import quote_text
from pytest_golden.compare.tables.model import RulesBrokenError, Values
from pytest_golden.regression.wording import count_of, format_elapsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.compare.tables.cells import Cells
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Column, Table
    from pytest_golden.manifest.model import DeclaredOutput

_MOST_EXAMPLES = 3
_LONGEST_LIST = 200
_DAY = 86_400


def check_values(engine: Engine, declared: DeclaredOutput, table: Table, cells: Cells) -> None:
    """Check a table by the rules on its values.

    Raises:
        RulesBrokenError: it breaks some; all of them are told.
        QueryError: DuckDB cannot answer.
    """
    if not declared.has_value_rules:
        return
    broken = list(_find_broken(engine, declared, table, cells))
    if broken:
        raise RulesBrokenError(broken)


def check_row_count(declared: DeclaredOutput, here: Table, baseline: Table) -> None:
    """Check how far the number of rows is from the baseline's.

    Raises:
        RulesBrokenError: too far.
    """
    most = declared.row_count_change
    if most is not None and abs(here.rows - baseline.rows) > most * baseline.rows:
        told = f"{count_of(here.rows, 'row')} here, {baseline.rows:,} in the baseline"
        raise RulesBrokenError([f"{told}: row_count_change allows {most * 100:g} %"])


def _find_broken(engine: Engine, declared: DeclaredOutput, table: Table, cells: Cells) -> Iterator[str]:
    columns = {column.name: column for column in reversed(table.columns)}
    for rule in ("not_null", "unique", "between", "accepted"):
        for name in getattr(declared, rule):
            if name not in columns:
                yield f"{rule}: there is no column {quote_name(name)}; the columns are {_list(table)}"
                continue
            told = _check(engine, declared, rule, columns[name], table, cells)
            if told:
                yield f"{rule}: {quote_name(name)} {told}"
    newest = declared.newest
    if newest is not None and newest.column not in columns:
        yield f"newest: there is no column {quote_name(newest.column)}; the columns are {_list(table)}"
    elif newest is not None:
        told = _check_age(engine, columns[newest.column], table, newest.max_age)
        if told:
            yield f"newest: {quote_name(newest.column)} {told}"


def _list(table: Table) -> str:
    return quote_names([column.name for column in table.columns]) if table.columns else "none"


def _check(engine: Engine, declared: DeclaredOutput, rule: str, column: Column, table: Table, cells: Cells) -> str:
    """Return how a column breaks a rule; empty if it does not."""
    value, source = f"t.c{column.place}", table.scan("t")
    if rule == "not_null":
        nulls = engine.query(f"SELECT count(*) - count({value}) FROM {source}")[0][0]
        return f"has no value in {count_of(nulls, 'row')}" if nulls else ""
    plain = _plain(column, value)
    if rule == "unique":
        where, having, verb = f"{value} IS NOT NULL", " HAVING count(*) > 1", "occurs more than once"
    elif rule == "between":
        low, high = declared.between[column.name]
        where, having = _outside(plain, low, high), ""
        bounds = f"from {_bound(low)} " if low is not None else ""
        verb = (
            f"is not {bounds}{'to' if bounds else 'up to'} {_bound(high)}"
            if high is not None
            else f"is below {_bound(low)}"
        )
    else:
        accepted = declared.accepted[column.name]
        where, having = _unaccepted(plain, accepted), ""
        verb = f"is not one of {cut(', '.join(accepted), _LONGEST_LIST)}"
    found = engine.query(
        f"SELECT v, times, sum(times) OVER (), count(*) OVER () FROM (SELECT {plain} AS v, count(*) AS times FROM {source}"
        f" WHERE {value} IS NOT NULL AND ({where}) GROUP BY v{having}) ORDER BY times DESC, v LIMIT {_MOST_EXAMPLES}"
    )
    if not found:
        return ""
    examples = ", ".join(f"{cells.show(column.name, text)} ({count_of(times, 'row')})" for text, times, *_ in found)
    more = found[0][3] - len(found)
    return f"{verb} in {count_of(found[0][2], 'row')}: {examples}{f' and {more:,} more' if more else ''}"


def _plain(column: Column, value: str) -> str:
    """Write a value as text, a text of JSON without its quotes."""
    if column.values is Values.JSON:
        return f"json_extract_string({value}, '$')"
    return f"({value})::VARCHAR"


def _outside(plain: str, low: float | str | None, high: float | str | None) -> str:
    """Write that a value is not a number within bounds, or no time within them, as seconds."""
    is_time = isinstance(low if low is not None else high, str)
    # DuckDB 1.0 compares the texts where only a cast stands beside a constant.
    number = f"epoch(TRY_CAST({plain} AS TIMESTAMP))" if is_time else f"(TRY_CAST({plain} AS DOUBLE) + 0)"
    bounds = [
        f"{number} {sign} {_seconds(bound) if isinstance(bound, str) else bound!r}::DOUBLE"
        for bound, sign in ((low, "<"), (high, ">"))
        if bound is not None
    ]
    return f"{number} IS NULL OR {' OR '.join(bounds)}"


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _bound(bound: float | str | None) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _unaccepted(plain: str, accepted: tuple[str, ...]) -> str:
    """Write that a value is not accepted: neither as text, nor as the same number in another writing."""
    texts = ", ".join(map(quote_text, accepted))
    numbers = ", ".join(f"TRY_CAST({quote_text(text)} AS DOUBLE)" for text in accepted)
    return f"{plain} NOT IN ({texts}) AND NOT list_contains([{numbers}], coalesce(TRY_CAST({plain} AS DOUBLE), 'nan'::DOUBLE))"


def _check_age(engine: Engine, column: Column, table: Table, most: float) -> str:
    plain = _plain(column, f"t.c{column.place}")
    newest = engine.query(f"SELECT max(epoch(TRY_CAST({plain} AS TIMESTAMP))) FROM {table.scan('t')}")[0][0]
    if newest is None:
        return "holds no time"
    age = utc_now().timestamp() - float(newest)
    return f"is {_age(age)} old at its newest, more than {_age(most)}" if age > most else ""


def _age(seconds: float) -> str:
    return f"{seconds / _DAY:.1f} days" if seconds >= 2 * _DAY else format_elapsed(seconds)
