"""Decide which paths may be inputs of a project: indexes of paths, patterns and links, and the files that no project claims.

Paths are relative to the checkout's root, with slashes. A path that ends with a slash stands for everything below it. Only
names are examined, never contents.
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.gateway.reads import UNWATCHED_FOLDERS
from pytest_golden.gateway.runners.choice import hides_ignored
from pytest_golden.gateway.write_set import CACHE_FOLDERS, VENV_MARK, WITHHELD_FOLDERS
from pytest_golden.regression.unexpected import is_named
from pytest_golden.settings import BASELINES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest

# Folders that tools install or build: their content belongs to somebody else, or is made again.
_FOREIGN = frozenset({"node_modules", "site-packages", "dbt_packages", "dbt_modules", "target", "build", "dist"})
#: The names of folders in which tools keep what they build or cache, and which no pipeline may write.
PASSED_OVER = _FOREIGN | CACHE_FOLDERS | WITHHELD_FOLDERS
_WILDCARD = re.compile(r"[*?\[]")
# Linux follows no more.
_MOST_LINKS = 40
# Tools search for these files in the folders above.
_CONFIGS = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "pytest.toml", "conftest.py", ".env"),
    *("dbt_project.yml", "profiles.yml", "packages.yml", "dependencies.yml", "package-lock.yml", "selectors.yml"),
    *("requirements.txt", "requirements-dev.txt", "requirements", "constraints.txt", "environment.yml"),
    *("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile", "Pipfile.lock", "pixi.toml", "pixi.lock"),
    *("package.json", "package-lock.json", "renv.lock", ".python-version", ".tool-versions", "mise.toml"),
)
_FOR_PEOPLE = re.compile(
    r"(?:docs?|\.github|\.gitlab|\.vscode|\.idea)/.*|(?:.*/)?(?:[^/]*\.(?:md|rst|adoc)|(?:README|CHANGELOG|LICENSE|NOTICE|AUTHORS"
    r"|CODEOWNERS)(?:\.[^/]*)?|\.gitignore|\.editorconfig|\.pre-commit-config\.yaml|\.gitlab-ci\.yml|mkdocs\.yml)",
    re.DOTALL,
)

_TESTS = re.compile(r"(?:.*/)?(?:tests?/.*|test_[^/]*\.py|tests?\.py|[^/]*_test\.py|conftest\.py)", re.DOTALL)


class PathIndex:
    """An index of paths by all folders above them. A lookup takes one step, whatever the number of paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        self._folders = tuple(path for path in self.paths if path.endswith("/"))
        self._at_or_below: dict[str, str] = {}
        for path in self.paths:
            place = path.rstrip("/")
            while place not in self._at_or_below:
                self._at_or_below[place] = path
                place = place.rpartition("/")[0]

    def find(self, place: str) -> str | None:
        """Return a path at or below a place, or a folder that holds the place; the root's place is empty."""
        found = self._at_or_below.get(place)
        return found if found is not None else next((one for one in self._folders if f"{place}/".startswith(one)), None)

    def find_named(self, pattern: str) -> str | None:
        """Return a path that a pattern names, or a folder in which it may name something."""
        return next(self.list_named(pattern), None)

    def list_named(self, pattern: str) -> Iterator[str]:
        """Yield all paths that a pattern names, and folders in which it may name something."""
        beginning = find_beginning(pattern)
        if self.find(beginning) is None:
            return
        for path in self.paths:
            if path.endswith("/"):
                if f"{beginning}/".startswith(path) or path.startswith(f"{beginning}/" if beginning else ""):
                    yield path
            elif is_named(path, pattern):
                yield path

    def list_below(self, place: str) -> tuple[str, ...]:
        """Return all paths at or below a place."""
        if place not in self._at_or_below:
            return ()
        prefix = f"{place}/" if place else ""
        return tuple(path for path in self.paths if path == place or path.startswith(prefix))


def find_beginning(pattern: str) -> str:
    """Return the folder, or the file, that all names of a pattern begin with."""
    wildcard = _WILDCARD.search(pattern)
    return pattern.rstrip("/") if wildcard is None else pattern[: wildcard.start()].rpartition("/")[0]


