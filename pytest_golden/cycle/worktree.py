"""The worktree and the branch of a cycle, and the git settings that decide what a checkout contains.

A cycle's commands work in the worktree, so git is never asked in a way that trusts what they left there.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle.proposal_floor import make_edit
from pytest_golden.errors import GoldenError
from pytest_golden.gate.state_folder import make_own_folder
from pytest_golden.gateway.git import SUBMODULE_MODE, ask_git, last_line, run_git, run_git_raw, split_paths
from pytest_golden.gateway.scratch import remove_tree
from pytest_golden.history.checkout import descends
from pytest_golden.verify.base_worktree import find_temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from subprocess import CompletedProcess


_LONGEST_SECONDS = 3600
_PREFIX = f"golden-cycle-{os.getuid()}-"
_NAME, _ADDRESS = "golden cycle", "golden-cycle@localhost"
_NEUTRAL = (
    *("-c", f"user.name={_NAME}", "-c", f"user.email={_ADDRESS}", "-c", "commit.gpgsign=false"),
    # Hooks of the repository are for people's commits.
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)
_SECTIONS = ("filter.", "include.", "includeif.", "extensions.", "core.sparsecheckout")
_KEYS = frozenset({"core.attributesfile", "core.autocrlf", "core.bare", "core.eol", "core.symlinks", "core.worktree"})
_FILES = ("info/attributes", "info/sparse-checkout")


class CycleWorktree:
    """The worktree of one cycle, on its branch. It lies outside the checkout, in a folder that only this user may enter."""

    def __init__(self, checkout: Path, cycle_id: str, base: str, branch: str) -> None:
        self.checkout = checkout
        self.base = base
        self.branch = branch
        self.folder = find_temporary_folder(checkout) / f"{_PREFIX}{cycle_id}"
        # Git names its record of a worktree after the last part of the path, and this part is unique.
        self.root = self.folder / cycle_id
        self._git_folder = _find_git_folder(checkout) / "worktrees" / cycle_id

    def open(self) -> None:
        """Create the worktree, or reuse the one that a killed cycle left.

        Raises:
            GoldenError: git cannot create it, or the folder belongs to somebody else.
        """
        try:
            make_own_folder(self.folder)
        except OSError as error:
            told = f"{self.folder} cannot be made: {error.strerror}" if error.strerror else str(error)
            raise GoldenError(told) from None
        if self._is_own_folder() and self._git_folder.is_dir():
            self._repair()
            return
        self._forget()
        is_new = self._find_commit() is None
        wanted = ["-b", self.branch, str(self.root), self.base] if is_new else [str(self.root), self.branch]
        added = run_git(
            self.checkout, *_NEUTRAL, "worktree", "add", "--quiet", *wanted, longest_seconds=_LONGEST_SECONDS
        )
        if added.returncode:
            raise GoldenError(f"git cannot make the cycle's worktree: {last_line(added.stderr)}")

    def take_work(self, message: str) -> str:
        """Put everything in the worktree on the branch, commit what is uncommitted under a neutral name, and return the commit.

        Raises:
            GoldenError: the worktree is gone, or git cannot.
        """
        if not self._is_own_folder():
            raise GoldenError("the command removed the cycle's worktree; what it had committed is on the branch")
        if not self._git_folder.is_dir():
            raise GoldenError("the command removed what git knows of the cycle's worktree, or the repository itself")
        self._repair()
        refused = self._ask("add", "--all")
        if refused.returncode:
            # A repository without a commit, say: the rest is kept all the same.
            self._ask("add", "--all", "--ignore-errors")
        if self._ask("diff", "--cached", "--quiet").returncode:
            author = f"--author={_NAME} <{_ADDRESS}>"
            self._require("commit", "--quiet", "--no-verify", "--allow-empty", author, "-m", message)
        commit = self._require("rev-parse", "--verify", "HEAD^{commit}")
        self._point_branch(commit)
        if refused.returncode:
            told = next(iter(refused.stderr.strip().splitlines()), "git add failed")
            raise GoldenError(f"git cannot add everything in the cycle's worktree: {told}")
        return commit

    def _point_branch(self, commit: str) -> None:
        self._require("update-ref", f"refs/heads/{self.branch}", commit)
        self._require("symbolic-ref", "HEAD", f"refs/heads/{self.branch}")

    def put_back(self, commit: str) -> None:
        """Reset the worktree and the branch to a commit: a review leaves nothing behind."""
        if not self._is_own_folder():
            return
        with suppress(GoldenError):
            self._repair()
            self._point_branch(commit)
            self._require("reset", "--quiet", "--hard", commit)
            self._require("clean", "-ffdq")

    def close(self) -> str | None:
        """Remove the worktree and return the branch's commit; if nothing was done on the branch, delete it and return None.

        If git cannot commit the work, on a full disk for example, the worktree stays and `root` still exists.
        """
        try:
            self.take_work("Unfinished work of a cycle")
            is_taken = True
        except (GoldenError, OSError):
            is_taken = not (self._is_own_folder() and self._git_folder.is_dir())
        if is_taken:
            self._forget()
        if not self.root.exists():
            # What a command wrote beside its worktree is removed too.
            with suppress(OSError):
                remove_tree(self.folder)
        commit = self._find_commit()
        if commit != self.base:
            return commit
        if not self.root.exists():
            run_git(self.checkout, "update-ref", "-d", f"refs/heads/{self.branch}", commit)
        return None

    def _find_commit(self) -> str | None:
        told = run_git(self.checkout, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}^{{commit}}")
        return None if told.returncode else told.stdout.strip()

    def name_tree(self, commit: str) -> str:
        """Return git's name for the content of a commit."""
        return run_git(self.checkout, "rev-parse", f"{commit}^{{tree}}").stdout.strip()

    def builds_on_base(self, commit: str) -> bool:
        """Tell whether a commit has the base among its ancestors, so that it can be merged where the base is."""
        return descends(self.checkout, commit, self.base)

    def list_repositories(self, commit: str) -> tuple[str, ...]:
        """Return the paths at a commit that are repositories of their own, with another commit than at the base."""
        done = run_git_raw(self.checkout, "diff", "--raw", "--no-renames", "--no-ext-diff", "-z", self.base, commit)
        told = iter(os.fsdecode(done.stdout).split("\0"))
        # Each is `:mode mode name name status`, and then the path.
        return tuple(path for modes, path in zip(told, told, strict=False) if modes[8:14] == SUBMODULE_MODE)

    def list_changes(self, commit: str) -> tuple[str, ...]:
        """Return the paths that differ between a commit and the base, from the checkout's root."""
        asked = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", self.base, commit)
        return tuple(split_paths(ask_git(self.checkout, *asked, failing="git cannot tell what was changed")))

    def write_difference(self, file: Path) -> None:
        """Write the difference from the base as a patch; write nothing if git cannot tell."""
        with suppress(GoldenError):
            ref = f"refs/heads/{self.branch}"
            done = run_git_raw(self.checkout, "diff", "--binary", "--no-ext-diff", "--no-textconv", self.base, ref)
            file.write_bytes(done.stdout)

    def _repair(self) -> None:
        """Repair the worktree's link to its repository after a command, and remove the lock of a killed git."""
        link = self.root / ".git"
        wanted = f"gitdir: {self._git_folder}\n"
        with suppress(OSError):
            (self._git_folder / "index.lock").unlink()
        try:
            is_right = not link.is_symlink() and link.is_file() and link.read_text(encoding="utf-8") == wanted
        except (OSError, ValueError):
            is_right = False
        if not is_right:
            if link.is_dir() and not link.is_symlink():
                remove_tree(link)
            else:
                link.unlink(missing_ok=True)
            link.write_text(wanted, encoding="utf-8")

    def _is_own_folder(self) -> bool:
        # A command may have replaced it by a link to somebody else's folder.
        return self.root.is_dir() and os.path.realpath(self.root) == str(self.root)

    def _forget(self) -> None:
        if self.folder.is_symlink() or self.root.is_symlink():
            (self.folder if self.folder.is_symlink() else self.root).unlink()
        with suppress(GoldenError):
            run_git(self.checkout, "worktree", "remove", "--force", "--force", str(self.root))
        if self.root.exists():
            with suppress(OSError):
                remove_tree(self.root)
        # Of this one only: others' worktrees may be on a disk that is not here.
        if self._git_folder.is_dir() and not self.root.exists():
            with suppress(OSError):
                remove_tree(self._git_folder)

    def _ask(self, *arguments: str) -> CompletedProcess[str]:
        told = (f"--git-dir={self._git_folder}", f"--work-tree={self.root}", *_NEUTRAL)
        return run_git(self.root, *told, *arguments, longest_seconds=_LONGEST_SECONDS)

    def _require(self, *arguments: str) -> str:
        done = self._ask(*arguments)
        if done.returncode:
            raise GoldenError(f"git {arguments[0]} in the cycle's worktree: {last_line(done.stderr)}")
        return done.stdout.strip()


