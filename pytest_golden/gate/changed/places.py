"""Where the inputs of a project lie in its checkout, as far as its declaration tells. It looks at names only."""

from __future__ import annotations

import glob
import os
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.baselines import find_baselines_folder
from pytest_golden.gate.changed.links import list_links
from pytest_golden.gate.changed.paths import find_beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest

# Tools go up from where they run until they find one of these.
_CONFIGS = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "pytest.toml", "conftest.py", ".env"),
    *("dbt_project.yml", "profiles.yml", "packages.yml", "dependencies.yml", "package-lock.yml", "selectors.yml"),
    *("requirements.txt", "requirements-dev.txt", "requirements", "constraints.txt", "environment.yml"),
    *("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile", "Pipfile.lock", "pixi.toml", "pixi.lock"),
    *("package.json", "package-lock.json", "renv.lock", ".python-version", ".tool-versions", "mise.toml"),
)


@dataclass(frozen=True, slots=True)
class InputPlaces:
    """Files and folders, and patterns of more, relative to the checkout's root; `doubt` names what lies outside it.

    `folder` is the project's own. `configs` are where tools look for their settings in the folders above it, `links` the
    symlinks that lead to all of these.
    """

    places: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    doubt: str | None = None
    folder: str | None = None
    configs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class PlaceFinder:
    """Finds the places of a manifest's projects in the checkout with this root, a real path.

    `judging` are files that take part in the judgement of every project.
    """

    def __init__(self, manifest: Manifest, root: Path, judging: Iterable[Path] = ()) -> None:
        self._root = str(root)
        self._workspace = os.path.realpath(manifest.workspace_root)
        self._baselines = str(find_baselines_folder(manifest.path, manifest.workspace_root))
        self._manifest = None if manifest.path is None else os.path.realpath(manifest.path)
        self._judging = tuple(place for place in map(self.relate, map(os.path.realpath, map(str, judging))) if place)

    def find(self, project: GoldenProjectConfig) -> InputPlaces:
        """Give the places of a project."""
        folder = self._find_folder(project)
        named = [folder, self._join(project.path), f"{self._baselines}/{project.name}"]
        named += [self._join(mount.path) for mount in project.mounts]
        named += [self._join(path) for path in project.pass_files]
        named += self._find_named(os.path.realpath(folder), _list_words(project))
        wanted = [os.path.realpath(path) for path in named]
        declared = [*project.depends_on, *filter(None, map(self._follow_pattern, project.depends_on))]
        patterns = [self._place_pattern(pattern) for pattern in declared]
        places = [self.relate(path) for path in wanted]
        named += [self._join(find_beginning(pattern)) for pattern in project.depends_on]
        links = [self.relate(link) for path in named for link in list_links(path)]
        own = places[0]
        outside = [
            path for path, place in zip([*wanted, *declared], [*places, *patterns], strict=True) if place is None
        ]
        return InputPlaces(
            tuple(dict.fromkeys(place for place in (*places, *self._judging) if place is not None)),
            tuple(pattern for pattern in patterns if pattern is not None),
            outside[0] if outside else None,
            own,
            () if own is None else tuple(_list_configs(own)),
            tuple(dict.fromkeys(filter(None, links))),
        )

    def list_kept(self) -> tuple[str, ...]:
        """Give the manifest and the folder of all baselines: what concerns a project in them is compared by itself."""
        kept = (self._baselines, *([] if self._manifest is None else [self._manifest]))
        return tuple(place for place in map(self.relate, kept) if place)

    def relate(self, path: str) -> str | None:
        """Give a real path relative to the checkout's root, itself as nothing; None for one outside it."""
        if path == self._root:
            return ""
        prefix = f"{self._root.rstrip(os.sep)}{os.sep}"
        return path.removeprefix(prefix).replace(os.sep, "/") if path.startswith(prefix) else None

    def _find_folder(self, project: GoldenProjectConfig) -> str:
        folder = self._join(project.project_dir or project.path)
        is_folder = project.project_dir is not None or Path(folder).is_dir()
        # A path that is a symlink lies where it is named, not where it leads.
        return folder if is_folder else self._join(posixpath.dirname(project.path) or ".")

    def _find_named(self, folder: str, words: Iterable[str]) -> Iterator[str]:
        """Find the files and folders outside a project's own that its commands name."""
        for word in words:
            named = os.path.normpath(os.path.join(folder, os.path.expanduser(word)))  # noqa: PTH111, PTH118 - text, and an unknown user is a name
            if not f"{named}{os.sep}".startswith(f"{folder}{os.sep}") and _exists(named):
                yield named

    def _follow_pattern(self, pattern: str) -> str | None:
        """Give the pattern where its files really lie, if its beginning leads over a symlink."""
        beginning = find_beginning(pattern)
        named = self._join(beginning)
        real = os.path.realpath(named)
        return None if real == os.path.normpath(named) else f"{glob.escape(real)}{pattern[len(beginning) :]}"

    def _place_pattern(self, pattern: str) -> str | None:
        beginning = "" if posixpath.isabs(pattern) else f"{glob.escape(self._workspace)}/"
        whole = posixpath.normpath(f"{beginning}{os.path.expanduser(pattern)}")  # noqa: PTH111 - as above
        prefix = f"{glob.escape(self._root).rstrip('/')}/"
        return whole.removeprefix(prefix) if whole.startswith(prefix) else None

    def _join(self, path: str) -> str:
        return os.path.join(self._workspace, os.path.expanduser(path))  # noqa: PTH111, PTH118 - as above


def _list_words(project: GoldenProjectConfig) -> Iterator[str]:
    """Give the words of all commands and set variables that may name a file, also behind an option's equals sign."""
    commands: Sequence[Sequence[str]] = [*project.before, *project.after, project.command or ()]
    # Such as PYTHONPATH.
    values = [entry for value in project.set_env.values() for entry in value.split(os.pathsep)]
    for word in [*values, *project.args, *(word for command in commands for word in _leave_program(command))]:
        yield word
        if "=" in word:
            yield word.partition("=")[2]


def _list_configs(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield from (f"{folder}/{name}" if folder else name for name in _CONFIGS)


def _leave_program(command: Sequence[str]) -> Sequence[str]:
    """Leave out a program by its whole path: what is installed is told by its version."""
    return command[1:] if command and os.path.isabs(command[0]) else command  # noqa: PTH117 - text


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a NUL
        return False
