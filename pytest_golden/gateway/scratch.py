"""Temporary folders of a run: upper layers, copies, private HOME and /tmp, raw output.

A session's folder is removed at its end; one whose session was killed is removed by the next. Nothing here decides
what is put inside.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from pytest_golden.clock import utc_now
from pytest_golden.errors import GatewayError

_PREFIX = f"pytest-golden-{os.getuid()}-"
_LOCK_NAME = "alive.lock"
# Where no lock tells, as on some network file systems, age does.
_ABANDONED_SECONDS = 2 * 24 * 3600
_LEAST_ROOM_BYTES = 64 << 10


class LivingFolder:
    """A folder of this process alone, with mode 0700, and a lock in it that is held as long as the process lives.

    What a killed process left in `place`, under a name that begins with `prefix`, is removed first.
    """

    def __init__(self, place: Path, prefix: str) -> None:
        remove_abandoned(place, prefix)
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=place)))
        # Locked before it gets its name, so that nobody takes the folder for an abandoned one.
        draft = self.path / f"{_LOCK_NAME}.new"
        self._lock: int | None = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft.rename(self.path / _LOCK_NAME)

    def close(self) -> None:
        """Remove it and everything in it; safe to call twice."""
        lock, self._lock = self._lock, None
        remove_tree(self.path)
        if lock is not None:
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Scratch:
    """A session's scratch folder in one place."""

    def __init__(self, place: Path) -> None:
        try:
            place.mkdir(parents=True, exist_ok=True)
            self._folder = LivingFolder(place, _PREFIX)
        except OSError as error:
            raise GatewayError(f"no scratch folder can be made in {place}: {error.strerror or error}") from error
        self.root = self._folder.path
        self._count = 0
        # One folder is removed while the next run is under way; more would pile up on the disk.
        self._remover = ThreadPoolExecutor(1, thread_name_prefix="golden-scratch")
        self._pending: Future[None] | None = None

    def new_folder(self) -> Path:
        """Make an empty folder for one run."""
        self._count += 1
        folder = self.root / str(self._count)
        folder.mkdir(mode=0o700)
        return folder

    def discard(self, folder: Path) -> None:
        """Remove a run's folder beside whatever comes next, which waits only when it discards one too."""
        if self._pending is not None:
            self._pending.result()
        self._pending = self._remover.submit(remove_tree, folder)

    def close(self) -> None:
        """Remove everything; safe to call twice."""
        self._remover.shutdown()
        self._folder.close()


def explain_full(place: Path) -> tuple[str, ...]:
    """Say what to do if no space is left where scratch lies: what a pipeline wrote about it may be lost for the same reason."""
    disk = os.statvfs(place)
    if disk.f_bavail * disk.f_frsize > _LEAST_ROOM_BYTES:
        return ()
    return (
        f"no space is left in {place}, where all that a pipeline writes goes: free some, or set TMPDIR to a larger disk",
    )


def list_places() -> tuple[Path, ...]:
    """List where scratch may lie, best first: disk before memory, since a pipeline may write much."""
    places = []
    with suppress(FileNotFoundError):  # It is tried out, and none may be writable; who makes scratch there says so.
        places.append(Path(tempfile.gettempdir()))
    places.append(Path("/var/tmp"))
    with suppress(RuntimeError):
        places.append(Path.home() / ".cache" / "pytest-golden")
    if sys.platform == "linux":
        places.append(Path("/dev/shm"))
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in places))


def remove_tree(folder: Path) -> None:
    """Remove a folder whatever modes a pipeline has given to what is in it, however deep; never follows a symlink.

    Folders are moved to the top before they are emptied, so that no path is too long and nothing recurses.
    """
    top = str(folder)
    if os.path.islink(top):
        os.unlink(top)
        return
    pending = [top]
    prefix = f".removing-{secrets.token_hex(8)}"
    count = 0
    while pending:
        path = pending.pop()
        for entry in _list_opened_up(path):
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                if _is_removed_at_once(entry.path):
                    continue
                os.chmod(entry.path, stat.S_IRWXU)
                count += 1
                moved = os.path.join(top, f"{prefix}-{count}")
                os.rename(entry.path, moved)
                pending.append(moved)
        if path != top:
            with suppress(OSError):
                os.rmdir(path)
    with suppress(OSError):
        os.rmdir(top)


def _is_removed_at_once(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _list_opened_up(folder: str) -> list[os.DirEntry[str]]:
    try:
        os.chmod(folder, stat.S_IRWXU)
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def remove_abandoned(place: Path, prefix: str) -> None:
    """Remove what killed processes of this user left in `place` under a name that begins with `prefix`."""
    for folder in place.glob(f"{prefix}*"):
        # Another process that starts may remove it too.
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and _is_abandoned(folder, found):
                remove_tree(folder)


def _is_abandoned(folder: Path, found: os.stat_result) -> bool:
    is_old = utc_now().timestamp() - found.st_mtime > _ABANDONED_SECONDS
    try:
        lock = os.open(folder / _LOCK_NAME, os.O_RDWR)
    except FileNotFoundError:
        return is_old  # It is just being made, or its process was killed over that.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return is_old and not isinstance(error, BlockingIOError)
    finally:
        os.close(lock)
    return True
