"""The folder of what outlives a session, kept out of git by a file of its own whoever makes it. Imports no database."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

STATE_FOLDER = ".golden"
STORE_NAME = "golden.db"


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
