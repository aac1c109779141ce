"""What changed in a working tree: tracked files, files that git ignores, and files that a project read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gateway import git
from pytest_golden.gateway.git import ask_git, find_commit, find_fork, find_top, run_git, split_paths
from pytest_golden.history.checkout import find_environments
from pytest_golden.history.inputs import is_by_product, is_ignored_environment, is_no_input, list_reports
from pytest_golden.history.unchanged_paths import PathIndex, list_above
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_golden.history.inputs import IgnoredThen


_MOST_LOOKED_AT = 5000
# The time of a change that is not known, as of a removed file: later than any other.
_UNKNOWN_TIME = float("inf")
# Each installation writes a list of all that is below it directly into it.
_PACKAGES = "node_modules"
# A folder and what came into it have the same time, but for a tick of the kernel's clock.
_TICK_MS = 20
_SECONDS = 120
# Whatever is configured: a change in a submodule counts.
_ALL = "--ignore-submodules=none"
# The tag of `ls-files -t` for a file that git watches; changes of other files would not be seen.
_WATCHED = "H"
# Whatever is configured: nothing but a file's own times and size says that git need not look into it.
_LOOKING = ("-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.fsmonitor=false")
_LOGS = (".log", ".tmp")


@dataclass(frozen=True, slots=True)
class Tree:
    """A working tree compared with one of its commits, `base`. Paths are relative to `root`, which is a real path.

    `changed` differ from the commit, including new files. `ignored` are what git ignores, without caches and virtual
    environments. `links` are tracked symlinks, `submodules` other repositories, `unwatched` files whose changes git was
    told to ignore, `environments` virtual environments whose versions are not known, `reports` new files that earlier runs
    and tools left, `logs` ignored files with the name of a log.
    """

    root: Path
    base: str
    changed: PathIndex
    ignored: PathIndex
    links: PathIndex
    submodules: PathIndex
    unwatched: PathIndex
    environments: PathIndex
    reports: tuple[str, ...] = ()
    logs: PathIndex = field(default_factory=lambda: PathIndex(()))
    targets: dict[str, str] = field(default_factory=dict)

    def find_newer_log(self, place: str, moment_ms: int) -> str | None:
        """Return an ignored log at or below a path that changed at a given time or later."""
        return next((log for log in self.logs.list_below(place) if read_change(self.root / log) >= moment_ms), None)

    def find_target(self, link: str) -> str:
        """Return where a symlink really leads, as an absolute path."""
        if link not in self.targets:
            self.targets[link] = os.path.realpath(self.root / link)
        return self.targets[link]


def read_tree(folder: Path, ref: str, products: Iterable[Path] = (), known: Iterable[Path] = ()) -> Tree:
    """Compare the working tree that a folder is in with the commit where its branch left a ref.

    `products` are files that this session itself writes, `known` virtual environments whose versions are known.

    Raises:
        SettingsError: no such ref; the message says what to fetch.
        GoldenError: git does not answer.
    """
    base = find_base(folder, ref)
    root = Path(os.path.realpath(find_top(folder) or folder))
    differing = _list(root, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", _ALL, base)
    new = _list(root, "ls-files", "-z", "--others", "--exclude-standard")
    environments = find_environments(new)
    homes = {os.path.realpath(home) for home in known}
    own = {os.path.realpath(product) for product in products}
    edits = [path for path in new if not path.startswith(environments) and str(root / path) not in own]
    # Source: git-ls-files(1), "Output": `tag mode object stage`, a tab and the path.
    lines = [line.partition("\t") for line in _list(root, "ls-files", "-z", "-t", "-v", "--stage")]
    held = [(*facts.split(" ")[:2], path) for facts, _, path in lines]
    ignored = _list(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    ignored_environments = [path for path in ignored if is_ignored_environment(root, path)]
    return Tree(
        root,
        base,
        PathIndex([*differing, *edits]),
        PathIndex(path for path in ignored if not is_no_input(root, path) and str(root / path) not in own),
        PathIndex(path for _, mode, path in held if mode == git.LINK_MODE),
        PathIndex(path for _, mode, path in held if mode == git.SUBMODULE_MODE),
        PathIndex(path for tag, _, path in held if tag != _WATCHED),
        PathIndex(
            path for path in (*environments, *ignored_environments) if os.path.realpath(root / path) not in homes
        ),
        list_reports(root, edits),
        PathIndex(path for path in ignored if path.endswith(_LOGS) and str(root / path) not in own),
    )


def find_base(folder: Path, ref: str) -> str:
    """Return the commit where the present branch left a ref; the ref's own if there is no common one, as in a shallow clone.

    Raises:
        SettingsError: no such ref; the message says what to fetch.
    """
    if not ref.strip() or ref.startswith("-"):
        raise SettingsError(f"--golden-changed {ref!r} is not a git ref: give a branch, a tag or a commit.")
    try:
        commit = find_commit(folder, ref)
    except GoldenError as error:
        raise SettingsError(f"--golden-changed {ref}: {error}") from None
    return find_fork(folder, commit)


def is_in_git(folder: Path) -> bool:
    """Tell whether a folder is in the working tree of a git repository; False also without git."""
    try:
        return run_git(folder, "rev-parse", "--is-inside-work-tree").stdout.strip() == "true"
    except GoldenError:
        return False


class HeldFiles(NamedTuple):
    """The files and the symlinks that a commit holds."""

    files: frozenset[str]
    links: frozenset[str]


def list_held(root: Path, commit: str) -> HeldFiles | None:
    """Return what a commit holds; None if git does not know it, as in a shallow clone."""
    try:
        # Source: git-ls-tree(1), "Output Format": `mode type object`, a tab and the path.
        lines = [line.partition("\t") for line in _list(root, "ls-tree", "-r", "-z", "--full-tree", commit)]
    except GoldenError:
        return None
    links = frozenset(path for facts, _, path in lines if facts.startswith(git.LINK_MODE))
    return HeldFiles(frozenset(path for _, _, path in lines) - links, links)


def _list(folder: Path, *arguments: str) -> list[str]:
    asked = (*_LOOKING, *arguments)
    return split_paths(ask_git(folder, *asked, failing="git cannot tell what changed", longest_seconds=_SECONDS))


class IgnoredFiles:
    """Ignored files and folders below a checkout's root, by the time of their last change; read once, on first use.

    That time (ctime) cannot be set back, so an older file is the same; a newer one may have changed. No content is read.
    `products` are real paths that the session writes itself. With `is_own` a symlink counts as new: nobody looks at what it leads to.
    """

    def __init__(
        self, root: Path, paths: Collection[str], products: Collection[str] = (), *, is_own: bool = False
    ) -> None:
        self._root = root
        self._paths = paths
        self._products = products
        self._is_own = is_own
        self._newest: tuple[float, str] | None = None

    def list_own(self, paths: Collection[str]) -> IgnoredFiles:
        """Return those among a project's own inputs."""
        return IgnoredFiles(self._root, paths, self._products, is_own=True)

    def find_newer(self, moment_ms: int) -> str | None:
        """Return the path that changed last, if that was at `moment_ms` or later. A folder with too many files counts as new.

        A folder from which a file was removed has changed too.
        """
        if self._newest is None:
            self._newest = self._find_newest()
        changed_at, path = self._newest
        return path if changed_at >= moment_ms else None

    def _find_newest(self) -> tuple[float, str]:
        newest, left = (-_UNKNOWN_TIME, ""), _MOST_LOOKED_AT
        for path in self._paths:
            for file in self._list_files(path):
                left -= 1
                if left < 0:
                    return _UNKNOWN_TIME, path
                is_unknown = self._is_own and file.is_symlink()
                changed_at = _UNKNOWN_TIME if is_unknown else read_change(file)
                relative = str(file.relative_to(self._root))
                if changed_at > newest[0] and not self._is_explained(file, relative, changed_at):
                    newest = changed_at, relative
        return newest

    def _list_files(self, path: str) -> Iterator[Path]:
        place = self._root / path
        if not path.endswith("/"):
            yield from () if self._is_nobodys(place) else (place,)
            return
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if not is_by_product(name) and Path(folder).name != _PACKAGES]
            yield from (file for file in (Path(folder, name) for name in files) if not self._is_nobodys(file))
            yield Path(folder)

    def _is_explained(self, file: Path, relative: str, changed_at: float) -> bool:
        """Tell whether it is a report, or a folder in which only files changed that are not inputs."""
        if not file.is_dir() or file.is_symlink():
            return bool(list_reports(self._root, [relative]))
        try:
            beside = [entry for entry in file.iterdir() if read_change(entry) >= changed_at - _TICK_MS]
        except OSError:
            return False
        return any(
            self._is_nobodys(entry) or list_reports(self._root, [f"{relative}/{entry.name}"]) for entry in beside
        )

    def _is_nobodys(self, file: Path) -> bool:
        return str(file) in self._products or is_by_product(file.name)