def list_links(path: str) -> tuple[str, ...]:
    """Return the symlinks on an absolute path, each at its real path, including a link at its end.

    If one of them gets another target, the content behind the path changes although no file has changed.
    """
    if os.path.realpath(path) == os.path.normpath(path):
        return ()
    found: list[str] = []
    anchor, *left = Path(path).parts
    here = anchor
    while left and len(found) < _MOST_LINKS:
        name = left.pop(0)
        place = os.path.normpath(Path(here, name))
        target = _read_link(place)
        if target is None:
            here = place
            continue
        found.append(place)
        left = [*target.parts, *left]
        if target.is_absolute():
            here = left.pop(0)
    return tuple(dict.fromkeys(found))


def leads_through(pattern: str, link: str, find_target: Callable[[str], str], root: str) -> bool:
    """Tell whether a pattern's wildcards may match a symlink whose target the pattern does not name.

    Both are relative to `root`, the absolute path of the checkout. `find_target` returns the absolute target of a link.
    """
    parts = pattern.split("/")
    for number in range(1, len(parts)):
        beginning = "/".join(parts[:number])
        if not _WILDCARD.search(beginning) or not is_named(link, beginning):
            continue
        if parts[number - 1] == "**":
            # It also names the same files at their real location.
            home = f"{root}/{find_beginning(pattern)}".rstrip("/")
            return not f"{find_target(link)}/".startswith(f"{home}/")
        if number == link.count("/") + 1:
            return True
    return False


def _read_link(place: str) -> Path | None:
    try:
        return Path(place).readlink()
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class InputPlaces:
    """The files, folders and patterns that are inputs of a project, relative to the checkout's root. `doubt` names one outside it.

    `folder` is the project's own. `configs` are the places above it where tools look for their settings. `links` are the
    symlinks that lead to any of these. `unseen` is its own folder, if it does not see the files that git ignores there.
    """

    places: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    doubt: str | None = None
    folder: str | None = None
    configs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unseen: str | None = None


class PlaceFinder:
    """Finds the input places of a manifest's projects in the checkout with this root, a real path.

    `judging` are files that can affect the judgement of every project.
    """

    def __init__(self, manifest: Manifest, root: Path, judging: Iterable[Path] = ()) -> None:
        self._root = str(root)
        self._workspace = os.path.realpath(manifest.workspace_root)
        self._baselines = str(find_baselines_folder(manifest.path, manifest.workspace_root))
        self._manifest = None if manifest.path is None else os.path.realpath(manifest.path)
        self._judging = tuple(place for place in map(self.relate, map(os.path.realpath, map(str, judging))) if place)

    def find(self, project: GoldenProjectConfig) -> InputPlaces:
        """Return the places of a project."""
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
            own if hides_ignored(project, Path(self._workspace)) else None,
        )

    def list_kept(self) -> tuple[str, ...]:
        """Return the manifest and the folder of all baselines. Their parts are compared project by project."""
        kept = (self._baselines, *([] if self._manifest is None else [self._manifest]))
        return tuple(place for place in map(self.relate, kept) if place)

    def relate(self, path: str) -> str | None:
        """Return a real path relative to the checkout's root, empty for the root itself; None for a path outside it."""
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
        """Return the pattern at the real location of its files, if its beginning contains a symlink."""
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
    """Return the words of all commands and set variables that may name a file, also after the equals sign of an option."""
    commands: Sequence[Sequence[str]] = [*project.before, *project.after, project.command or ()]
    # Such as PYTHONPATH.
    values = [entry for value in project.set_env.values() for entry in value.split(os.pathsep)]
    # A program with its full path is left out: installed programs are compared by their versions.
    words = [command[1:] if command and os.path.isabs(command[0]) else command for command in commands]  # noqa: PTH117 - text
    for word in [*values, *project.args, *chain.from_iterable(words)]:
        yield word
        if "=" in word:
            yield word.partition("=")[2]


