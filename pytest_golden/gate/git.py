"""Ask git about the workspace. Read-only: nothing is fetched, checked out or written."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_SECONDS = 60
_BRANCH = re.compile(r"[\w./-]+")


def run_git(
    folder: Path, *arguments: str, longest_seconds: float = _LONGEST_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder and give what came back as text, whatever its exit code.

    Raises:
        GoldenError: there is no git, or it does not answer.
    """
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds)
    out, err = (raw.decode("utf-8", "replace").replace("\r\n", "\n") for raw in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def run_git_raw(
    folder: Path, *arguments: str, longest_seconds: float = _LONGEST_SECONDS
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and give the bytes that came back: names of files need not be text. Raises as `run_git`."""
    # Without optional locks, a question does not rewrite the index below a pipeline's eyes.
    # A commit is what its name says: `refs/replace/` could give a base another content, unseen by any comparison.
    command = ["git", "--no-optional-locks", "--no-replace-objects", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=longest_seconds, check=False
        )
    except FileNotFoundError:
        message = "there is no git on PATH: install it"
        raise GoldenError(message) from None
    except subprocess.TimeoutExpired:
        message = f"git did not answer within {longest_seconds} s: {' '.join(command)}"
        raise GoldenError(message) from None


def find_commit(folder: Path, ref: str) -> str:
    """Give the commit that a ref means.

    Raises:
        GoldenError: no git, not a repository, or a ref that is not there; the message says what to fetch.
    """
    inside = run_git(folder, "rev-parse", "--is-inside-work-tree")
    if "safe.directory" in inside.stderr:
        message = f"git does not trust {folder}, which is another user's: {last_line(inside.stderr)}"
        raise GoldenError(message)
    if inside.returncode:
        message = f"{folder} is in no git repository ({last_line(inside.stderr)})."
        raise GoldenError(message)
    found = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode and ref == "HEAD":
        message = f"nothing is committed in {folder} yet: make a first commit."
        raise GoldenError(message)
    if found.returncode:
        message = f"there is no such commit here. Check its name, or fetch it first: {_advise_fetch(folder, ref)}"
        raise GoldenError(message)
    return found.stdout.strip()


def _advise_fetch(folder: Path, ref: str) -> str:
    remotes = run_git(folder, "remote").stdout.split()
    remote, _, branch = ref.partition("/")
    if _BRANCH.fullmatch(branch) and (remote in remotes or not remotes):
        # A clone of a single branch, as with `--depth`, keeps no other by its name unless it is told to.
        fetch = f"git fetch {remote} {branch}:refs/remotes/{ref}"
    else:
        fetch = f"git fetch origin {ref}"
    if run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return f"{fetch} (this clone is shallow: git fetch --unshallow brings all of its history)"
    return fetch if remotes else f"{fetch} (this repository has no remote yet: git remote add origin URL)"


def last_line(text: str) -> str:
    """Give what git ended its message with."""
    return (text.strip().splitlines() or ["no message"])[-1].strip()


def describe_commit(folder: Path) -> dict[str, Any]:
    """Give `{commit, branch, dirty}` of the folder's checkout; None for what is not known, as outside git."""
    try:
        head = run_git(folder, "rev-parse", "HEAD")
        if head.returncode:
            return {"commit": None, "branch": None, "dirty": None}
        branch = run_git(folder, "symbolic-ref", "--quiet", "--short", "HEAD").stdout.strip()
        dirty = bool(run_git(folder, "status", "--porcelain").stdout)
    except GoldenError:
        return {"commit": None, "branch": None, "dirty": None}
    return {"commit": head.stdout.strip(), "branch": branch or None, "dirty": dirty}
