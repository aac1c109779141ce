"""Folders of one's own among those of other people, such as in the machine's temporary folder."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_own_folder(folder: Path) -> None:
    """Make a folder among those of other people, which they may have prepared.

    Raises:
        PermissionError: it is somebody else's, or no folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_own_folder(folder):
        message = f"{folder} is somebody else's; remove it, or let TMPDIR name another folder"
        raise PermissionError(message)


def is_own_folder(folder: Path) -> bool:
    """Tell whether it is a folder, and this user's."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())
