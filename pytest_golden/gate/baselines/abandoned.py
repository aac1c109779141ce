"""What a killed process leaves among the baselines: told from what a living one holds, and removed."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.gate.baselines.place import WAITING_PREFIX

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path

# Where nothing can be held, as on Windows and some network file systems, only age tells.
_ABANDONED_SECONDS = 24 * 3600
_HELD_BY_THEN_SECONDS = 10


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
