"""Whether two values differ, as SQL. Pure text.

A text of a delimited file counts as a number when it is written as one, without zeros in front: `007` is no number. Then `1.50`
equals `1.5`; `1` and `1.0` are told apart unless something is tolerated, for a column of whole numbers that became another
is news. JSON tells itself what is a number. NULL equals NULL alone, NaN equals NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.regression.baselines.tables.model import Values

if TYPE_CHECKING:
    from pytest_golden.regression.baselines.tables.model import Column, Pair, Tolerance

_WHOLE = "[+-]?(0|[1-9][0-9]*)"
_DECIMAL = r"[+-]?(0|[1-9][0-9]*)\.[0-9]+"
NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
WHOLE_NUMBER = _WHOLE
_NUMBERS = r"\[[-+0-9.eE, ]*\]"
# Beyond that a double does not hold every whole number.
_EXACT_DOUBLE = "1e15"
# The border itself is not missed by what a double cannot express.
_ROUNDING = "4.5e-16"
_FLOATS = {"float", "double"}
_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"}
_HUGE = {"hugeint", "uhugeint"}


class Equality:
    """Writes the SQL for one tolerance and one version of DuckDB."""

    def __init__(self, tolerance: Tolerance, *, arrow_lambdas: bool) -> None:
        self._tolerance = tolerance
        self._arrow_lambdas = arrow_lambdas

    def differs(self, pair: Pair) -> str:
        """Give an expression that is true or false, never NULL."""
        values, x, y = pair.column.values, pair.x, pair.y
        if values is Values.TYPED:
            return self._typed(x, y, pair.column.type, 0)
        rest = f"({canonical(pair.column, x)}) IS DISTINCT FROM ({canonical(pair.column, y)})"
        cases = [f"WHEN {x} IS NOT DISTINCT FROM {y} THEN false"]
        if self._tolerance:
            cases.append(f"WHEN {_both(x, y, NUMBER)} THEN NOT {self._written(x, y)}")
        if self._tolerance and values is Values.JSON:
            cases.append(f"WHEN {_both(x, y, _NUMBERS)} THEN {self._lists(x, y)}")
        return f"(CASE {' '.join(cases)} ELSE {rest} END)"

    def _typed(self, x: str, y: str, kind: Any, depth: int) -> str:
        close = self._close(x, y, kind, depth) if self._tolerance else None
        if close is None:
            return f"({x} IS DISTINCT FROM {y})"
        return (
            f"(CASE WHEN {x} IS NOT DISTINCT FROM {y} THEN false WHEN {x} IS NULL OR {y} IS NULL THEN true"
            f" ELSE NOT coalesce({close}, false) END)"
        )

    def _close(self, x: str, y: str, kind: Any, depth: int) -> str | None:
        """Give an expression for two values that are not NULL; None where only equality will do."""
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
        fields = [(name.replace("'", "''"), kind) for name, kind in children]
        if not any(holds_numbers(kind) for _, kind in fields):
            return None
        parts = (
            self._typed(f"struct_extract({x}, '{name}')", f"struct_extract({y}, '{name}')", kind, depth)
            for name, kind in fields
        )
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
        return f"coalesce(CASE WHEN {_both(x, y, _WHOLE)} THEN {whole} ELSE {finite} END, false)"

    def _doubles(self, x: str, y: str) -> str:
        slack = f"{_ROUNDING} * greatest(abs({x}), abs({y}))"
        within = f"abs({x} - {y}) <= {self._allowed(x, y)} + {slack}"
        return f"({x} = {y} OR (isfinite({x}) AND isfinite({y}) AND {within}))"

    def _allowed(self, x: str, y: str) -> str:
        absolute, relative = self._tolerance.absolute, self._tolerance.relative
        if not relative:
            return f"{absolute!r}::DOUBLE"
        return f"greatest({absolute!r}::DOUBLE, {relative!r}::DOUBLE * greatest(abs({x}), abs({y})))"


def canonical(column: Column, x: str) -> str:
    """Give an expression that is the same for two values exactly if they are equal where nothing is tolerated."""
    if column.values is Values.TEXT:
        return f"CASE WHEN regexp_full_match({x}, '{_DECIMAL}') THEN rtrim({x}, '0') ELSE {x} END"
    if column.values is Values.JSON:
        number = f"TRY_CAST({x} AS DOUBLE)"
        whole = f"abs({number}) < {_EXACT_DOUBLE} AND {number} = floor({number})"
        return (
            f"CASE WHEN regexp_full_match({x}, '{_WHOLE}') OR NOT regexp_full_match({x}, '{NUMBER}') THEN {x}"
            f" WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {number}::VARCHAR END"
        )
    return x


def is_other(pair: Pair) -> str:
    """Give an expression that is cheap, and true wherever two values differ: of texts it also is where they only look different."""
    return f"{pair.x} IS DISTINCT FROM {pair.y}"


def holds_numbers(kind: Any) -> bool:
    """Tell whether a type is one of numbers, or made of such."""
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
