"""Let Kedro run only the nodes that depend on changed files, and the nodes that those need.

A changed file belongs to a node if it is a dataset of the catalog, the module of the node's function, or a module that this module
imports. If the code that builds the pipeline uses more of a module than node functions, the module can change which nodes exist. Then all
nodes run.

Runs in Kedro's interpreter, and needs only the standard library and Kedro.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module
from typing import Any

import narrowing_child as narrowing  # type: ignore[import-not-found]  # these stand beside this script
import python_code_child as python_code  # type: ignore[import-not-found]

# Datasets without a file: they keep nothing.
IN_MEMORY = frozenset({"MemoryDataset", "MemoryDataSet", "SharedMemoryDataset", "SharedMemoryDataSet"})


class Narrowing:
    """Narrows the runs of Kedro's runners after `install`. `left_out` are the files of the nodes that did not run."""

    def __init__(self, changed: list[str]) -> None:
        self.left_out: list[str] = []
        self._changed = changed
        self._folder = os.path.realpath(os.curdir)
        self._opened = narrowing.OpenedFiles()

    def install(self) -> None:
        """Replace the `run` method that all of Kedro's runners inherit."""
        runner = import_module("kedro.runner.runner").AbstractRunner
        whole = runner.run

        @functools.wraps(whole)
        def run(this: Any, pipeline: Any, catalog: Any, *rest: Any, **more: Any) -> Any:
            return whole(this, self._narrow(pipeline, catalog), catalog, *rest, **more)

        runner.run = run

    def _narrow(self, pipeline: Any, catalog: Any) -> Any:
        try:
            opened = self._opened.end()
            needed, left_out = find_needed(pipeline, catalog, self._changed, self._folder, opened)
        except Exception as error:
            narrowing.explain_whole(error)
            return pipeline
        self.left_out += left_out
        return needed


def find_needed(
    pipeline: Any, catalog: Any, changed: list[str], folder: str, opened: set[str]
) -> tuple[Any, list[str]]:
    """Return the part of a pipeline that must run, and the files and folders that the other nodes write.

    Raises:
        WholeError: the whole pipeline must run.
    """
    places = {name: _find_place(name, catalog) for node in pipeline.nodes for name in (*node.inputs, *node.outputs)}
    code = python_code.Code({node.name: node.func for node in pipeline.nodes}, folder, _builds_pipeline)
    origins: set[str] = set()
    for path in changed:
        place = os.path.realpath(os.path.join(folder, path))
        of_data = {name for name, known in places.items() if known and narrowing.is_below(place, known)}
        if of_data and place in opened:
            raise narrowing.WholeError(f"{path} was read before the first node")
        found = {node.name for node in pipeline.nodes if not of_data.isdisjoint((*node.inputs, *node.outputs))}
        found |= code.find_tasks(place) if path.endswith(".py") else set()
        if not found:
            raise narrowing.WholeError(f"{path} is that of no node")
        origins |= found
    after = pipeline.from_nodes(*origins)
    needed = pipeline.to_nodes(*(node.name for node in after.nodes))
    kept = {node.name for node in needed.nodes}
    rest = [node for node in pipeline.nodes if node.name not in kept]
    return needed, _list_left_out(rest, needed.nodes, places, folder, code)


def _list_left_out(
    rest: list[Any], needed: list[Any], places: dict[str, str | None], folder: str, code: Any
) -> list[str]:
    """Return the files of the nodes that are left out.

    Raises:
        WholeError: the location of such a file is not known, or a node that runs writes there too.
    """
    made = {place for node in needed for name in node.outputs if (place := places[name])}
    for node in rest:
        if code.may_write(node.name):
            raise narrowing.WholeError(f"{node.name} may write files that are not in the catalog")
    left_out = set()
    for name in (name for node in rest for name in node.outputs):
        place = places[name]
        if place is None:
            raise narrowing.WholeError(f"the location of {name} is not known")
        if place and any(narrowing.is_below(one, place) or narrowing.is_below(place, one) for one in made):
            raise narrowing.WholeError(f"other nodes also write to the location of {name}")
        left_out.add(place)
    return [os.path.relpath(place, folder) for place in left_out if place]


def _find_place(name: str, catalog: Any) -> str | None:
    """Return the file or folder of a dataset, "" if the dataset exists only in memory, and None if the location is not known."""
    name = name.partition("@")[0] if name not in catalog else name
    if name.startswith(("params:", "parameters")):
        return ""
    get = getattr(catalog, "_get_dataset", None) or functools.partial(catalog.get, fallback_to_runtime_pattern=True)
    dataset = get(name)
    dataset = getattr(dataset, "_dataset", dataset)
    if dataset is None or type(dataset).__name__ in IN_MEMORY:
        return ""
    place = getattr(dataset, "_filepath", None) or getattr(dataset, "_path", None)
    is_here = getattr(dataset, "_protocol", "file") in {"file", "local", ("file", "local")}
    return os.path.realpath(str(place)) if place and is_here and "://" not in str(place) else None


def _builds_pipeline(module: str, imports: list[Any]) -> bool:
    """Tell whether Kedro loads a module itself, or the module creates nodes."""
    is_loaded = module.endswith((".pipeline_registry", ".settings"))
    return is_loaded or any(one.module.startswith("kedro.pipeline") for one in imports)
