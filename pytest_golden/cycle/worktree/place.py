"""The worktree that a cycle's commands work in, and its branch. What git is asked here does not trust what they left there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import last_line, run_git, run_git_raw
from pytest_golden.gateway.scratch import remove_tree

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_LONGEST_SECONDS = 3600
_PREFIX = f"golden-cycle-{os.getuid()}-"
_NAME, _ADDRESS = "golden cycle", "golden-cycle@localhost"
_REPOSITORY = "160000"
_NEUTRAL = (
    *("-c", f"user.name={_NAME}", "-c", f"user.email={_ADDRESS}", "-c", "commit.gpgsign=false"),
    # Hooks of the repository are for people's commits.
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)


class CycleWorktree:
    """The worktree of one cycle, on its branch. It lies outside the checkout, in a folder that only this user may enter."""

    def __init__(self, checkout: Path, cycle_id: str, base: str, branch: str) -> None:
        self.checkout = checkout
        self.base = base
        self.branch = branch
        self.folder = _choose_place(checkout) / f"{_PREFIX}{cycle_id}"
        # Git names what it knows of a worktree by the last part of its path, and this one is nobody else's.
        self.root = self.folder / cycle_id
        told = run_git(checkout, "rev-parse", "--path-format=absolute", "--git-common-dir")
        self._git_folder = Path(told.stdout.removesuffix("\n")) / "worktrees" / cycle_id

    def open(self) -> None:
        """Make it, or take it up as a killed cycle has left it.

        Raises:
            GoldenError: git cannot, or the folder is somebody else's.
        """
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            raise GoldenError(f"{self.folder} cannot be made: {error.strerror or error}") from None
        if self.folder.is_symlink() or found.st_uid != os.getuid():
            raise GoldenError(f"{self.folder} is somebody else's; remove it, or let TMPDIR name another folder")
        if self._is_own_folder() and self._git_folder.is_dir():
            self._repair()
            return
        self._forget()
        has_branch = not run_git(
            self.checkout, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}"
        ).returncode
        wanted = [str(self.root), self.branch] if has_branch else ["-b", self.branch, str(self.root), self.base]
        added = run_git(
            self.checkout, *_NEUTRAL, "worktree", "add", "--quiet", *wanted, longest_seconds=_LONGEST_SECONDS
        )
        if added.returncode:
            raise GoldenError(f"git cannot make the cycle's worktree: {last_line(added.stderr)}")

    def take_work(self, message: str) -> str:
        """Put all that is there on the branch, and give its commit; what is not committed yet is committed neutrally.

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
        self._require("update-ref", f"refs/heads/{self.branch}", commit)
        self._require("symbolic-ref", "HEAD", f"refs/heads/{self.branch}")
        if refused.returncode:
            told = next(iter(refused.stderr.strip().splitlines()), "git add failed")
            raise GoldenError(f"git does not take all that is in the cycle's worktree: {told}")
        return commit

    def put_back(self, commit: str) -> None:
        """Make the worktree and the branch what they were at a commit: a review leaves nothing behind."""
        if not self._is_own_folder():
            return
        with suppress(GoldenError):
            self._repair()
            self._require("update-ref", f"refs/heads/{self.branch}", commit)
            self._require("symbolic-ref", "HEAD", f"refs/heads/{self.branch}")
            self._require("reset", "--quiet", "--hard", commit)
            self._require("clean", "-ffdq")

    def close(self) -> str | None:
        """Remove the worktree, and give the branch's commit; a branch on which nothing was done goes too, and gives None.

        A worktree whose work git does not take, on a full disk say, stays: `root` is then still there.
        """
        try:
            self.take_work("Unfinished work of a cycle")
            is_taken = True
        except (GoldenError, OSError):
            is_taken = not (self._is_own_folder() and self._git_folder.is_dir())
        if is_taken:
            self._forget()
        if not self.root.exists():
            # What a command wrote beside its worktree is nobody's any more.
            with suppress(OSError):
                remove_tree(self.folder)
        told = run_git(self.checkout, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}^{{commit}}")
        if told.returncode:
            return None
        commit = told.stdout.strip()
        if commit != self.base:
            return commit
        if not self.root.exists():
            run_git(self.checkout, "update-ref", "-d", f"refs/heads/{self.branch}", commit)
        return None

    def name_tree(self, commit: str) -> str:
        """Give git's name for the content of a commit."""
        return run_git(self.checkout, "rev-parse", f"{commit}^{{tree}}").stdout.strip()

    def builds_on_base(self, commit: str) -> bool:
        """Tell whether a commit has the base among its ancestors, so that it can be merged where the base is."""
        return not run_git(self.checkout, "merge-base", "--is-ancestor", self.base, commit).returncode

    def list_repositories(self, commit: str) -> tuple[str, ...]:
        """Give the paths at a commit that are repositories of their own, with another commit than at the base."""
        done = run_git_raw(self.checkout, "diff", "--raw", "--no-renames", "--no-ext-diff", "-z", self.base, commit)
        told = iter(os.fsdecode(done.stdout).split("\0"))
        # Each is `:mode mode name name status`, and then the path.
        return tuple(path for modes, path in zip(told, told, strict=False) if modes[8:14] == _REPOSITORY)

    def list_changes(self, commit: str) -> tuple[str, ...]:
        """Give the paths that are others at a commit than at the base, from the checkout's root."""
        done = run_git_raw(
            self.checkout, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", self.base, commit
        )
        if done.returncode:
            raise GoldenError(f"git cannot tell what was changed: {last_line(os.fsdecode(done.stderr))}")
        return tuple(path for path in os.fsdecode(done.stdout).split("\0") if path)

    def write_difference(self, file: Path) -> None:
        """Write what differs from the base, as a patch. Nothing where git cannot tell."""
        with suppress(GoldenError):
            ref = f"refs/heads/{self.branch}"
            done = run_git_raw(self.checkout, "diff", "--binary", "--no-ext-diff", "--no-textconv", self.base, ref)
            file.write_bytes(done.stdout)

    def _repair(self) -> None:
        """Undo what a command did to the worktree's own link, and to locks of those that were killed."""
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
        # A link that a command put in its place leads to what is somebody else's.
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
    """Give the name of a cycle's branch."""
    return f"golden/cycle-{cycle_id.removeprefix('cycle_').lower()}"


def _choose_place(outside: Path) -> Path:
    """Give a place for temporary files that is not inside the checkout."""
    place = Path(os.path.realpath(tempfile.gettempdir()))
    return Path(os.path.realpath("/var/tmp")) if place.is_relative_to(outside) else place
