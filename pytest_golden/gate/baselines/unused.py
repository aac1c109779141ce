"""Baselines that no golden project uses any more: of a project that is gone, or of an output that is not declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError
from pytest_golden.gate.baselines.matching import match_outputs
from pytest_golden.gate.baselines.place import ProjectBaselines, find_baselines_folder
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest

_MOST_NAMED = 5


def find_unused_baselines(manifest: Manifest) -> Iterator[str]:
    """Say of each folder of baselines what in it is used by nothing; one sentence a project."""
    folder = find_baselines_folder(manifest.path, manifest.workspace_root)
    projects = {project.name: project for project in manifest.projects}
    for name in _list_names(folder):
        if name not in projects:
            told = f"{folder.name}/{show_path(name)} belongs to no golden project: remove it"
            yield f"{told}, or rename it to the project's present name"
            continue
        try:
            kept = ProjectBaselines(folder, name).list_paths()
        except BaselineError as error:
            yield f"{name}: {error}"
            continue
        unused = match_outputs(projects[name].outputs, (), kept).unused
        if unused:
            yield f"{name}: {describe_unused(folder.name, name, unused)}"


def describe_unused(folder_name: str, name: str, unused: Sequence[str]) -> str:
    """Say which baselines of a project are used by none of its outputs, and what removes them."""
    named = ", ".join(map(show_path, unused[:_MOST_NAMED]))
    more = f" and {len(unused) - _MOST_NAMED} more" if len(unused) > _MOST_NAMED else ""
    return f"{folder_name}/{name} has baselines that no output is compared with ({named}{more}): --golden-update removes them"


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []
