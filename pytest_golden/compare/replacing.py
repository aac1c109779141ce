"""Puts copies in the place of baselines: all of a project's in one step, or where that cannot be done one by one.

Folders that a killed process left among the baselines are told from those of a living one, and removed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.compare.baselines import WAITING_PREFIX
from pytest_golden.errors import BaselineError
from pytest_golden.storage.folder import flush

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_golden.compare.baselines import ProjectBaselines

if sys.platform != "win32":
    import fcntl


# Source: linux/fcntl.h and linux/fs.h.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

# Where nothing can be held, as on Windows and some network file systems, only age tells.
_ABANDONED_SECONDS = 24 * 3600
_HELD_BY_THEN_SECONDS = 10


def replace_at_once(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError] | None:
    """Build the project's folder anew, and exchange it for the old one.

    Return by path what could not be put there; None where this cannot be done and nothing has changed.
    """
    root = baselines.root
    try:
        baselines.refuse_symlinks("any")
        troubles = _build(baselines, staged, copies, removed)
        if not _settle_folders(root, staged):
            return None
        if not os.path.lexists(root):
            staged.rename(root)
        elif not root.is_dir() or not exchange(staged, root):
            return None
    except (OSError, BaselineError):
        return None
    with suppress(OSError):
        # A project without baselines keeps no folder.
        root.rmdir()
    with suppress(OSError):
        flush(baselines.folder)
    return troubles


def replace_one_by_one(
    baselines: ProjectBaselines, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    """Put each copy in its place in a step of its own, and remove what is to go; return by path what failed."""
    troubles: dict[str, OSError] = {}
    # Removals come first, since a file may have become a folder.
    for path in (*sorted(removed), *copies):
        try:
            baselines.refuse_symlinks(path)
            if path in copies:
                _place(copies[path], baselines.root / path)
            else:
                _remove(baselines.root / path, baselines.folder)
        except OSError as error:
            troubles[path] = error
    for folder in {(baselines.root / path).parent for path in (*copies, *removed)} | {baselines.root}:
        with suppress(OSError):
            flush(folder)
    return troubles


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that a kill leaves all of the one or all of the other.

    Only Linux can, and not on every file system. Return False where it cannot be done; nothing has changed then.
    """
    if sys.platform != "linux":
        return False
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):  # Older than glibc 2.28.
        return False
    return not renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)


def _build(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    staged.mkdir()
    for path in baselines.list_paths():
        if path not in removed and path not in copies:
            _link(baselines.root / path, staged / path)
    troubles: dict[str, OSError] = {}
    for path, copy in copies.items():
        try:
            _link(copy, staged / path)
        except OSError as error:
            troubles[path] = error
            if os.path.lexists(baselines.root / path):
                _link(baselines.root / path, staged / path)
    return troubles


def _settle_folders(root: Path, staged: Path) -> bool:
    """Flush the new folders to the disk, with the modes of the old ones; False where an old one is not writable."""
    for folder, _, _ in os.walk(staged):
        old = root / Path(folder).relative_to(staged)
        if old.is_dir():
            if not os.access(old, os.W_OK):
                return False
            Path(folder).chmod(old.stat().st_mode & 0o7777)
        flush(Path(folder))
    return True


def _link(origin: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.link(origin, place, follow_symlinks=False)


def _place(copy: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    copy.replace(target)


def _remove(target: Path, top: Path) -> None:
    """Remove a baseline, and the folders that it leaves empty."""
    target.unlink()
    folder = target.parent
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes have left in the folder of all baselines."""
    for left in folder.glob(f"{WAITING_PREFIX}*"):
        with suppress(OSError):
            age = utc_now().timestamp() - left.lstat().st_mtime
            if age > _ABANDONED_SECONDS or (age > _HELD_BY_THEN_SECONDS and _is_free(left)):
                shutil.rmtree(left)


def hold(folder: Path) -> int | None:
    """Mark a folder as that of a living process; None where that cannot be done."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _is_free(folder: Path) -> bool:
    """Tell whether the process that made a folder is gone: nobody holds it."""
    mark = hold(folder)
    if mark is not None:
        os.close(mark)
    return mark is not None
