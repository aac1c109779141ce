"""Which tasks of a pipeline a module of the project can change. Shared by the scripts that run a part of an engine's Python code.

Needs only the standard library.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narrowing_child as narrowing  # type: ignore[import-not-found]  # it stands beside this script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Names that code uses to write files or tables, or to start a program that may do so.
WRITING = re.compile(
    r"open|touch|Popen|subprocess|system|connect|raw_sql|(?:save|write|dump|execute|insert_|upload|sink)\w*"
    r"|to_(?:csv|excel|feather|hdf|html|json|orc|parquet|pickle|sql|xml)"
)
# Functions that load the tasks of the modules that they receive, and use nothing else of these.
LOADING = re.compile(r"load_assets_from_(?:modules|package_module)")


class Import(NamedTuple):
    """A module that another one imports: as a whole (`attribute` is None), or one name from it; `name` is its name there."""

    module: str
    attribute: str | None
    name: str


class Code:
    """The modules of a project, and which tasks each of them can change.

    `tasks` maps the name of each task to its function. `is_builder` tells of a module, by its name and imports, that it builds the
    pipeline. A module that no other module imports always does. `unwrap` returns the function of a task that a module holds.
    """

    def __init__(
        self,
        tasks: dict[str, Any],
        folder: str,
        is_builder: Callable[[str, list[Import]], bool] = lambda _name, _imports: False,
        unwrap: Callable[[Any], Any] = lambda held: held,
    ) -> None:
        self._unwrap = unwrap
        self._modules = {
            name: os.path.realpath(file)
            for name, module in sys.modules.copy().items()
            if (file := getattr(module, "__file__", None)) and _is_of_project(os.path.realpath(file), folder)
        }
        self._trees = {name: ast.parse(Path(file).read_bytes()) for name, file in self._modules.items()}
        self._imports = {
            name: list(_list_imports(name, self._modules[name], tree)) for name, tree in self._trees.items()
        }
        self._writing = {name for name, tree in self._trees.items() if any(map(_names_writing, ast.walk(tree)))}
        self._parts = {name: list(_take_apart(function)) for name, function in tasks.items()}
        self._files = {
            name: {file for one in parts if (file := _find_file(one))} for name, parts in self._parts.items()
        }
        self._builders = self._find_builders(is_builder)

    def find_tasks(self, file: str) -> set[str]:
        """Return the names of the tasks that a module can change; none if the file is not a module.

        Raises:
            WholeError: the module can change which tasks exist.
        """
        if any(self._modules[name] == file for name in self._builders):
            raise narrowing.WholeError(f"{os.path.basename(file)} may change which tasks there are")
        return {
            name for name, files in self._files.items() if any(self._modules[one] == file for one in self._reach(files))
        }

    def may_write(self, task: str) -> bool:
        """Tell whether any code that a task can reach uses a name that suggests that it writes files or tables."""
        return not self._writing.isdisjoint(self._reach(self._files[task]))

    def _find_builders(self, is_builder: Callable[[str, list[Import]], bool]) -> set[str]:
        """Return the modules that build the pipeline, and everything that they use except tasks.

        A module that is used only for a task belongs to the task.
        """
        imported = {one.module for edges in self._imports.values() for one in edges}
        todo = [name for name, edges in self._imports.items() if name not in imported or is_builder(name, edges)]
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen or name not in self._modules:
                continue
            seen.add(name)
            for one in self._imports[name]:
                through = self._find_through(name, one) if one.module in self._modules else []
                for task in through:
                    self._files[task].add(self._modules[one.module])
                todo += [] if through else [one.module]
        return seen

    def _find_through(self, name: str, one: Import) -> list[str]:
        """Return the tasks for which alone a module imports another one; none if it uses something else of it."""
        if one.attribute is not None:
            return self._find_made_of(getattr(sys.modules[name], one.attribute, None))
        tree = self._trees[name]
        used: list[list[str]] = []
        known: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_name(node.value, one.name):
                known.add(node.value)
                used.append(self._find_made_of(getattr(sys.modules[one.module], node.attr, None)))
            elif isinstance(node, ast.Call) and LOADING.fullmatch(_name_of(node.func)):
                given = (*node.args, *(option.value for option in node.keywords))
                loaded = [inner for part in given for inner in ast.walk(part) if _is_name(inner, one.name)]
                known.update(loaded)
                used += [self._find_made_in(one.module)] if loaded else []
        others = [node for node in ast.walk(tree) if _is_name(node, one.name) and node not in known]
        return [] if others or not all(used) else [task for tasks in used for task in tasks]

    def _find_made_of(self, used: Any) -> list[str]:
        function = self._unwrap(used)
        return [task for task, parts in self._parts.items() if any(function is part for part in parts)]

    def _find_made_in(self, module: str) -> list[str]:
        return [task for task, files in self._files.items() if self._modules[module] in files]

    def _reach(self, files: set[str]) -> set[str]:
        """Return the modules in these files, and all modules that they import."""
        todo, seen = [name for name, file in self._modules.items() if file in files], set()
        while todo:
            name = todo.pop()
            if name in self._modules and name not in seen:
                seen.add(name)
                todo += [one.module for one in self._imports[name]]
        return seen


def _is_of_project(file: str, folder: str) -> bool:
    """Tell whether a module is in the project's folder, but not in a virtual environment there."""
    is_installed = "site-packages" in file.split(os.sep) or narrowing.is_below(file, os.path.realpath(sys.prefix))
    return file.endswith(".py") and narrowing.is_below(file, folder) and not is_installed


def _list_imports(name: str, file: str, tree: ast.Module) -> Iterator[Import]:
    is_package = os.path.basename(file) == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name(f"{'.' * node.level}{node.module or ''}", package)
            for alias in node.names:
                inner, known = f"{base}.{alias.name}", alias.asname or alias.name
                if inner in sys.modules:
                    yield Import(inner, None, known)
                else:
                    yield Import(base, None if alias.name == "*" else known, known)


def _name_of(part: ast.AST) -> str:
    return str(getattr(part, "attr", None) or getattr(part, "id", ""))


def _is_name(part: ast.AST, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name


def _names_writing(part: ast.AST) -> bool:
    return WRITING.fullmatch(_name_of(part)) is not None


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