def is_cycle_folder(path: Path) -> bool:
    """Tell whether a path is that of a cycle's folder by its name, whether or not it is still there."""
    return path.name.startswith(f"{_PREFIX}cycle_")


def name_branch(cycle_id: str) -> str:
    """Return the name of a cycle's branch."""
    return f"golden/cycle-{cycle_id.removeprefix('cycle_').lower()}"


def _find_git_folder(checkout: Path) -> Path:
    return Path(run_git(checkout, "rev-parse", "--path-format=absolute", "--git-common-dir").stdout.removesuffix("\n"))


def read_git_settings(checkout: Path) -> dict[str, str]:
    """Return a fingerprint of each git setting, such as a filter, that decides which bytes a checkout contains.

    Raises:
        GoldenError: git does not tell.
    """
    told: dict[str, bytes] = {}
    for entry in ask_git(checkout, "config", "--list", "-z", failing="git does not tell its settings").split(b"\0"):
        name, _, value = entry.decode("utf-8", "replace").partition("\n")
        if name.startswith(_SECTIONS) or name in _KEYS:
            told[name] = told.get(name, b"") + value.encode() + b"\0"
    folder = _find_git_folder(checkout)
    files = {f".git/{name}": folder / name for name in _FILES}
    told |= {name: file.read_bytes() for name, file in files.items() if file.is_file()}
    return {name: hashlib.sha256(value).hexdigest() for name, value in told.items()}


def read_own_files(checkout: Path) -> dict[str, str]:
    """Return a fingerprint of each file of the repository that git itself acts upon: its settings and its hooks."""
    folder = _find_git_folder(checkout)
    found: dict[str, str] = {}
    with suppress(OSError):
        hooks = [file for file in sorted((folder / "hooks").iterdir()) if file.suffix != ".sample"]
        for file in (folder / "config", *hooks):
            if file.is_file():
                with file.open("rb") as stream:
                    found[f".git/{file.relative_to(folder)}"] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def list_changed_settings(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """Return an entry of the weakened floor for each setting that has changed, sorted by name."""
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return tuple(
        make_edit(None, "gate_configuration", f"git's setting {name}, which decides what a checkout holds, was changed")
        for name in names
    )
