"""Let Kedro run only the nodes that depend on changed files, and the nodes that those need.

A changed file belongs to a node if it is a dataset of the catalog, the module of the node's function, or a module that this module
imports. If the code that builds the pipeline uses more of a module than node functions, the module can change which nodes exist. Then all
nodes run.

Runs in Kedro's interpreter, and needs only the standard library and Kedro.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narrowing_child as narrowing  # type: ignore[import-not-found]  # it stands beside this script

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names of functions that write files.
WRITING = re.compile(
    r"open|touch|Popen|(?:save|write|dump)\w*|to_(?:csv|excel|feather|hdf|html|json|orc|parquet|pickle|sql|xml)"
)
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
    code = Code(pipeline.nodes, folder)
    origins: set[str] = set()
    for path in changed:
        place = os.path.realpath(os.path.join(folder, path))
        of_data = {name for name, known in places.items() if known and narrowing.is_below(place, known)}
        if of_data and place in opened:
            raise narrowing.WholeError(f"{path} was read before the first node")
        found = {node.name for node in pipeline.nodes if not of_data.isdisjoint((*node.inputs, *node.outputs))}
        found |= code.find_nodes(place) if path.endswith(".py") else set()
        if not found:
            raise narrowing.WholeError(f"{path} is that of no node")
        origins |= found
    after = pipeline.from_nodes(*origins)
    needed = pipeline.to_nodes(*(node.name for node in after.nodes))
    kept = {node.name for node in needed.nodes}
    rest = [node for node in pipeline.nodes if node.name not in kept]
    return needed, _list_left_out(rest, needed.nodes, places, folder, code)


def _list_left_out(
    rest: list[Any], needed: list[Any], places: dict[str, str | None], folder: str, code: Code
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


class Code:
    """The modules of a project, and which nodes each of them can change."""

    def __init__(self, nodes: list[Any], folder: str) -> None:
        self._modules = {
            name: os.path.realpath(file)
            for name, module in sys.modules.copy().items()
            if (file := getattr(module, "__file__", None)) and _is_of_project(os.path.realpath(file), folder)
        }
        trees = {name: ast.parse(Path(file).read_bytes()) for name, file in self._modules.items()}
        self._imports = {name: list(_list_imports(name, self._modules[name], tree)) for name, tree in trees.items()}
        self._writing = {name for name, tree in trees.items() if any(map(_names_writing, ast.walk(tree)))}
        functions = {node.name: list(_take_apart(node.func)) for node in nodes}
        self._files = {name: {file for one in parts if (file := _find_file(one))} for name, parts in functions.items()}
        self._builders = self._find_builders(functions)

    def find_nodes(self, file: str) -> set[str]:
        """Return the names of the nodes that a module can change; none if the file is not a module.

        Raises:
            WholeError: the module can change which nodes exist.
        """
        if any(self._modules[name] == file for name in self._builders):
            raise narrowing.WholeError(f"{os.path.basename(file)} may change which nodes there are")
        return {
            name for name, files in self._files.items() if any(self._modules[one] == file for one in self._reach(files))
        }

    def may_write(self, node: str) -> bool:
        """Tell whether any code that a node's function can reach calls a function whose name suggests that it writes files."""
        return not self._writing.isdisjoint(self._reach(self._files[node]))

    def _find_builders(self, functions: dict[str, list[Any]]) -> set[str]:
        """Return the modules that build the pipeline, and everything that they use except node functions.

        The search starts with the modules that Kedro loads itself, that create nodes, or that no other module imports. A module that is
        used only for a node's function belongs to the node.
        """
        imported = {name for edges in self._imports.values() for name, _ in edges}
        todo = [
            name
            for name, edges in self._imports.items()
            if name not in imported
            or name.endswith((".pipeline_registry", ".settings"))
            or any(other.startswith("kedro.pipeline") for other, _ in edges)
        ]
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen or name not in self._modules:
                continue
            seen.add(name)
            for other, attribute in self._imports[name]:
                used = getattr(sys.modules[name], attribute, None) if attribute else None
                through = [node for node, parts in functions.items() if any(used is part for part in parts)]
                for node in through if other in self._modules else ():
                    self._files[node].add(self._modules[other])
                todo += [] if through else [other]
        return seen

    def _reach(self, files: set[str]) -> set[str]:
        """Return the modules in these files, and all modules that they import."""
        todo, seen = [name for name, file in self._modules.items() if file in files], set()
        while todo:
            name = todo.pop()
            if name in self._modules and name not in seen:
                seen.add(name)
                todo += [imported for imported, _ in self._imports[name]]
        return seen


def _is_of_project(file: str, folder: str) -> bool:
    """Tell whether a module is in the project's folder, but not in a virtual environment there."""
    is_installed = "site-packages" in file.split(os.sep) or narrowing.is_below(file, os.path.realpath(sys.prefix))
    return file.endswith(".py") and narrowing.is_below(file, folder) and not is_installed


def _list_imports(name: str, file: str, tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Yield the modules that a module imports, each with the name that it uses from it, or None if it can use the whole module."""
    is_package = os.path.basename(file) == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name(f"{'.' * node.level}{node.module or ''}", package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield (
                    (inner, None)
                    if inner in sys.modules
                    else (base, None if alias.name == "*" else alias.asname or alias.name)
                )


def _names_writing(part: ast.AST) -> bool:
    return WRITING.fullmatch(str(getattr(part, "attr", None) or getattr(part, "id", ""))) is not None


def _take_apart(function: Any) -> Iterator[Any]:
    """Yield a node's function and the functions inside it: those in a decorator or `partial`, and the object of a method."""
    todo, seen = [function], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        todo += [part for name in ("func", "__wrapped__", "__func__") if (part := getattr(one, name, None)) is not None]
        if isinstance(one, functools.partial):
            todo += filter(callable, (*one.args, *one.keywords.values()))
        todo += [cell.cell_contents for cell in getattr(one, "__closure__", None) or () if _holds_callable(cell)]
        owner = getattr(one, "__self__", None) or (None if hasattr(one, "__code__") else one)
        if owner is not None and not isinstance(owner, type):
            todo.append(type(owner))


def _holds_callable(cell: Any) -> bool:
    try:
        return callable(cell.cell_contents)
    except ValueError:
        # It is empty.
        return False


def _find_file(part: Any) -> str | None:
    code = getattr(part, "__code__", None)
    file = (
        code.co_filename
        if code is not None
        else getattr(sys.modules.get(getattr(part, "__module__", "")), "__file__", None)
    )
    return os.path.realpath(file) if file else None
