"""The models of a dbt run, from the manifest.json that it wrote: where each one is, and the key of its rows.

Source: https://schemas.getdbt.com/dbt/manifest/v12.json. Nothing is run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.opening import Content, Side, UnreadableError, read_chunks
from pytest_golden.compare.tables.database_files import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.manifest.model import DeclaredOutput

_KINDS = ("model", "snapshot")


@dataclass(frozen=True, slots=True)
class DbtModel:
    """One model or snapshot: its relation, and the columns that identify a row, as dbt's own tests and contracts say.

    `names` are what patterns may call it: its name, its folder and name, its schema and name. `upstream` are the names of all
    models that it is made of, directly or not.
    """

    name: str
    database: str
    schema: str
    relation: str
    key: tuple[str, ...]
    names: tuple[str, ...]
    upstream: tuple[str, ...] = ()

    def is_named(self, output: DeclaredOutput) -> bool:
        """Tell whether an entry of `outputs:` names it."""
        return _is_any(self.names, output.dbt) and not _is_any(self.names, output.exclude)


def _is_any(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names for pattern in patterns)


def read_models(manifest: Path) -> tuple[str, tuple[DbtModel, ...]]:
    """Read dbt's manifest.json; return the adapter's name and the models that have a relation, sorted by name.

    Raises:
        DatabaseError: it is not one that can be read.
    """
    try:
        document = _load(manifest)
        adapter = document["metadata"]["adapter_type"]
        nodes = document["nodes"]
        keys = dict(_list_tested(nodes))
        models = [
            replace(_make_model(node, keys.get(unique_id, [])), upstream=_find_upstream(nodes, unique_id))
            for unique_id, node in nodes.items()
            if _has_relation(node)
        ]
    except (UnreadableError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatabaseError(f"is not a manifest of dbt that can be read: {type(error).__name__}") from None
    return str(adapter), tuple(sorted(models, key=lambda model: model.name))


def _load(file: Path) -> Any:
    return json.loads(b"".join(read_chunks(Content(file, Side.OUTPUT))))


def find_left_out(manifest: Path, results: Path, changed: Collection[str]) -> frozenset[str]:
    """Return the names of the models that a run did not build and that none of the changed files reaches.

    Args:
        manifest: dbt's manifest.json.
        results: its run_results.json.
        changed: paths relative to the project's folder, and `dbt/<name>.parquet` for a model whose baseline changed.

    Raises:
        DatabaseError: one of them cannot be read.
    """
    try:
        document = _load(manifest)
        nodes, own = document["nodes"], document["metadata"].get("project_name")
        done = {result["unique_id"] for result in _load(results)["results"]}
        origins = {
            unique_id
            for unique_id, node in nodes.items()
            if (node["package_name"] == own and node["original_file_path"] in changed)
            or f"dbt/{node['name']}.parquet" in changed
        }
        due = {*done, *_find_reached(nodes, origins)}
        models = {unique_id: node["name"] for unique_id, node in nodes.items() if _has_relation(node)}
    except (UnreadableError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatabaseError(
            f"manifest.json or run_results.json of dbt cannot be used: {type(error).__name__}"
        ) from None
    names = frozenset(name for unique_id, name in models.items() if unique_id not in due)
    # Versions of a model have one name.
    return names.difference(name for unique_id, name in models.items() if unique_id in due)


def _find_reached(nodes: Mapping[str, Any], origins: Iterable[str]) -> set[str]:
    """Return these nodes and all that are made of them, directly or not."""
    children: dict[str, list[str]] = {}
    for unique_id, node in nodes.items():
        for parent in (node.get("depends_on") or {}).get("nodes") or ():
            children.setdefault(parent, []).append(unique_id)
    seen = set(origins)
    left = list(seen)
    while left:
        new = set(children.get(left.pop(), ())) - seen
        seen |= new
        left += new
    return seen


def _has_relation(node: Mapping[str, Any]) -> bool:
    return node["resource_type"] in _KINDS and node["config"].get("materialized") != "ephemeral"


def _make_model(node: Mapping[str, Any], tested: list[tuple[str, ...]]) -> DbtModel:
    name, schema, folders = node["name"], node["schema"], node["fqn"][1:]
    relation = node.get("alias") or name
    names = dict.fromkeys((name, ".".join(folders), f"{schema}.{name}"))
    return DbtModel(name, node.get("database") or "", schema, relation, _choose_key(node, tested), tuple(names))


def _find_upstream(nodes: Mapping[str, Any], unique_id: str) -> tuple[str, ...]:
    seen: set[str] = set()
    left = [unique_id]
    while left:
        told = (nodes.get(left.pop()) or {}).get("depends_on") or {}
        new = set(told.get("nodes") or ()) - seen
        seen |= new
        left += new
    return tuple(sorted(nodes[one]["name"] for one in seen if one in nodes and nodes[one]["resource_type"] in _KINDS))


def _choose_key(node: Mapping[str, Any], tested: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the key: that of the configuration, of the contract, or of the first test for uniqueness, in this order."""
    declared = node["config"].get("unique_key")
    if declared:
        return (declared,) if isinstance(declared, str) else tuple(declared)
    if (node["config"].get("contract") or {}).get("enforced"):
        for constraint in node.get("constraints") or ():
            if constraint.get("type") in {"primary_key", "unique"} and constraint.get("columns"):
                return tuple(constraint["columns"])
        for column in (node.get("columns") or {}).values():
            if any(one.get("type") in {"primary_key", "unique"} for one in column.get("constraints") or ()):
                return (column["name"],)
    order = list(node.get("columns") or {})
    tested = sorted(tested, key=lambda key: (len(key), order.index(key[0]) if key[0] in order else len(order)))
    return tested[0] if tested else ()


def _list_tested(nodes: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield for each model the columns, or sets of columns, that a test calls unique over all rows."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for node in nodes.values():
        metadata = node.get("test_metadata") or {}
        is_of_all_rows = not (node.get("config") or {}).get("where")
        if node["resource_type"] != "test" or not node.get("attached_node") or not is_of_all_rows:
            continue
        arguments = metadata.get("kwargs") or {}
        if metadata.get("name") == "unique" and node.get("column_name"):
            found.setdefault(node["attached_node"], []).append((node["column_name"],))
        elif metadata.get("name") == "unique_combination_of_columns" and arguments.get("combination_of_columns"):
            found.setdefault(node["attached_node"], []).append(tuple(arguments["combination_of_columns"]))
    yield from found.items()