def read_change(file: Path) -> float:
    """Return when a file changed in any way, in milliseconds since the epoch."""
    try:
        return file.lstat().st_ctime_ns / 1_000_000
    except OSError:
        # It was removed meanwhile, and other files may be too.
        return _UNKNOWN_TIME


def find_gone(root: Path, then: IgnoredThen | None, products: Collection[str]) -> PathIndex | str:
    """Return which of the files that git ignored then are gone, without `products` (real paths); or why that is not known."""
    if then is None:
        return "which files git ignored when it passed is not recorded"
    gone = []
    for name in then.names:
        if MARK in name:
            return f"git ignored {name} when it passed, whose name is hidden"
        # A folder's name keeps its slash: what is a file now is gone as a folder.
        if not os.path.lexists(f"{root}/{name}") and str(root / name) not in products:
            gone.append(name)
    return PathIndex(gone)


def find_changed_read(
    reads: tuple[str, ...] | None, tree: Tree, since_pass: PathIndex, kept: frozenset[str], moment_ms: float
) -> str | None:
    """Name a file that a project read and that has changed, or may have; None if all are the same.

    `kept` are files that are nobody's input. `moment_ms` is when it began to run, or 0 if it ran elsewhere.
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
    if any(tree.submodules.find(place) == place for place in (path, *list_above(path)) if place):
        return "which is in a submodule"
    if tree.unwatched.find(path) is not None:
        return "which git does not watch"
    return _find_change_outside_git(path, tree, moment_ms)


def _find_change_outside_git(path: str, tree: Tree, moment_ms: float) -> str | None:
    changed_at = read_change(tree.root / path)
    if changed_at == _UNKNOWN_TIME:
        return "which is gone"
    is_ignored = tree.ignored.find(path) is not None or tree.logs.find(path) is not None
    return (
        "which git ignores, and which is newer than its last pass" if is_ignored and changed_at >= moment_ms else None
    )
