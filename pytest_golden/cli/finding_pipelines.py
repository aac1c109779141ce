"""Finds the pipelines of a repository, for `golden init`: by their files, and by what a script says. Runs nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gateway.resolution import UV_PREFIX
from pytest_golden.gateway.runners.choice import find_runner, list_runners
from pytest_golden.gateway.runners.runner import PipelineFile, RunnerError, read_regular
from pytest_golden.history.unchanged_paths import PASSED_OVER, is_test
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_golden.gateway.runners.runner import Runner

MOST_FOUND = 50
_MOST_LOOKED_AT = 50_000
_SCRIPT, _MOST_OF_SCRIPT = ".py", 1 << 18
_YAML = frozenset({".yaml", ".yml"})
_DBT_PROFILES = "profiles.yml"
# Without a default: `os.environ["NAME"]`, dbt's `env_var('NAME')`, Odibi's `${NAME}`.
_ASKED_BY_SCRIPT = (re.compile(r"""\bos\.environ\[["'](\w+)["']\](?!\s*=[^=])"""),)
_ASKED_BY_YAML = (re.compile(r"""\benv_var\(\s*["'](\w+)["']\s*\)"""), re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}"))
_ABOVE = re.compile(r"(?<![\w./])(?:\.\./)+[\w.-]+(?:/[\w.-]+)*")
# What each pipeline has anyway.
_GIVEN = frozenset({"PATH", "HOME", "TMPDIR", "TZ", "LC_ALL", "PYTHONHASHSEED"})
_VENVS = (".venv", "venv", ".pixi/envs/default")


class FoundPipeline(NamedTuple):
    """A pipeline's file, relative to the folder that was searched and with `/`, and the runner that takes it.

    `args` is None if its file says all. `project_dir` is the folder from which it is started, if that is not its own. `packages` are
    the real paths of the packages that it uses.
    """

    path: str
    runner: str
    args: tuple[str, ...] | None = None
    project_dir: str | None = None
    packages: tuple[str, ...] = ()

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
    found: list[FoundPipeline] = []
    packages: set[str] = set()
    for path in _list_candidates(folder, most_looked_at):
        one = _recognise(path, folder)
        if one is None:
            continue
        packages.update(one.packages)
        if os.path.realpath(path) not in known:
            found.append(one)
            if len(found) == most_found:
                break
    return tuple(sorted(one for one in found if os.path.realpath((folder / one.path).parent) not in packages))


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
        return None if is_test(path) else _look_into(file, folder)
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
    return _describe(runner, file, folder) if runner.is_sure else None


def _describe(runner: Runner, file: Path, folder: Path, args: tuple[str, ...] | None = None) -> FoundPipeline:
    place = runner.find_folder(file)
    is_elsewhere = place != file.parent and place.is_relative_to(folder)
    project_dir = place.relative_to(folder).as_posix() if is_elsewhere else None
    packages = tuple(os.path.realpath(package) for package in runner.list_packages(file))
    return FoundPipeline(file.relative_to(folder).as_posix(), runner.name, args, project_dir, packages)


def _look_into(script: Path, folder: Path) -> FoundPipeline | None:
    text = _read_script(script)
    if text is None:
        return None
    for runner in list_runners():
        args = runner.find_in_script(text)
        if args is not None:
            return _describe(runner, script, folder, args)
    return None


def _read_script(path: Path) -> str | None:
    content = read_regular(path, _MOST_OF_SCRIPT)
    return None if content is None else content.decode("utf-8", "replace")


def list_asked(file: Path) -> tuple[str, ...]:
    """List the environment variables that a pipeline certainly asks for: by its file, and by dbt's profiles beside it."""
    found: dict[str, None] = {}
    for name in (file.name, _DBT_PROFILES) if file.name.startswith("dbt_project.") else (file.name,):
        text = _read_script(file.with_name(name))
        patterns = _ASKED_BY_YAML if file.suffix.lower() in _YAML else _ASKED_BY_SCRIPT
        found |= dict.fromkeys(word for pattern in patterns for word in pattern.findall(text or ""))
    return tuple(name for name in found if name not in _GIVEN)


def list_neighbours(folder: Path, pipeline: FoundPipeline) -> tuple[str, ...]:
    """List what a pipeline's file names by `../` and that is there, outside of its project's folder; relative to the folder.

    A symlink that leads out of the folder is not listed: who wrote the pipeline must not choose what of the machine it sees.
    """
    file, root = folder / pipeline.path, os.path.realpath(folder)
    own = file.parent if pipeline.project_dir is None else folder / pipeline.project_dir
    named = {os.path.normpath(file.parent / word) for word in _ABOVE.findall(_read_script(file) or "")}
    found = sorted(Path(name) for name in named if Path(name).exists())
    beside = [
        path
        for path in found
        if path.is_relative_to(folder) and not path.is_relative_to(own) and path not in own.parents
        if Path(os.path.realpath(path)).is_relative_to(root)
    ]
    outermost = [path for path in beside if not any(other in path.parents for other in beside)]
    return tuple(path.relative_to(folder).as_posix() for path in outermost)


def find_venv(folder: Path, path: str) -> str | None:
    """Return the environment beside a pipeline, or beside one of the folders above it, relative to the folder; None if there is none.

    Where a folder has no environment but a uv.lock, that is named, so that uv makes one.
    """
    for place in PurePosixPath(path).parents:
        for name in _VENVS:
            venv = folder / place / name
            is_own = Path(sys.prefix).resolve() == venv.resolve()
            if (venv / "bin" / "python").exists() and not is_own:
                return (place / name).as_posix()
        if (folder / place / "uv.lock").is_file():
            return f"{UV_PREFIX}{place.as_posix()}"
    return None
