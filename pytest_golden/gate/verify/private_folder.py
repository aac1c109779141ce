"""A folder of one verification: worktree, environment, reports and logs. That of a killed one is removed by the next.

Only the standard library: the head's gate, which writes its report in here, is started before anything else is loaded.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Self

from pytest_golden.storage.private_prefix import PRIVATE_PREFIX

_PREFIX = f"{PRIVATE_PREFIX}{os.getuid()}-"
_LOCK_NAME = "alive.lock"


class PrivateFolder:
    """A folder with mode 0700 and a lock that tells that its verification lives. To be used in a with-block."""

    def __init__(self, *, outside: Path) -> None:
        place = _choose_place(outside)
        _remove_abandoned(place)
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=place)))
        # Locked before it has its name: another verification, which looks for abandoned folders, never finds it free.
        draft = self.path / f"{_LOCK_NAME}.new"
        self._lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft.rename(self.path / _LOCK_NAME)

    def close(self) -> None:
        """Remove it with all that is in it."""
        _remove(self.path)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_private_folder(path: Path) -> bool:
    """Tell whether a path is that of such a folder by its name, whether or not it is still there."""
    return path.name.startswith(_PREFIX)


def is_in_private_folder(path: str) -> bool:
    """Tell whether a path lies in such a folder of anybody's, on whatever machine."""
    return any(part.startswith(PRIVATE_PREFIX) for part in Path(path).parts)


def _choose_place(outside: Path) -> Path:
    """Give a place for temporary files that is not inside a checkout: its files would be the checkout's edits."""
    place = Path(os.path.realpath(tempfile.gettempdir()))
    return Path("/var/tmp") if place.is_relative_to(outside) else place


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid == os.getuid() and not folder.is_symlink() and _is_abandoned(folder):
                _remove(folder)


def _is_abandoned(folder: Path) -> bool:
    # The lock is made right after its folder: one without it is just being made.
    lock = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _remove(folder: Path) -> None:
    # Whatever modes a pipeline or the setup has given to what is in it.
    import_module("pytest_golden.gateway.scratch").remove_tree(folder)
