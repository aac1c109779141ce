"""Whether two values of a table differ, written as SQL, and the parts of queries that all comparisons of rows share.

A text of a delimited file counts as a number when it is written as one, without leading zeros: `007` is not a number. Then
`1.50` equals `1.5`, and `33.0` equals `33`: only the writing differs, which is said, and is no difference. `1e3` and `1000`
differ unless there is a tolerance. JSON itself says what is a number. NULL equals NULL alone, NaN equals NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.compare.tables.model import DifferingRow, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.tables.cells import Cells
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.compare.tables.model import Column, Pair, Table
    from pytest_golden.manifest.model import DeclaredOutput


NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
WHOLE_NUMBER = "[+-]?(0|[1-9][0-9]*)"
_DECIMAL = r"-?(0|[1-9][0-9]*)\.[0-9]+"
_ZERO = r"-?0(\.0+)?"
_NUMBERS = r"\[[-+0-9.eE, ]*\]"
# Beyond that a double does not hold every whole number.
_EXACT_DOUBLE = "1e15"
# Added to the tolerance, so that a difference of exactly the tolerance is still within it after rounding.
_ROUNDING = "4.5e-16"
_FLOATS = {"float", "double"}
_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"}
_HUGE = {"hugeint", "uhugeint"}

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


class Equality:
    """Writes the SQL for one tolerance and one version of DuckDB."""

    def __init__(self, declared: DeclaredOutput, *, arrow_lambdas: bool) -> None:
        self._absolute, self._relative = declared.absolute_tolerance, declared.relative_tolerance
        #: Whether nothing is tolerated.
        self.is_exact = self._absolute <= 0 and self._relative <= 0
        self._arrow_lambdas = arrow_lambdas

    def differs(self, pair: Pair) -> str:
        """Return an expression that is true or false, never NULL."""
        values, x, y = pair.column.values, pair.x, pair.y
        if values is Values.TYPED:
            return self._typed(x, y, pair.column.type, 0)
        rest = f"({canonical(pair.column, x)}) IS DISTINCT FROM ({canonical(pair.column, y)})"
        cases = [f"WHEN {x} IS NOT DISTINCT FROM {y} THEN false"]
        if not self.is_exact:
            cases.append(f"WHEN {_both(x, y, NUMBER)} THEN NOT {self._written(x, y)}")
        if not self.is_exact and values is Values.JSON:
            cases.append(f"WHEN {_both(x, y, _NUMBERS)} THEN {self._lists(x, y)}")
        return f"(CASE {' '.join(cases)} ELSE {rest} END)"

    def _typed(self, x: str, y: str, kind: Any, depth: int) -> str:
        close = self._close(x, y, kind, depth) if not self.is_exact else None
        if close is None:
            return f"({x} IS DISTINCT FROM {y})"
        return (
            f"(CASE WHEN {x} IS NOT DISTINCT FROM {y} THEN false WHEN {x} IS NULL OR {y} IS NULL THEN true"
            f" ELSE NOT coalesce({close}, false) END)"
        )

    def _close(self, x: str, y: str, kind: Any, depth: int) -> str | None:
        """Return an expression for two values that are not NULL; None where only equality will do."""
        name = kind.id
        if name in _INTEGERS:
            return f"(abs({x}::HUGEINT - {y}::HUGEINT)::DOUBLE <= {self._allowed(f'{x}::DOUBLE', f'{y}::DOUBLE')})"
        if name == "decimal" and dict(kind.children)["precision"] < 38:
            return f"(abs({x} - {y})::DOUBLE <= {self._allowed(f'{x}::DOUBLE', f'{y}::DOUBLE')})"
        if name in _FLOATS or name in _HUGE or name == "decimal":
            return self._doubles(f"{x}::DOUBLE", f"{y}::DOUBLE")
        if name in {"list", "array"}:
            return self._elements(x, y, dict(kind.children)["child"], depth)
        if name == "map":
            values = self._elements(f"map_values({x})", f"map_values({y})", dict(kind.children)["value"], depth)
            return values and f"(map_keys({x}) IS NOT DISTINCT FROM map_keys({y}) AND {values})"
        if name == "struct":
            return self._fields(x, y, kind.children, depth)
        return None

    def _fields(self, x: str, y: str, children: list[tuple[str, Any]], depth: int) -> str | None:
        if not any(holds_numbers(kind) for _, kind in children):
            return None
        # A union becomes a struct whose first field has no name, and such fields are numbered.
        is_named = bool(children[0][0])
        parts = []
        for at, (name, kind) in enumerate(children, 1):
            escaped = name.replace("'", "''")
            field = f"'{escaped}'" if is_named else str(at)
            parts.append(self._typed(f"struct_extract({x}, {field})", f"struct_extract({y}, {field})", kind, depth))
        return f"(NOT ({' OR '.join(parts)}))"

    def _elements(self, x: str, y: str, kind: Any, depth: int) -> str | None:
        if not holds_numbers(kind):
            return None
        at = f"i{depth}"
        differs = self._typed(f"({x})[{at}]", f"({y})[{at}]", kind, depth + 1)
        head = f"{at} ->" if self._arrow_lambdas else f"lambda {at}:"
        differing = f"list_filter(range(1, len({x}) + 1), {head} {differs})"
        return f"(len({x}) = len({y}) AND len({differing}) = 0)"

    def _lists(self, x: str, y: str) -> str:
        """Compare JSON arrays of numbers."""
        head = "i ->" if self._arrow_lambdas else "lambda i:"
        left, right = f"TRY_CAST({x} AS DOUBLE[])", f"TRY_CAST({y} AS DOUBLE[])"
        close = self._doubles(f"({left})[i]", f"({right})[i]")
        differing = f"list_filter(range(1, len({left}) + 1), {head} NOT coalesce({close}, false))"
        return f"NOT coalesce(len({left}) = len({right}) AND len({differing}) = 0, false)"

    def _written(self, x: str, y: str) -> str:
        """Compare two numbers that are texts: whole ones exactly, also where a double would not tell them apart."""
        left, right = f"TRY_CAST({x} AS DOUBLE)", f"TRY_CAST({y} AS DOUBLE)"
        apart = f"abs(TRY_CAST({x} AS HUGEINT) - TRY_CAST({y} AS HUGEINT))::DOUBLE"
        whole = f"({apart} <= {self._allowed(left, right)})"
        # What is too large for a double is infinite there, and would equal all that is.
        finite = f"(isfinite({left}) AND {self._doubles(left, right)})"
        return f"coalesce(CASE WHEN {_both(x, y, WHOLE_NUMBER)} THEN {whole} ELSE {finite} END, false)"

    def _doubles(self, x: str, y: str) -> str:
        slack = f"{_ROUNDING} * greatest(abs({x}), abs({y}))"
        within = f"abs({x} - {y}) <= {self._allowed(x, y)} + {slack}"
        return f"({x} = {y} OR (isfinite({x}) AND isfinite({y}) AND {within}))"

    def _allowed(self, x: str, y: str) -> str:
        absolute, relative = self._absolute, self._relative
        if not relative:
            return f"{absolute!r}::DOUBLE"
        return f"greatest({absolute!r}::DOUBLE, {relative!r}::DOUBLE * greatest(abs({x}), abs({y})))"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison of rows works with: DuckDB, what is equal, the output and its baseline, and what may be shown."""

    engine: Engine
    equality: Equality
    tables: tuple[Table, Table]
    cells: Cells


