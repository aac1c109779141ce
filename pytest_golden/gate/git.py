"""Ask git about the workspace. Read-only: nothing is fetched, checked out or written."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_SECONDS = 60


def run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder and give what came back, whatever its exit code.

    Raises:
        GoldenError: there is no git, or it does not answer.
    """
    # Without optional locks, a question does not rewrite the index below a pipeline's eyes.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        message = "there is no git on PATH: install it"
        raise GoldenError(message) from None
    except subprocess.TimeoutExpired:
        message = f"git did not answer within {_LONGEST_SECONDS} s: {' '.join(command)}"
        raise GoldenError(message) from None


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
