"""Whether a file that a project read, when it last passed, may have changed. It asks nobody but what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.gate.changed.ignored import read_change
from pytest_golden.redaction.references import MARK
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.changed.paths import PathIndex
    from pytest_golden.gate.changed.tree import Tree

# What `read_change` gives of a file that is not there.
_GONE = float("inf")


def find_changed_read(
    reads: tuple[str, ...] | None, tree: Tree, since_pass: PathIndex, kept: frozenset[str], moment_ms: float
) -> str | None:
    """Say which of the files that it read changed, or cannot be known not to have; None where all are the same.

    `kept` are files that are nobody's input. `moment_ms` is when it began to run, 0 where that was elsewhere.
    """
    if reads is None:
        return "which files it reads is not recorded"
    for path in reads:
        told = None if path in kept else _find_change(path, tree, since_pass, moment_ms)
        if told is not None:
            return f"it reads {show_path(path)}, {told}"
    return None


def _find_change(path: str, tree: Tree, since_pass: PathIndex, moment_ms: float) -> str | None:
    if MARK in path:
        return "whose name is hidden"
    if tree.changed.find(path) is not None:
        return "which changed"
    if since_pass.find(path) is not None:
        return "which changed since it passed"
    if any(tree.submodules.find(place) == place for place in _list_at_or_above(path)):
        return "which is in a submodule"
    if tree.unwatched.find(path) is not None:
        return "which git does not watch"
    return _find_change_outside_git(path, tree, moment_ms)


def _find_change_outside_git(path: str, tree: Tree, moment_ms: float) -> str | None:
    changed_at = read_change(tree.root / path)
    if changed_at == _GONE:
        return "which is gone"
    is_ignored = tree.ignored.find(path) is not None or tree.logs.find(path) is not None
    return (
        "which git ignores, and which is newer than its last pass" if is_ignored and changed_at >= moment_ms else None
    )


def _list_at_or_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