def canonical(column: Column, x: str) -> str:
    """Return an expression that is the same for two values exactly if they are equal where nothing is tolerated."""
    if column.values is Values.TEXT:
        return (
            f"CASE WHEN regexp_full_match({x}, '{_ZERO}') THEN '0' WHEN regexp_full_match({x}, '{_DECIMAL}')"
            f" THEN rtrim(rtrim({x}, '0'), '.') ELSE {x} END"
        )
    if column.values is Values.JSON:
        number = f"TRY_CAST({x} AS DOUBLE)"
        whole = f"abs({number}) < {_EXACT_DOUBLE} AND {number} = floor({number})"
        return (
            f"CASE WHEN regexp_full_match({x}, '{WHOLE_NUMBER}') OR NOT regexp_full_match({x}, '{NUMBER}') THEN {x}"
            f" WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {number}::VARCHAR END"
        )
    return x


def holds_numbers(kind: Any) -> bool:
    """Tell whether a type is one of numbers, or contains such a type."""
    name = kind.id
    if name in {"list", "array"}:
        return holds_numbers(dict(kind.children)["child"])
    if name == "map":
        return holds_numbers(dict(kind.children)["value"])
    if name == "struct":
        return any(holds_numbers(child) for _, child in kind.children)
    return name in _FLOATS or name in _INTEGERS or name in _HUGE or name == "decimal"


def any_of(conditions: list[str]) -> str:
    """Join conditions by OR, in parentheses; none is false."""
    return f"({' OR '.join(conditions)})" if conditions else "false"


def _both(x: str, y: str, pattern: str) -> str:
    return f"regexp_full_match({x}, '{pattern}') AND regexp_full_match({y}, '{pattern}')"


def part(pairs: Sequence[_T], at_once: int = _AT_ONCE) -> list[Sequence[_T]]:
    """Split columns into parts that one query can take; there is always at least one part."""
    return [pairs[start : start + at_once] for start in range(0, len(pairs), at_once)] or [pairs]


def is_wide(pairs: Sequence[object]) -> bool:
    """Tell whether it is worth a query of its own to find out that nothing at all looks different."""
    return len(pairs) > _MANY


def find_others(engine: Engine, pairs: Sequence[Pair], named: Sequence[Pair], rest: str) -> Sequence[Pair]:
    """Return the columns in which anything looks different at all; `named` are the same as the SQL of `rest` calls them."""
    asked = ", ".join(f"coalesce(bool_or({pair.x} IS DISTINCT FROM {pair.y}), false)" for pair in named)
    found = engine.query(f"SELECT {asked} {rest}")[0]
    return [pair for pair, is_so in zip(pairs, found, strict=True) if is_so]


def as_text(expression: str) -> str:
    """Return an expression as text that may be cut."""
    return f"left({expression}::VARCHAR, {_MOST_CHARACTERS})"


def order_of(pair: Pair, expression: str) -> str:
    """Return what rows are sorted by: texts of numbers as numbers."""
    if pair.column.values is Values.TYPED:
        return expression
    return f"TRY_CAST({expression} AS DOUBLE) NULLS LAST, {expression}"


def count_by_column(pairs: Sequence[Pair], counts: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Return the columns that differ, those that do in most rows first."""
    found = [(pair.label, count) for pair, count in zip(pairs, counts, strict=True) if count]
    return tuple(sorted(found, key=lambda each: -each[1]))


def read_samples(
    engine: Engine, equality: Equality, places: Sequence[str], pairs: Sequence[Pair], counts: Sequence[int], rest: str
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
    samples = []
    for row in rows:
        cells = row[len(places) :]
        values = ((pair.label, cells[3 * at + 1], cells[3 * at + 2]) for at, pair in enumerate(shown) if cells[3 * at])
        samples.append(DifferingRow(row[: len(places)], tuple(values)))
    return tuple(samples)
