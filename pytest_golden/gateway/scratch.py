"""Folders for what a run needs and nobody keeps: upper layers, copies, private HOME and /tmp, raw output.

A session's folder is removed at its end; one whose session was killed is removed by the next. Nothing here decides
what is put inside.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pytest_golden.errors import GatewayError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREFIX = "pytest-golden-"
_LOCK_NAME = "alive.lock"


class Scratch:
    """A session's scratch folder in one place, with mode 0700 and a lock that says that its session lives."""

    def __init__(self, place: Path) -> None:
        try:
            place.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(place)
            self.root, self._lock = _make_locked(place)
        except OSError as error:
            raise GatewayError(f"no scratch folder can be made in {place}: {error.strerror or error}") from error
        self._count = 0

    def new_folder(self) -> Path:
        """Make an empty folder for one run."""
        self._count += 1
        folder = self.root / str(self._count)
        folder.mkdir(mode=0o700)
        return folder

    def close(self) -> None:
        """Remove everything; safe to call twice."""
        self._lock.release()
        remove_tree(self.root)


def list_places() -> tuple[Path, ...]:
    """List where scratch may lie, best first: disk before memory, since a pipeline may write much."""
    places = [Path(tempfile.gettempdir())]
    if sys.platform != "win32":
        places.append(Path("/var/tmp"))
    with suppress(RuntimeError):
        places.append(Path.home() / ".cache" / "pytest-golden")
    if sys.platform == "linux":
        places.append(Path("/dev/shm"))
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in places))


def remove_tree(folder: Path) -> None:
    """Remove a folder whatever modes a pipeline has given to what is in it; never follows a symlink."""
    if not os.path.lexists(folder):
        return
    shutil.rmtree(folder, onerror=_open_up_and_retry)
    if os.path.lexists(folder):
        # A folder that could not be listed was opened up by the first pass.
        shutil.rmtree(folder, ignore_errors=True)


def _open_up_and_retry(function: Callable[..., object], path: str, _: object) -> None:
    with suppress(OSError):
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        if not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
        if function in (os.unlink, os.rmdir):
            function(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)


def _owned_prefix() -> str:
    return f"{_PREFIX}{os.getuid()}-" if hasattr(os, "getuid") else _PREFIX


def _make_locked(place: Path) -> tuple[Path, FileLock]:
    """Make a folder and lock it; a session that starts at this moment may take it for abandoned, then another one."""
    while True:
        root = Path(tempfile.mkdtemp(prefix=_owned_prefix(), dir=place)).resolve()
        lock = FileLock(root / _LOCK_NAME)
        with suppress(Timeout, FileNotFoundError):
            lock.acquire(blocking=False)
            if (root / _LOCK_NAME).exists():
                return root, lock
            lock.release()


def _remove_abandoned(place: Path) -> None:
    for folder in _list_ours(place):
        lock = FileLock(folder / _LOCK_NAME)
        with suppress(Timeout, OSError):
            # A session makes its lock right after its folder: without one it is just being made.
            if not (folder / _LOCK_NAME).exists():
                continue
            lock.acquire(blocking=False)
            lock.release()
            remove_tree(folder)


def _list_ours(place: Path) -> Iterator[Path]:
    for folder in place.glob(_owned_prefix() + "*"):
        if folder.is_dir() and not folder.is_symlink():
            found = folder.stat()
            if not hasattr(os, "getuid") or found.st_uid == os.getuid():
                yield folder
