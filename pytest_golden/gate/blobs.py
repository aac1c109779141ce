"""Names for what stands in a checkout's files, equal when the content is: git's own blob ids where that is cheap.

No filter of git's is run, so a file that git converts (line ends, LFS) has another name here than in a commit.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES_OF_A_FILE = 16 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024


class BlobNames:
    """Names files below a checkout's root by their content, as long as that stays cheap.

    A large file is named by its size and time, and so is every file after the first 64 MiB. `algorithm` is the one of
    the repository's object ids.
    """

    def __init__(self, root: Path, algorithm: str) -> None:
        self._root = root
        self._algorithm = algorithm
        self._bytes_left = MOST_BYTES

    def find(self, path: str) -> str | None:
        """Give the name of what is at a path relative to the root; None when nothing is there."""
        place = self._root / path
        try:
            status = place.lstat()
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(status.st_mode):
            return self._name(os.fsencode(place.readlink()))
        if stat.S_ISDIR(status.st_mode):
            return find_head(place) or "folder"
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(MOST_BYTES_OF_A_FILE, self._bytes_left):
            return f"{status.st_size} bytes of {status.st_mtime_ns}"
        self._bytes_left -= status.st_size
        try:
            return self._name(place.read_bytes())
        except OSError as error:
            return f"unreadable: {error.strerror}"

    def _name(self, content: bytes) -> str:
        digest = hashlib.new(self._algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest()


def find_head(folder: Path) -> str | None:
    """Give the commit that a repository's own folder (a submodule) stands at, or None."""
    with suppress(OSError, ValueError):
        git = folder / ".git"
        if git.is_file():
            git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        return (git / head[5:]).read_text(encoding="ascii").strip() if head.startswith("ref: ") else head
    return None
