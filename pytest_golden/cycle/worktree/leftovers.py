"""Worktrees of cycles that were killed: those that nobody can take up again are removed, the others are named."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cycle.keeping import CycleFile
from pytest_golden.cycle.worktree.place import CycleWorktree, is_cycle_folder, name_branch
from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import run_git

if TYPE_CHECKING:
    from collections.abc import Callable


def clear_leftovers(checkout: Path, project_root: Path, say: Callable[[str], None]) -> None:
    """Look through the worktrees that git knows of: what lies in one is committed to its branch before it is removed."""
    told = run_git(checkout, "worktree", "list", "--porcelain", "-z").stdout
    paths = (Path(line.removeprefix("worktree ")) for line in told.split("\0") if line.startswith("worktree "))
    for path in paths:
        if is_cycle_folder(path.parent):
            # One that cannot be looked after is no reason not to begin another cycle.
            with suppress(GoldenError, OSError):
                _clear(checkout, project_root, path, say)


def _clear(checkout: Path, project_root: Path, path: Path, say: Callable[[str], None]) -> None:
    file = CycleFile(project_root, path.name)
    if not file.path.exists():
        say(f"a worktree of a cycle that is not known here is left: git worktree remove --force {path}")
        return
    with file.hold():
        if file.read().position is not None:
            say(
                f"{path.name} was not ended, and its worktree is left: take it up by `golden cycle --resume {path.name}`, "
                f"or remove it by `git worktree remove --force {path}`"
            )
            return
        base = run_git(checkout, "merge-base", "HEAD", f"refs/heads/{name_branch(path.name)}").stdout.strip()
        CycleWorktree(checkout, path.name, base, name_branch(path.name)).close()
        if path.exists():
            say(f"git does not take all that is in {path}: look at it, then git worktree remove --force {path}")
        else:
            say(f"the worktree of {path.name}, which was left, is removed")
