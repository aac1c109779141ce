"""Finds the pipelines of a repository, for `golden init`: by their files, and by what a script says. Runs nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gateway.runners.choice import find_runner, list_runners
from pytest_golden.gateway.runners.runner import PipelineFile, RunnerError
from pytest_golden.gateway.write_set import CACHE_FOLDERS, WITHHELD_FOLDERS
from pytest_golden.history.unchanged_paths import is_test
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST_FOUND = 50
_MOST_LOOKED_AT = 50_000
# Folders that tools install or build: their content belongs to somebody else, or is made again.
_FOREIGN = frozenset({"node_modules", "site-packages", "dbt_packages", "dbt_modules", "target", "build", "dist"})
PASSED_OVER = _FOREIGN | CACHE_FOLDERS | WITHHELD_FOLDERS
_SCRIPT, _MOST_OF_SCRIPT = ".py", 1 << 18
_VENVS = (".venv", "venv", ".pixi/envs/default")


class FoundPipeline(NamedTuple):
    """A pipeline's file, relative to the folder that was searched and with `/`, and the runner that takes it."""

    path: str
    runner: str
    args: tuple[str, ...] | None = None

    @property
    def keys(self) -> dict[str, Any]:
        """Return what the manifest has to say, beside the path, for the runner to take it."""
        if self.args is None:
            return {}
        return {"runner": self.runner, **({"args": list(self.args)} if self.args else {})}


def find_pipelines(
    folder: Path,
    *,
    most_looked_at: int = _MOST_LOOKED_AT,
    most_found: int = MOST_FOUND,
    known: Collection[str] = (),
) -> tuple[FoundPipeline, ...]:
    """Find pipelines that a runner recognises with certainty below a folder, and whose real paths are not `known`; sorted by path.

    Search about `most_looked_at` files. Leave out hidden folders and links. Run nothing.
    """
    found = []
    for path in _list_candidates(folder, most_looked_at):
        one = None if os.path.realpath(path) in known else _recognise(path, folder)
        if one is not None:
            found.append(one)
            if len(found) == most_found:
                break
    return tuple(sorted(found))


def _list_candidates(folder: Path, most_looked_at: int) -> Iterator[Path]:
    suffixes = {suffix for runner in list_runners() if runner.is_sure for suffix in runner.suffixes} | {_SCRIPT}
    looked_at = 0
    for place, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in PASSED_OVER)
        looked_at += len(files)
        if looked_at > most_looked_at:
            return
        yield from (Path(place, name) for name in sorted(files) if Path(name).suffix.lower() in suffixes)


def _recognise(file: Path, folder: Path) -> FoundPipeline | None:
    path = file.relative_to(folder).as_posix()
    if file.suffix == _SCRIPT:
        return None if is_test(path) else _look_into(file, path)
    pipeline = PipelineFile(
        config=GoldenProjectConfig(name="found", path=file.name),
        file=file,
        project_dir=folder,
        path_variable=os.environ.get("PATH", os.defpath),
        python="",
    )
    try:
        runner = find_runner(pipeline)
    except RunnerError:
        return None
    return FoundPipeline(path, runner.name) if runner.is_sure else None


def _look_into(script: Path, path: str) -> FoundPipeline | None:
    try:
        with script.open("rb") as stream:
            text = stream.read(_MOST_OF_SCRIPT).decode("utf-8", "replace")
    except OSError:
        return None
    for runner in list_runners():
        args = runner.find_in_script(text)
        if args is not None:
            return FoundPipeline(path, runner.name, args)
    return None


def find_venv(folder: Path, path: str) -> str | None:
    """Return the environment beside a pipeline, or beside one of the folders above it, relative to the folder; None if there is none."""
    for place in PurePosixPath(path).parents:
        for name in _VENVS:
            venv = folder / place / name
            is_own = Path(sys.prefix).resolve() == venv.resolve()
            if (venv / "bin" / "python").exists() and not is_own:
                return (place / name).as_posix()
    return None
