"""Outputs on their way to become baselines: copied beside them, put in place one by one in a single step each.

A process that is killed leaves each baseline as it was or as it is to be, and never half of one.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.errors import BaselineError
from pytest_golden.gate.baselines.place import WAITING_PREFIX
from pytest_golden.gateway.view import copy_content
from pytest_golden.storage.flushing import flush

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from pytest_golden.gate.baselines.place import ProjectBaselines

# Where nothing can be held, as on Windows and some network file systems, only age tells.
_ABANDONED_SECONDS = 24 * 3600
_HELD_BY_THEN_SECONDS = 10
_FLUSHED_AT_ONCE = 8
# What says nothing about the output that is being copied.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class WaitingRoom:
    """A folder beside the baselines, on their file system, for what one attempt of a project may make baselines of."""

    def __init__(self, baselines: ProjectBaselines) -> None:
        self._baselines = baselines
        self._folder: Path | None = None
        self._count = 0
        self._mark: int | None = None

    def copy(self, actual: Path) -> Path:
        """Copy an output here, and give the copy.

        Raises:
            BaselineError: nothing can be written beside the baselines, or the disk is full.
            OSError: this output cannot be copied.
        """
        if self._folder is None:
            self._folder = self._make_folder()
        self._count += 1
        copy = self._folder / str(self._count)
        try:
            copy_content(str(actual), str(copy))
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise BaselineError(
                    f"nothing can be accepted into {self._baselines.folder}: {error.strerror}"
                ) from error
            raise
        return copy

    def make_durable(self) -> None:
        """Have all copies on the disk, before the first is put in place.

        Raises:
            BaselineError: the disk does not take them.
        """
        if self._folder is None:
            return
        try:
            # Together, one commit of the file system's journal does for many.
            with ThreadPoolExecutor(_FLUSHED_AT_ONCE) as pool:
                list(pool.map(flush, self._folder.iterdir()))
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {self._folder.parent}: {error.strerror}") from error

    def place(self, copy: Path, path: str) -> None:
        """Make a copy the baseline of an output.

        Raises:
            OSError: it cannot be put there.
        """
        target = self._baselines.root / path
        self._baselines.refuse_symlinks(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy.replace(target)

    def remove(self, path: str) -> None:
        """Remove a baseline, and the folders that it leaves empty.

        Raises:
            OSError: it cannot be removed.
        """
        target = self._baselines.root / path
        self._baselines.refuse_symlinks(path)
        target.unlink()
        folder = target.parent
        with suppress(OSError):
            while folder != self._baselines.folder:
                folder.rmdir()
                folder = folder.parent

    def settle(self, paths: set[str]) -> None:
        """Make durable what was put in place or removed at these paths."""
        for folder in {(self._baselines.root / path).parent for path in paths} | {self._baselines.root}:
            with suppress(OSError):
                flush(folder)

    def empty(self) -> None:
        """Remove what still waits."""
        folder, self._folder = self._folder, None
        mark, self._mark = self._mark, None
        if mark is not None:
            os.close(mark)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _make_folder(self) -> Path:
        folder = self._baselines.folder
        try:
            self._baselines.refuse_symlinks("")
            folder.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(folder)
            made = Path(tempfile.mkdtemp(prefix=WAITING_PREFIX, dir=folder))
            # What a killed process leaves here is not to be committed.
            (made / ".gitignore").write_text("*\n")
            self._mark = _hold(made)
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {folder}: {error.strerror or error}") from error
        return made


def _remove_abandoned(folder: Path) -> None:
    for left in folder.glob(f"{WAITING_PREFIX}*"):
        with suppress(OSError):
            age = utc_now().timestamp() - left.lstat().st_mtime
            if age > _ABANDONED_SECONDS or (age > _HELD_BY_THEN_SECONDS and _is_free(left)):
                shutil.rmtree(left)


def _hold(folder: Path) -> int | None:
    """Mark a folder as that of a living process; None where that cannot be done."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _is_free(folder: Path) -> bool:
    """Tell whether the process that made a folder is gone: nobody holds it."""
    mark = _hold(folder)
    if mark is not None:
        os.close(mark)
    return mark is not None
