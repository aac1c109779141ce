"""Have a file or a folder on the disk before going on. Opens no database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
