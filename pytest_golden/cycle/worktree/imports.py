"""Which modules of a checkout the gate's own conftests may import, as their texts tell: whoever edits one edits the judge.

Nothing is imported here, and nothing asked but what is given: `gate/changed` looks at what a process has loaded, and the
process that judges a proposal has loaded the proposal's.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

_MOST_READ = 500
_ENDINGS = frozenset({".py", ".pyc", ".pyd", ".so"})
_PACKAGE = "__init__"
# Where a package's sources lie in the checkout of one that is installed in place.
_SOURCES = "src"
_IMPORTERS = frozenset({"import_module", "__import__", "importorskip", "register_assert_rewrite"})
_PLUGINS = "pytest_plugins"


def find_imported(
    conftests: Sequence[str], files: Iterable[str], read: Callable[[str], str | None]
) -> Callable[[str], bool]:
    """Give what tells of a path whether these conftests may import it, or what they import does; also of one that is new.

    Paths are from the checkout's root. `files` are all that are there, `read` gives the text of one, None where it cannot.
    """
    known = {place: file for file in files if (place := name_module(file)) is not None}
    roots = tuple(dict.fromkeys(root for file in conftests for root in _list_roots(file)))
    found: set[str] = set()
    waiting, read_files = list(conftests), 0
    while waiting and read_files < _MOST_READ:
        file = waiting.pop()
        read_files += 1
        new = {*_locate(file, read(file) or "", roots, known)} - found
        found |= new
        waiting += sorted(known[place] for place in new if place in known)
    return lambda path: name_module(path) in found


def name_module(path: str) -> str | None:
    """Give a module's place in the checkout, without its ending; None where a path is no module."""
    file = PurePosixPath(path)
    if file.suffix not in _ENDINGS:
        return None
    stem = file.name.partition(".")[0]
    return str(file.parent if stem == _PACKAGE else file.parent / stem)


def _list_roots(conftest: str) -> Iterator[str]:
    """List where a conftest's modules may be looked for: beside it and above, as `rootdir` and `src` layouts have them."""
    for folder in PurePosixPath(conftest).parents:
        yield from (str(folder), str(folder / _SOURCES))


def _locate(file: str, text: str, roots: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for level, name in _list_names(text):
        if level:
            yield from _list_prefixes(str(PurePosixPath(file).parents[min(level, file.count("/") + 1) - 1]), name)
            continue
        yield from (place for root in roots for place in _list_prefixes(root, name))
        top = name.partition(".")[0]
        if not any(str(PurePosixPath(root, top)) in known for root in roots):
            # A place that only pytest's `pythonpath` or the environment names.
            elsewhere = [place.removesuffix(f"/{top}") for place in known if place.endswith(f"/{top}")]
            yield from (place for root in elsewhere for place in _list_prefixes(root, name))


def _list_prefixes(root: str, name: str) -> Iterator[str]:
    """List the places of a module and of all packages that it is in."""
    place = PurePosixPath(root)
    for part in filter(None, name.split(".")):
        place /= part
        yield str(place)


def _list_names(text: str) -> Iterator[tuple[int, str]]:
    """List what a module's text imports: how many folders up, and the dotted name from there."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.level, f"{node.module or ''}.{alias.name}".strip(".")) for alias in node.names)
        else:
            yield from ((0, name) for name in _list_named(node))


def _list_named(node: ast.AST) -> Iterator[str]:
    """List the modules that a text names in strings, for pytest or for the import system."""
    if isinstance(node, ast.Call):
        function = node.func
        called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        named: Iterable[ast.AST] = node.args if called in _IMPORTERS else ()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_plugins = any(isinstance(target, ast.Name) and target.id == _PLUGINS for target in targets)
        named = ast.walk(node.value) if is_plugins else ()
    else:
        return
    yield from (one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str))
