"""The folders of what outlives a session and of private runs: their names, git's ignoring them, flushing. Opens no database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


STATE_FOLDER = ".golden"
STORE_NAME = "golden.db"
#: Begins the names of folders made for one gate run: the base of a verification, the proposals of a cycle.
#: Runs below one are not people's own, and are left out of what those runs tell.
PRIVATE_PREFIX = "pytest-golden-private-"


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; when a state folder is among them, git is told to ignore it.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, *folder.parents):
        if place.name == STATE_FOLDER:
            # One that may only be read is as it is.
            with suppress(OSError):
                ignore_in_git(place)
            return


def ignore_in_git(folder: Path) -> None:
    """Tell git to ignore a folder, unless something is said there already.

    Raises:
        OSError: it cannot be written.
    """
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="ascii") as ignore:
        ignore.write("*\n")


def flush(path: Path) -> None:
    """Flush a file's content, or the names that a folder holds.

    Raises:
        OSError: it cannot be opened, or not be flushed, as folders on some systems.
    """
    # A folder cannot be opened for writing; elsewhere than on POSIX only what is can be flushed.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
