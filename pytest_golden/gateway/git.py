"""Ask git about a workspace, and name files by their content as git does. Nothing is fetched, checked out or written."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_golden.errors import GoldenError

_LONGEST_SECONDS = 60
_GITHUB_REMOTE = re.compile(r"github\.com[:/]+([^/\s]+/[^/\s]+?)(?:\.git)?/?$")
_BRANCH = re.compile(r"[\w./-]+")
#: The modes of a symlink and of a submodule in git's lists.
LINK_MODE, SUBMODULE_MODE = "120000", "160000"
MOST_BYTES_OF_A_FILE = 16 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024


def run_git(
    folder: Path, *arguments: str, longest_seconds: float = _LONGEST_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder and return its output as text, whatever its exit code.

    Raises:
        GoldenError: git is not installed, or it does not answer in time.
    """
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds)
    out, err = (raw.decode("utf-8", "replace").replace("\r\n", "\n") for raw in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def run_git_raw(
    folder: Path,
    *arguments: str,
    longest_seconds: float = _LONGEST_SECONDS,
    told: bytes = b"",
    index: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return its output as bytes: file names need not be text. Raises as `run_git`.

    `told` is git's standard input, `index` another file than the checkout's own index.
    """
    environment = None if index is None else {**os.environ, "GIT_INDEX_FILE": str(index)}
    # Without optional locks, a question does not rewrite the index while a pipeline runs.
    # Without replace objects, no `refs/replace/` can give a base another content without being noticed.
    command = ["git", "--no-optional-locks", "--no-replace-objects", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, input=told, timeout=longest_seconds, check=False, env=environment
        )
    except FileNotFoundError:
        raise GoldenError("there is no git on PATH: install it") from None
    except subprocess.TimeoutExpired:
        raise GoldenError(f"git did not answer within {longest_seconds} s: {' '.join(command)}") from None


def ask_git(folder: Path, *arguments: str, failing: str, longest_seconds: float = _LONGEST_SECONDS) -> bytes:
    """Run git in a folder and return its output.

    Raises:
        GoldenError: as `run_git`, or git ends with another exit code than 0; `failing` says what could not be done.
    """
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds)
    if done.returncode:
        raise GoldenError(f"{failing}: {last_line(os.fsdecode(done.stderr))}")
    return done.stdout


def read_blob(folder: Path, commit: str, path: str) -> bytes | None:
    """Return the content of a file at a commit; None if there is no such file. Raises as `run_git`."""
    done = run_git_raw(folder, "cat-file", "blob", f"{commit}:{path}")
    return None if done.returncode else done.stdout


def find_commit(folder: Path, ref: str) -> str:
    """Return the commit that a ref means.

    Raises:
        GoldenError: no git, not a repository, or a ref that is not there; the message says what to fetch.
    """
    inside = run_git(folder, "rev-parse", "--is-inside-work-tree")
    if "safe.directory" in inside.stderr:
        raise GoldenError(f"git does not trust {folder}, which is another user's: {last_line(inside.stderr)}")
    if inside.returncode:
        raise GoldenError(f"{folder} is not in a git repository ({last_line(inside.stderr)}).")
    found = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode and ref == "HEAD":
        raise GoldenError(f"nothing is committed in {folder} yet: make a first commit.")
    if found.returncode:
        message = f"there is no such commit here. Check its name, or fetch it first: {_advise_fetch(folder, ref)}"
        raise GoldenError(message)
    return found.stdout.strip()


def find_top(folder: Path, *, longest_seconds: float = _LONGEST_SECONDS) -> Path | None:
    """Return the top folder of the checkout that a folder is in; None if it is in none. Raises as `run_git`."""
    top = run_git_raw(folder, "rev-parse", "--show-toplevel", longest_seconds=longest_seconds)
    return None if top.returncode else Path(os.fsdecode(top.stdout.removesuffix(b"\n")))


def list_tracked(folder: Path) -> frozenset[str] | None:
    """Return the files below a folder that git tracks, relative to it, as they are in the working tree; None outside a checkout.

    Raises as `run_git`.
    """
    listed = run_git_raw(folder, "ls-files", "-z", "--cached", "--recurse-submodules")
    return None if listed.returncode else frozenset(split_paths(listed.stdout))


def find_github_repository(folder: Path) -> str | None:
    """Return the repository of the remote `origin` on GitHub as `owner/name`; None if it is elsewhere. Raises as `run_git`."""
    found = _GITHUB_REMOTE.search(run_git(folder, "remote", "get-url", "origin").stdout.strip())
    return found[1] if found else None


def find_fork(folder: Path, commit: str) -> str:
    """Return the commit at which this branch left another; that one itself if they have none in common, as in a shallow clone."""
    common = run_git(folder, "merge-base", commit, "HEAD")
    return commit if common.returncode else common.stdout.strip()


def list_worktrees(folder: Path) -> list[Path]:
    """Return the folders of a repository's worktrees, those that are gone included."""
    told = run_git(folder, "worktree", "list", "--porcelain", "-z").stdout
    return [Path(line.removeprefix("worktree ")) for line in told.split("\0") if line.startswith("worktree ")]


def split_paths(listed: bytes) -> list[str]:
    """Return the paths of an answer to a question with `-z`."""
    return [path for path in os.fsdecode(listed).split("\0") if path]


def _advise_fetch(folder: Path, ref: str) -> str:
    remotes = run_git(folder, "remote").stdout.split()
    remote, _, branch = ref.partition("/")
    if _BRANCH.fullmatch(branch) and (remote in remotes or not remotes):
        # A clone of a single branch, as with `--depth`, stores another branch only under an explicit refspec.
        fetch = f"git fetch {remote} {branch}:refs/remotes/{ref}"
    else:
        fetch = f"git fetch origin {ref}"
    if run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return f"{fetch} (this clone is shallow: git fetch --unshallow brings all of its history)"
    return fetch if remotes else f"{fetch} (this repository has no remote yet: git remote add origin URL)"


def last_line(text: str) -> str:
    """Return the last line of a message of git's."""
    return (text.strip().splitlines() or ["no message"])[-1].strip()


def describe_commit(folder: Path) -> dict[str, Any]:
    """Return `{commit, branch, dirty}` of the folder's checkout; unknown values are None, and all are outside git."""
    with suppress(GoldenError):
        head = run_git(folder, "rev-parse", "HEAD")
        if not head.returncode:
            branch = run_git(folder, "symbolic-ref", "--quiet", "--short", "HEAD").stdout.strip()
            dirty = bool(run_git(folder, "status", "--porcelain").stdout)
            return {"commit": head.stdout.strip(), "branch": branch or None, "dirty": dirty}
    return {"commit": None, "branch": None, "dirty": None}


class BlobNames:
    """Names files below a checkout's root by git's blob ids, so that equal content has equal names.

    To stay cheap, a large file, and every file after the first 64 MiB, is named by its size and time instead. No filter
    of git's is run: a file that git converts (line ends, LFS) has another name here than in a commit. `algorithm` is
    that of the repository's object ids.
    """

    def __init__(self, root: Path, algorithm: str) -> None:
        self._root = root
        self._algorithm = algorithm
        self._bytes_left = MOST_BYTES

    def find(self, path: str) -> str | None:
        """Return the name of the content at a path relative to the root; None if nothing is there."""
        place = self._root / path
        try:
            status = place.lstat()
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(status.st_mode):
            return name_blob(os.fsencode(place.readlink()), self._algorithm)
        if stat.S_ISDIR(status.st_mode):
            return find_head(place) or "folder"
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(MOST_BYTES_OF_A_FILE, self._bytes_left):
            return f"{status.st_size} bytes of {status.st_mtime_ns}"
        self._bytes_left -= status.st_size
        try:
            return name_blob(place.read_bytes(), self._algorithm)
        except OSError as error:
            return f"unreadable: {error.strerror}"


def name_blob(content: bytes, algorithm: str) -> str:
    """Return git's id for a content."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def find_head(folder: Path) -> str | None:
    """Return the commit that the repository in a folder (a submodule) is at, or None."""
    with suppress(OSError, ValueError):
        git = folder / ".git"
        if git.is_file():
            git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        return (git / head[5:]).read_text(encoding="ascii").strip() if head.startswith("ref: ") else head
    return None