def _list_configs(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield from (f"{folder}/{name}" if folder else name for name in _CONFIGS)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a NUL
        return False


class Claims:
    """The files that the projects of a manifest claim. A project without `depends_on` may read any unclaimed file.

    A pipeline sees the whole workspace. A file is claimed if it is in the folder of another project, or if a `depends_on`
    names it. No project reads a file that is only for people, such as documentation.

    `kept` are further places that are not a project's inputs, such as the manifest, whose entries are compared instead.
    """

    def __init__(self, everyone: Collection[InputPlaces], kept: Iterable[str] = ()) -> None:
        folders = {places.folder for places in everyone if places.folder is not None}
        # A folder that holds those of others is not a claim to what else is in it.
        holding = {above for folder in folders for above in list_above(folder)}
        self._places = {*(folders - holding), *kept}
        self._patterns: dict[str, set[str]] = {}
        for pattern in {pattern for places in everyone for pattern in places.patterns}:
            self._patterns.setdefault(find_beginning(pattern), set()).add(pattern)
        self._known: dict[int, tuple[PathIndex, str | None]] = {}

    def find_unclaimed(self, index: PathIndex) -> str | None:
        """Return the first unclaimed path; each index is searched once."""
        if id(index) not in self._known:
            # The index is kept too, since an id may be given again.
            self._known[id(index)] = index, next(iter(self.leave_unclaimed(index.paths)), None)
        return self._known[id(index)][1]

    def leave_unclaimed(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the unclaimed paths."""
        return tuple(path for path in paths if not self._is_claimed(path))

    def _is_claimed(self, path: str) -> bool:
        if is_for_people(path):
            return True
        places = (path, *list_above(path))
        patterns = chain.from_iterable(self._patterns.get(place, ()) for place in places)
        return any(place in self._places for place in places) or any(is_named(path, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class OwnReads:
    """What the files that a project's last pass opened say about its own folder.

    `held` are the files of that commit, without symlinks, whose targets are recorded instead. Files at
    or below `others`, or named by `patterns`, count whether they were read or not.
    """

    folder: str
    reads: tuple[str, ...]
    held: frozenset[str]
    others: PathIndex
    patterns: tuple[str, ...] = ()

    def is_unread(self, path: str) -> bool:
        """Tell whether the project does not read a changed file.

        It does not read a file that existed and was not opened. It does not read a new file if similar files existed in the same folder and
        none of them was opened: a pipeline that looks for such files would have opened them.
        """
        if path.endswith("/") or (self.folder and not path.startswith(f"{self.folder}/")):
            return False
        if path in self.reads or self._is_named(path) or self._is_unwatched(path):
            return False
        if path in self.held:
            return True
        if is_for_people(path):
            return not any(map(is_for_people, self.reads))
        kind = _kind_of(path)
        return any(_kind_of(one) == kind for one in self.held) and all(_kind_of(one) != kind for one in self.reads)

    def _is_unwatched(self, path: str) -> bool:
        """Tell whether reads of a file are never recorded, because it is in a cache or an environment, even if git tracks it."""
        is_in_environment = any(f"{folder}/{VENV_MARK}" in self.held for folder in list_above(path))
        # For a compiled module its source is recorded.
        return is_in_environment or path.endswith(".pyc") or not UNWATCHED_FOLDERS.isdisjoint(path.split("/")[:-1])

    def _is_named(self, path: str) -> bool:
        places = (path, *list_above(path))
        above = any(place in self.others.paths for place in places)
        return above or any(is_named(path, pattern) for pattern in self.patterns)


def _kind_of(path: str) -> tuple[str, str]:
    """Return the folder and the suffix of a file."""
    folder, _, name = path.rpartition("/")
    return folder, name.rpartition(".")[2] if "." in name else ""


def leave_out(index: PathIndex, is_left_out: Callable[[str], bool] | None) -> PathIndex:
    """Return the paths without some of them."""
    if is_left_out is None:
        return index
    kept = [path for path in index.paths if not is_left_out(path)]
    return index if len(kept) == len(index.paths) else PathIndex(kept)


def is_passed_over(path: str) -> bool:
    """Tell whether a file is in a folder where tools keep build products, caches or logs."""
    return any(part.startswith(".") or part in PASSED_OVER or part == "logs" for part in path.split("/"))


def is_of_pipelines(path: str) -> bool:
    """Tell whether a tracked file can belong to a pipeline: it is not documentation, a test, a baseline, or hidden."""
    folders = path.split("/")
    is_aside = any(part.startswith(".") for part in folders) or BASELINES_FOLDER in folders[:-1]
    return not (is_aside or is_for_people(path) or is_test(path))


def is_for_people(path: str) -> bool:
    """Tell whether a file of a checkout is only for people, such as documentation. No pipeline reads it."""
    return _FOR_PEOPLE.fullmatch(path) is not None


def is_test(path: str) -> bool:
    """Tell by its name whether a file is a test."""
    return _TESTS.fullmatch(path) is not None


def list_above(path: str) -> Iterator[str]:
    """Return the folders above a path; the root comes last."""
    place = path.rstrip("/")
    while place:
        place = place.rpartition("/")[0]
        yield place
