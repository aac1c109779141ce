"""The base's commit as a worktree of its own. Also finds what a worktree lacks: submodules, files of git-lfs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import last_line, run_git
from pytest_golden.gate.verify.private_folder import is_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "base"
_CHECKOUT_SECONDS = 3600
_SUBMODULE_MODE = "160000"
_LFS_MARK = b"version https://git-lfs.github.com/spec/"
_MOST_NAMED = 3


class BaseWorktree:
    """A worktree of one commit below a private folder. To be used in a with-block, which removes it."""

    def __init__(self, checkout: Path, private: Path, commit: str) -> None:
        self.root = private / _NAME
        self._checkout = checkout
        _forget_abandoned(checkout)
        # Hooks of the repository are for the person's own checkouts.
        added = run_git(
            *(checkout, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach"),
            *(str(self.root), commit),
            longest_seconds=_CHECKOUT_SECONDS,
        )
        if added.returncode:
            self.close()
            message = f"git cannot check {commit[:12]} out in a worktree: {last_line(added.stderr)}"
            raise GoldenError(message)

    def close(self) -> None:
        """Remove it and what git knows of it; what cannot be removed is left to the private folder's end."""
        with suppress(GoldenError):
            _forget(self._checkout, self.root)

    def find_gaps(self) -> tuple[str, ...]:
        """Name what the head's checkout has and this one lacks, with what brings it; a project may fail for it alone."""
        return (*_find_submodules(self._checkout, self.root), *_find_pointers(self._checkout, self.root))


def _forget_abandoned(checkout: Path) -> None:
    """Let git forget worktrees of verifications that were killed, and no others: those may be on a disk that is not here."""
    told = run_git(checkout, "worktree", "list", "--porcelain", "-z").stdout
    for line in told.split("\0"):
        path = Path(line.removeprefix("worktree "))
        if line.startswith("worktree ") and is_private_folder(path.parent) and not path.exists():
            _forget(checkout, path)


def _forget(checkout: Path, worktree: Path) -> None:
    run_git(checkout, "worktree", "remove", "--force", "--force", str(worktree), longest_seconds=_CHECKOUT_SECONDS)


def _find_submodules(head: Path, base: Path) -> Iterator[str]:
    if not (base / ".gitmodules").is_file():
        return
    entries = (entry.partition("\t") for entry in run_git(base, "ls-files", "--stage", "-z").stdout.split("\0"))
    paths = [path for told, _, path in entries if told.startswith(_SUBMODULE_MODE)]
    empty = [path for path in paths if _is_filled(head / path) and not _is_filled(base / path)]
    if empty:
        yield f"submodules are empty there ({_name(empty)}): let `setup:` run `git submodule update --init`"


def _find_pointers(head: Path, base: Path) -> Iterator[str]:
    listed = run_git(base, "ls-files", "-z", "--", ":(attr:filter=lfs)").stdout.split("\0")
    paths = [path for path in listed if path and _is_pointer(base / path) and not _is_pointer(head / path)]
    if paths:
        yield f"files of git-lfs are not fetched there ({_name(paths)}): let `setup:` run `git lfs pull`"


def _is_filled(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _is_pointer(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_LFS_MARK)) == _LFS_MARK
    except OSError:
        return False


def _name(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
