"""In what way a proposal touches the floor that it stands on: the manifest, the baselines, golden projects' own files. Pure."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_CONFIGURATIONS = frozenset({"pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml", ".pytest.toml"})
#: The file by which a checkout has its say in every gate below its folder.
HOOKS = "conftest.py"


class OwnFiles(NamedTuple):
    """A golden project's own files, from the checkout's root: its path, and its folder where that is not all there is."""

    project: str
    path: str
    folder: str | None


class ProtectedFloor(NamedTuple):
    """What a proposal may not touch unseen; all paths from the checkout's root.

    `is_imported` tells of a path whether the gate's conftests may import it.
    """

    manifest: str
    baselines: str
    projects: tuple[OwnFiles, ...]
    is_imported: Callable[[str], bool] = lambda _: False


def list_edits(changed: Sequence[str], floor: ProtectedFloor) -> tuple[Mapping[str, Any], ...]:
    """Give an entry of the weakened floor for each file of it that a proposal has changed, in a fixed order."""
    return tuple(_find_edits(sorted(changed), floor))


def _find_edits(changed: Iterable[str], floor: ProtectedFloor) -> Iterator[Mapping[str, Any]]:
    for path in changed:
        if path == floor.manifest:
            yield make_edit(None, "manifest", f"{path} was edited")
        elif _is_below(path, floor.baselines):
            project = path.removeprefix(floor.baselines).strip("/").partition("/")[0]
            yield make_edit(project or None, "baseline", f"the baseline {path} was edited")
        elif _loads_with_gate(path, floor):
            yield make_edit(None, "gate_configuration", f"{path}, which the gate loads, was edited")
        for own in floor.projects:
            if _is_below(path, own.path) or (own.folder is not None and _is_below(path, own.folder)):
                yield make_edit(own.project, "project_files", f"its own file {path} was edited")


def differs_for_pytest(before: bytes, now: bytes) -> bool:
    """Tell whether two pyproject.toml say different things to pytest; in doubt they do."""
    try:
        told = [tomllib.loads(text.decode("utf-8")).get("tool", {}).get("pytest") for text in (before, now)]
    except (ValueError, AttributeError):
        return True
    return bool(told[0] != told[1])


def make_configuration_edit(path: str) -> Mapping[str, Any]:
    """Give the entry for a changed configuration of pytest."""
    return make_edit(None, "gate_configuration", f"{path} says something else to pytest")


def _loads_with_gate(path: str, floor: ProtectedFloor) -> bool:
    file = PurePosixPath(path)
    if file.name not in _CONFIGURATIONS and file.name != HOOKS:
        return floor.is_imported(path)
    return PurePosixPath(floor.manifest).is_relative_to(file.parent) or floor.is_imported(path)


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def make_edit(project: str | None, kind: str, message: str) -> Mapping[str, Any]:
    """Give an entry of the weakened floor; `project` is None for what belongs to no one of them."""
    return {"project": project, "kind": kind, "message": message, "base": None, "head": None}
