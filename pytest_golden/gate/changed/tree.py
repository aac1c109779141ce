"""What git says of the working tree since a commit: a few questions for all projects together. Read-only."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.changed.ignored import read_change
from pytest_golden.gate.changed.paths import PathIndex
from pytest_golden.gate.changed.reports import list_reports
from pytest_golden.gate.checkout import find_environments
from pytest_golden.gate.git import find_commit, last_line, run_git, run_git_raw
from pytest_golden.gate.inputs import is_by_product
from pytest_golden.gateway.fingerprint import VENV_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS = 120
_LINK, _SUBMODULE = "120000", "160000"
# Whatever is configured: a change in a submodule is one.
_ALL = "--ignore-submodules=none"
# What `ls-files -t` says of a file that git looks at; of others it would not see a change.
_WATCHED = "H"
# Whatever is configured: nothing but a file's own times and size says that git need not look into it.
_LOOKING = ("-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.fsmonitor=false")
_LOGS = (".log", ".tmp")


@dataclass(frozen=True, slots=True)
class Tree:
    """A working tree beside one of its commits, `base`. Paths are relative to `root`, which is a real path.

    `changed` differ from the commit, new files among them. `ignored` are what git does not hold, without caches and
    virtual environments. `links` are symlinks that it does, `submodules` other repositories, `unwatched` files of which
    git was told not to see a change, `environments` virtual ones of which nobody knows the versions, `reports` new ones that earlier runs and tools left,
    `logs` ignored ones by their names.
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
        """Give an ignored log at or below a place that changed at a moment or after it."""
        return next((log for log in self.logs.list_below(place) if read_change(self.root / log) >= moment_ms), None)

    def find_target(self, link: str) -> str:
        """Give where a symlink really leads, as an absolute path."""
        if link not in self.targets:
            self.targets[link] = os.path.realpath(self.root / link)
        return self.targets[link]


def is_in_git(folder: Path) -> bool:
    """Tell whether a folder is in the working tree of a git repository; False also without git."""
    try:
        return run_git(folder, "rev-parse", "--is-inside-work-tree").stdout.strip() == "true"
    except GoldenError:
        return False


def read_tree(folder: Path, ref: str, products: Iterable[Path] = (), known: Iterable[Path] = ()) -> Tree:
    """Compare the working tree that a folder is in with where its branch left a ref.

    `products` are files that this session itself writes, `known` virtual environments of which the versions are.

    Raises:
        SettingsError: no such ref; the message says what to fetch.
        GoldenError: git does not answer.
    """
    base = find_base(folder, ref)
    root = Path(os.path.realpath(os.fsdecode(_ask(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n"))))
    differing = _list(root, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", _ALL, base)
    new = _list(root, "ls-files", "-z", "--others", "--exclude-standard")
    environments = find_environments(new)
    homes = {os.path.realpath(home) for home in known}
    own = {os.path.realpath(product) for product in products}
    edits = [path for path in new if not path.startswith(environments) and str(root / path) not in own]
    everything = [_HeldPath(*record.split(" ", 3)) for record in _list(root, "ls-files", "-z", "-t", "-v", "--stage")]
    ignored = _list(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    ignored_environments = [path for path in ignored if _is_environment(root, path)]
    return Tree(
        root,
        base,
        PathIndex([*differing, *edits]),
        PathIndex(path for path in ignored if not is_no_input(root, path) and str(root / path) not in own),
        PathIndex(held.path for held in everything if held.mode == _LINK),
        PathIndex(held.path for held in everything if held.mode == _SUBMODULE),
        PathIndex(held.path for held in everything if held.tag != _WATCHED),
        PathIndex(path for path in (*environments, *ignored_environments) if _real(root, path) not in homes),
        list_reports(root, edits),
        PathIndex(path for path in ignored if path.endswith(_LOGS) and str(root / path) not in own),
    )


def find_base(folder: Path, ref: str) -> str:
    """Give the commit where the present branch left a ref; without a common one, as in a shallow clone, the ref's own.

    Raises:
        SettingsError: no such ref; the message says what to fetch.
    """
    if not ref.strip() or ref.startswith("-"):
        message = f"--golden-changed {ref!r} is no git ref: give a branch, a tag or a commit."
        raise SettingsError(message)
    try:
        commit = find_commit(folder, ref)
    except GoldenError as error:
        message = f"--golden-changed {ref}: {error}"
        raise SettingsError(message) from None
    common = run_git(folder, "merge-base", commit, "HEAD")
    return commit if common.returncode else common.stdout.strip()


class _HeldPath:
    """One line of `git ls-files -t -v --stage`. Source: git-ls-files(1), "Output"."""

    __slots__ = ("mode", "path", "tag")

    def __init__(self, tag: str, mode: str, _blob: str, rest: str) -> None:
        self.tag = tag
        self.mode = mode
        self.path = rest.partition("\t")[2]


def is_no_input(root: Path, ignored: str) -> bool:
    """Tell whether an ignored path is a cache, what tools leave, or a virtual environment, which is told by its versions."""
    return any(map(is_by_product, ignored.rstrip("/").split("/"))) or _is_environment(root, ignored)


def _is_environment(root: Path, ignored: str) -> bool:
    return ignored.endswith("/") and (root / ignored / VENV_MARK).exists()


def _real(root: Path, path: str) -> str:
    return os.path.realpath(root / path)


def _list(folder: Path, *arguments: str) -> list[str]:
    return [path for path in os.fsdecode(_ask(folder, *arguments)).split("\0") if path]


def _ask(folder: Path, *arguments: str) -> bytes:
    done = run_git_raw(folder, *_LOOKING, *arguments, longest_seconds=_SECONDS)
    if done.returncode:
        message = f"git cannot tell what changed ({last_line(os.fsdecode(done.stderr))})."
        raise GoldenError(message)
    return done.stdout
