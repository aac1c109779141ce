"""Numbers that a statement is given as rows, however many: the statement is the same, and so it stays prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, cast
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.compiler import SQLCompiler


class _Listed(FunctionElement[Any]):
    """A JSON list as rows; both databases call the column `value`."""

    inherit_cache = True
    name = "listed"


@compiles(_Listed, "sqlite")
def _compile_for_sqlite(listed: _Listed, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(listed.clauses, **options)})"


@compiles(_Listed)
def _compile_for_others(listed: _Listed, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(listed.clauses, **options)} AS JSON))"


def list_numbers(name: str) -> ColumnElement[int]:
    """Make the column of the numbers that are given under this name, as the text of a JSON list."""
    return cast(_Listed(bindparam(name, type_=Text())).table_valued("value").c.value, BigInteger)
