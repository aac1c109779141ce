"""A member of a JSON column, read from the database as far as that can be.

PostgreSQL refuses to look into JSON in which a NUL or half a character stands anywhere, escaped as it is there. From it
the whole value comes, and the member is taken here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, TypeDecorator, case, cast, func
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy import Column, Dialect
    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine

_SQLITE = "sqlite"


class _MemberType(TypeDecorator[Any]):
    """What comes from SQLite is the member; from PostgreSQL it is all."""

    impl = JSON
    cache_ok = True

    def __init__(self, key: str, *, is_text: bool) -> None:
        super().__init__()
        self.key = key
        self.is_text = is_text

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text() if self.is_text and dialect.name == _SQLITE else JSON()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if dialect.name == _SQLITE:
            return value
        member = value.get(self.key) if isinstance(value, dict) else None
        return json.dumps(member) if self.is_text and not isinstance(member, str | None) else member


class _Member(FunctionElement[Any]):
    """Two expressions, the first for SQLite."""

    inherit_cache = True
    name = "json_member"


@compiles(_Member, _SQLITE)
def _compile_for_sqlite(member: _Member, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(next(iter(member.clauses)), **options)


@compiles(_Member)
def _compile_for_others(member: _Member, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(list(member.clauses)[1], **options)


def json_member(column: Column[Any], key: str) -> Any:
    """Give a member's value."""
    return _member(column, column[key], _MemberType(key, is_text=False))


def json_member_text(column: Column[Any], key: str, *, may_be_damaged: bool = False) -> Any:
    """Give a member that is a text, or NULL; one of another kind as its JSON.

    With `may_be_damaged`, what is no JSON, as anybody may write into SQLite, has no members; else it raises.
    """
    on_sqlite = column[key].as_string()
    if may_be_damaged:
        on_sqlite = case((func.json_valid(cast(column, Text)) == 1, on_sqlite))
    return _member(column, on_sqlite, _MemberType(key, is_text=True))


def _member(column: Column[Any], on_sqlite: Any, kind: _MemberType) -> Any:
    member = _Member(on_sqlite, column)
    member.type = kind
    return member.label(kind.key)
