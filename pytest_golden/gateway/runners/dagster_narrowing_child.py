"""Let Dagster materialize only the assets that depend on changed files, the assets that those need, and all assets that write files themselves.

The outputs of an asset that is left out must be known: its I/O manager is one of DuckDB, or Dagster's default, which keeps nothing here.

Runs in Dagster's interpreter, and needs only the standard library and Dagster.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import narrowing_child as narrowing  # type: ignore[import-not-found]  # these stand beside this script
import python_code_child as python_code  # type: ignore[import-not-found]

BASELINE = ".parquet"
DEFAULT_IO_MANAGER = "default_job_io_manager_with_fs_io_manager_schema"


class Narrowing:
    """Narrows the assets that Dagster's command line selects after `install`. `left_out` are the tables of the assets that did not run."""

    def __init__(self, changed: list[str], folder: str) -> None:
        self.left_out: list[str] = []
        self._changed = changed
        self._folder = os.path.realpath(folder)
        self._has_home = bool(os.environ.get("DAGSTER_HOME"))
        self._selection: Any = None

    def install(self) -> None:
        """Replace the class by which `dagster asset materialize` reads its selection; older versions of Dagster have none."""
        command = import_module("dagster._cli.asset")
        if self._has_home or not hasattr(command, "AssetSelection"):
            told = "DAGSTER_HOME is set" if self._has_home else "this version of Dagster is too old for parts"
            narrowing.explain_whole(narrowing.WholeError(told))
            return
        self._selection = command.AssetSelection
        command.AssetSelection = self  # type: ignore[attr-defined]

    def from_coercible(self, given: Any) -> Any:
        """Return a selection as Dagster's class does."""
        selection = self._selection.from_coercible(given)
        whole = selection.resolve

        def resolve(graph: Any) -> Any:
            keys = whole(graph)
            try:
                needed, self.left_out = find_needed(graph, keys, self._changed, self._folder)
            except Exception as error:
                narrowing.explain_whole(error)
                return keys
            return needed

        return SimpleNamespace(resolve=resolve)


class Task:
    """An asset, or several that one function makes."""

    def __init__(self, definition: Any, keys: set[Any], parents: set[Any]) -> None:
        self.keys, self.parents = keys, parents
        self.function = definition.op.compute_fn.decorated_fn
        managers = {definition.get_io_manager_key_for_asset_key(key) for key in keys}
        self.uses_resources = not managers.issuperset(definition.required_resource_keys)
        self.tables = {_name_table(definition, key) for key in keys}


def find_needed(graph: Any, keys: set[Any], changed: list[str], folder: str) -> tuple[set[Any], list[str]]:
    """Return the assets that must be materialized, and the tables of the others.

    Raises:
        WholeError: all assets must be materialized.
    """
    if graph.asset_check_keys:
        raise narrowing.WholeError("checks of assets may write files")
    tasks = _list_tasks(graph, keys)
    code = python_code.Code({name: task.function for name, task in tasks.items()}, os.getcwd(), unwrap=_unwrap)
    origins = {name for path in changed for name in _find_origins(path, folder, tasks, code)}
    writing = {name for name, task in tasks.items() if task.uses_resources or code.may_write(name)}
    needed = _add_needed(_add_dependent(origins, tasks) | writing, tasks)
    kept = {table for name in needed for table in tasks[name].tables}
    left_out = {table for name, task in tasks.items() if name not in needed for table in task.tables}
    if None in left_out:
        raise narrowing.WholeError("the I/O manager of an asset is not known")
    if not kept.isdisjoint(left_out - {""}):
        raise narrowing.WholeError("two assets write tables of one name")
    return {key for name in needed for key in tasks[name].keys}, sorted(table for table in left_out if table)


def _list_tasks(graph: Any, keys: set[Any]) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for key in keys & set(graph.materializable_asset_keys):
        definition = graph.get(key).assets_def
        if definition.partitions_def is not None:
            raise narrowing.WholeError(f"{definition.op.name} has partitions")
        parents = {parent for one in definition.keys for parent in graph.get(one).parent_keys}
        tasks[definition.op.name] = Task(definition, set(definition.keys), parents & keys)
    return tasks


def _find_origins(path: str, folder: str, tasks: dict[str, Task], code: Any) -> set[str]:
    """Return the tasks that a changed module or baseline belongs to.

    Raises:
        WholeError: it belongs to none, or may change which assets there are.
    """
    if path.endswith(BASELINE):
        table = os.path.basename(path).removesuffix(BASELINE)
        found = {name for name, task in tasks.items() if table in task.tables}
    else:
        found = code.find_tasks(os.path.realpath(os.path.join(folder, path)))
    if not found:
        raise narrowing.WholeError(f"{path} belongs to no asset")
    return found


def _add_dependent(origins: set[str], tasks: dict[str, Task]) -> set[str]:
    """Return these tasks, and all that depend on them."""
    found, todo = set(origins), list(origins)
    while todo:
        keys = tasks[todo.pop()].keys
        after = {name for name, task in tasks.items() if not keys.isdisjoint(task.parents)} - found
        found |= after
        todo += after
    return found


def _add_needed(chosen: set[str], tasks: dict[str, Task]) -> set[str]:
    """Return these tasks, and all that they depend on."""
    made = {key: name for name, task in tasks.items() for key in task.keys}
    found, todo = set(chosen), list(chosen)
    while todo:
        before = {made[key] for key in tasks[todo.pop()].parents} - found
        found |= before
        todo += before
    return found


def _name_table(definition: Any, key: Any) -> str | None:
    """Return the table of an asset; "" if its I/O manager keeps nothing here, and None if that is not known."""
    run = getattr(definition.resource_defs.get(definition.get_io_manager_key_for_asset_key(key)), "resource_fn", None)
    if getattr(run, "__name__", None) == DEFAULT_IO_MANAGER and "DAGSTER_DEFAULT_IO_MANAGER_MODULE" not in os.environ:
        return ""
    manager = getattr(run, "__self__", None)
    if not type(manager).__module__.startswith("dagster_duckdb"):
        return None
    # Source: dagster._core.storage.db_io_manager.
    prefix = key.path[-2] if len(key.path) > 1 else "public"
    schema = definition.metadata_by_key.get(key, {}).get("schema") or getattr(manager, "schema_", None) or prefix
    return f"{schema}.{key.path[-1]}" if type(schema) is str else None


def _unwrap(held: Any) -> Any:
    try:
        return held.op.compute_fn.decorated_fn
    except Exception:
        # It is not an asset, or one without a function of its own.
        return held
