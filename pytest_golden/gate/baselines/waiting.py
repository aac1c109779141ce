"""Outputs on their way to become baselines: copied beside them, put in place one by one in a single step each.

A process that is killed leaves each baseline as it was or as it is to be, and never half of one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.errors import BaselineError
from pytest_golden.gate.baselines.place import WAITING_PREFIX
from pytest_golden.gateway.view import copy_content

if TYPE_CHECKING:
    from pytest_golden.gate.baselines.place import ProjectBaselines

_ABANDONED_SECONDS = 24 * 3600
_SYNCED_AT_ONCE = 8


class WaitingRoom:
    """A folder beside the baselines, on their file system, for what one attempt of a project may make baselines of."""

    def __init__(self, baselines: ProjectBaselines) -> None:
        self._baselines = baselines
        self._folder: Path | None = None
        self._count = 0

    def copy(self, actual: Path) -> Path:
        """Copy an output here, and give the copy.

        Raises:
            BaselineError: nothing can be written beside the baselines.
            OSError: this output cannot be copied.
        """
        if self._folder is None:
            self._folder = self._make_folder()
        self._count += 1
        copy = self._folder / str(self._count)
        copy_content(str(actual), str(copy))
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
            with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
                list(pool.map(_sync, self._folder.iterdir()))
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
                _sync(folder)

    def empty(self) -> None:
        """Remove what still waits."""
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _make_folder(self) -> Path:
        folder = self._baselines.folder
        try:
            self._baselines.refuse_symlinks("")
            folder.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(folder)
            return Path(tempfile.mkdtemp(prefix=WAITING_PREFIX, dir=folder))
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {folder}: {error.strerror or error}") from error


def _remove_abandoned(folder: Path) -> None:
    for left in folder.glob(f"{WAITING_PREFIX}*"):
        with suppress(OSError):
            if utc_now().timestamp() - left.lstat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left)


def _sync(path: Path) -> None:
    # Windows syncs only what may be written, POSIX opens no folder for that.
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
