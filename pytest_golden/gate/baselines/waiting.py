"""Outputs on their way to become baselines: copied beside them, and put in place together in a single step.

A process that is killed leaves all baselines of a project as they were or as they are to be. Where the file system cannot let
two folders change places, that holds for each baseline.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError
from pytest_golden.gate.baselines.abandoned import hold, remove_abandoned
from pytest_golden.gate.baselines.place import WAITING_PREFIX
from pytest_golden.gate.baselines.replacing import replace_at_once, replace_one_by_one
from pytest_golden.gateway.view import copy_content
from pytest_golden.storage.flushing import flush

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_golden.gate.baselines.place import ProjectBaselines

_FLUSHED_AT_ONCE = 8
# Of `.parquet.zst`, and more than any that means something.
_MOST_SUFFIXES, _LONGEST_SUFFIXES = 2, 24
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
        """Copy an output here, and give the copy, whose name ends as the output's: that tells what is in it.

        Raises:
            BaselineError: nothing can be written beside the baselines, or the disk is full.
            OSError: this output cannot be copied.
        """
        if self._folder is None:
            self._folder = self._make_folder()
        self._count += 1
        suffixes = "".join(actual.suffixes[-_MOST_SUFFIXES:])
        copy = self._folder / f"{self._count}{suffixes if len(suffixes) <= _LONGEST_SUFFIXES else ''}"
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

    def apply(self, copies: Mapping[str, Path], removed: Collection[str]) -> dict[str, OSError]:
        """Make copies the baselines of outputs and let others go; gives by path what could not be done.

        All of it in one step where the file system can, and else one by one.
        """
        with suppress(BaselineError):
            self._folder = self._folder or self._make_folder()
            troubles = replace_at_once(self._baselines, self._folder / "staged", copies, removed)
            if troubles is not None:
                return troubles
        return replace_one_by_one(self._baselines, copies, removed)

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
            remove_abandoned(folder)
            made = Path(tempfile.mkdtemp(prefix=WAITING_PREFIX, dir=folder))
            # What a killed process leaves here is not to be committed.
            (made / ".gitignore").write_text("*\n")
            self._mark = hold(made)
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {folder}: {error.strerror or error}") from error
        return made
