"""The models of SQLMesh, from the state that it keeps in the same DuckDB file: the key of their rows, and what they are made of.

Source: sqlmesh/core/state_sync/db and sqlmesh/core/snapshot/definition.py of SQLMesh 0.236. Nothing is run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.tables.duckdb_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.compare.tables.duckdb_engine import Engine

#: The schema of SQLMesh's state.
STATE_SCHEMA = "sqlmesh"
# The tables behind its views, which are named by a hash of the model, are in schemas that begin so.
_PHYSICAL_SCHEMA = "sqlmesh__"
_PRODUCTION = "prod"
# A column, perhaps quoted, and perhaps with the name that others call it by.
_COLUMN = re.compile(r'\s*[`"\[]?(\w+)[`"\]]?(?:\s+AS\s+[`"]?\w+[`"]?)?\s*', re.IGNORECASE)
_NAME_PART = re.compile(r'"((?:[^"]|"")*)"')


@dataclass(frozen=True, slots=True)
class SqlmeshModel:
    """A model in one environment: the columns that identify a row, and the views of all models that it is made of."""

    key: tuple[str, ...]
    upstream: tuple[str, ...]


def is_internal(schema: str) -> bool:
    """Tell whether a schema is SQLMesh's own: its names and its content change with each run."""
    return schema == STATE_SCHEMA or schema.startswith(_PHYSICAL_SCHEMA)


def read_models(engine: Engine, state: str) -> dict[str, SqlmeshModel]:
    """Return the models by their views, `schema.view` in small letters; none of a state in a form that is not known.

    Args:
        engine: has the database attached.
        state: the state's schema, quoted as SQL.
    """
    try:
        rows = engine.query(f"SELECT name, snapshot FROM {state}._snapshots ORDER BY updated_ts")
        environments = engine.query(f"SELECT name, lower(suffix_target) FROM {state}._environments")
        # The newest snapshot of a model is the one that counts.
        snapshots = {str(name): json.loads(told) for name, told in rows}
        keys = {name: _find_key(snapshot["node"]) for name, snapshot in snapshots.items()}
        parents = {name: [one["name"] for one in snapshot["parents"]] for name, snapshot in snapshots.items()}
        return {
            _name_view(name, *environment): SqlmeshModel(
                keys[name], tuple(sorted(_name_view(one, *environment) for one in _find_upstream(parents, name)))
            )
            for environment in environments
            for name in snapshots
        }
    except (QueryError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _name_view(model: str, environment: str, suffix_target: str) -> str:
    """Return the view of a model, given as `"catalog"."schema"."name"`, in an environment."""
    *_, schema, name = ("", *_NAME_PART.findall(model)) if '"' in model else ("", "", model)
    if environment != _PRODUCTION:
        schema, name = (
            (schema, f"{name}__{environment}") if suffix_target == "table" else (f"{schema}__{environment}", name)
        )
    return f"{schema}.{name}".lower()


def _find_upstream(parents: Mapping[str, list[str]], name: str) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        new = set(parents.get(left.pop(), ())) - found
        found |= new
        left += new
    return found


def _find_key(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the key: that of the model's kind, its first grain, or the columns of an audit for uniqueness, in this order."""
    kind = node.get("kind") or {}
    unique = _join_columns(kind.get("unique_key") or ())
    if unique and kind.get("valid_from_name"):
        # A row of history is one version of what the key names.
        return (*unique, *_list_columns(kind["valid_from_name"]))
    if unique:
        return unique
    for grain in node.get("grains") or ():
        return _list_columns(grain)
    for audit, arguments in node.get("audits") or ():
        columns = _list_columns(str(arguments.get("columns", "")))
        if audit == "unique_values":
            return columns[:1]
        if audit == "unique_combination_of_columns":
            return columns
    return ()


def _join_columns(told: Iterable[str]) -> tuple[str, ...]:
    listed = [_list_columns(one) for one in told]
    return tuple(column for columns in listed for column in columns) if all(listed) else ()


def _list_columns(told: str) -> tuple[str, ...]:
    """Return the columns of `a`, `"a"`, `a AS b` or `(a, b)`; none if it is another expression."""
    inner = told.strip()
    if inner[:1] in {"(", "["} and inner[-1:] in {")", "]"}:
        inner = inner[1:-1]
    found = [_COLUMN.fullmatch(part) for part in inner.split(",")]
    return tuple(one[1] for one in found if one) if all(found) else ()
