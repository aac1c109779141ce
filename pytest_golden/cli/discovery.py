"""Finds pipelines in a folder that a runner recognises with certainty: Odibi, dbt, notebooks. It reads; it runs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.gateway.fingerprint import CACHE_FOLDERS, WITHHELD_FOLDERS
from pytest_golden.gateway.runners import PipelineFile, RunnerError, find_runner
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FOUND = 50
_MOST_LOOKED_AT = 50_000
_CERTAIN = frozenset({"odibi", "dbt", "notebook"})
_SUFFIXES = frozenset({".yaml", ".yml", ".ipynb"})
# What tools install or build: whatever is in there belongs to somebody else, or is made anew.
_FOREIGN = frozenset({"node_modules", "site-packages", "dbt_packages", "dbt_modules", "target", "build", "dist"})


class FoundPipeline(NamedTuple):
    """A pipeline's file, relative to the folder that was searched and with `/`, and the runner that takes it."""

    path: str
    runner: str


def find_pipelines(folder: Path, *, most_looked_at: int = _MOST_LOOKED_AT) -> tuple[FoundPipeline, ...]:
    """Find pipelines below a folder, sorted by path; at most `MOST_FOUND`, among about that many files.

    Hidden folders and links are left out.
    """
    found = []
    for path in _list_candidates(folder, most_looked_at):
        runner = _recognise(path, folder)
        if runner is not None:
            found.append(FoundPipeline(path.relative_to(folder).as_posix(), runner))
            if len(found) == MOST_FOUND:
                break
    return tuple(sorted(found))


def _list_candidates(folder: Path, most_looked_at: int) -> Iterator[Path]:
    looked_at = 0
    for place, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if _is_worth_a_look(name))
        looked_at += len(files)
        if looked_at > most_looked_at:
            return
        yield from (Path(place, name) for name in sorted(files) if Path(name).suffix.lower() in _SUFFIXES)


def _is_worth_a_look(name: str) -> bool:
    return not name.startswith(".") and name not in _FOREIGN | CACHE_FOLDERS | WITHHELD_FOLDERS


def _recognise(file: Path, folder: Path) -> str | None:
    pipeline = PipelineFile(
        config=GoldenProjectConfig(name="found", path=file.name),
        file=file,
        project_dir=folder,
        path_variable=os.environ.get("PATH", os.defpath),
        python="",
    )
    try:
        name = find_runner(pipeline).name
    except RunnerError:
        return None
    return name if name in _CERTAIN else None
