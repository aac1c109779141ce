"""The state folder of a workspace: where it is, its lock, and the places of its store, spool and logs.

One gate at a time runs in a workspace, also between processes. A gate only waits for the lock and says so; it never breaks it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from filelock import FileLock, Timeout

from pytest_golden.clock import utc_now
from pytest_golden.settings import NO_STORE
from pytest_golden.storage.folder import STATE_FOLDER, STORE_NAME, ignore_in_git
from pytest_golden.storage.location import list_sqlite_files, parse_location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.compare.waiting import RunOrigin
    from pytest_golden.storage.location import Location

LOCK_NAME = "gate.lock"
SPOOL_NAME = "spool"
_WRITABLE_BY_OTHERS = 0o022
KEPT_GATES = 20


def prepare_state_folder(workspace_root: Path) -> Path:
    """Return the folder for what outlives a session: `.golden` in the workspace, ignored by git.

    Where that cannot be written, a folder of the same user and workspace below the temporary one.
    """
    folder = workspace_root / STATE_FOLDER
    try:
        _make_folder(folder)
    except OSError:
        folder = _name_substitute(workspace_root)
        make_own_folder(folder)
        _make_folder(folder)
    return folder


def find_state_folder(workspace_root: Path) -> Path:
    """Return the folder of `prepare_state_folder` for reading. Nothing is created, and it may not exist."""
    folder = workspace_root / STATE_FOLDER
    if os.access(folder if folder.exists() else workspace_root, os.W_OK):
        return folder
    with suppress(FileNotFoundError):  # there is no temporary folder either
        substitute = _name_substitute(workspace_root)
        if is_own_folder(substitute):
            return substitute
    return folder


def find_substitute(workspace_root: Path) -> Path | None:
    """Return the folder used while `.golden` could not be written.

    None if there is none, or if other users may write to it.
    """
    with suppress(OSError):  # there is no temporary folder, or nothing in it
        folder = _name_substitute(workspace_root)
        if is_own_folder(folder) and not folder.lstat().st_mode & _WRITABLE_BY_OTHERS:
            return folder
    return None


def _name_substitute(workspace_root: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(workspace_root)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"pytest-golden-{os.getuid()}-{digest}"


def _make_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ignore_in_git(folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")


def describe_origin(root: Path) -> Callable[[], RunOrigin]:
    """Return what tells which run it is, for outputs that wait; git is asked once, and only if something waits."""

    @cache
    def look() -> tuple[str | None, tuple[str, ...], bool | None]:
        from pytest_golden.history.checkout import read_checkout, read_parents

        checkout = read_checkout(root)
        return checkout.commit, read_parents(root), checkout.dirty

    def describe() -> RunOrigin:
        # Few runs are red.
        from pytest_golden.compare.waiting import RunOrigin

        return RunOrigin(utc_now(), *look())

    return describe


@contextmanager
def hold_gate_lock(workspace_root: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the workspace's gate lock in a with-block; when another gate holds it, say so once and wait."""
    folder = prepare_state_folder(workspace_root)
    lock = FileLock(folder / LOCK_NAME, mode=0o666)
    holder = folder / "gate.pid"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another gate{_read_holder(holder)} is running in this workspace: waiting")
        lock.acquire()
    try:
        with suppress(OSError):
            holder.write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        with suppress(OSError):
            holder.unlink()
        lock.release()


def _read_holder(path: Path) -> str:
    try:
        number = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return f" (pid {number})" if number.isdigit() else ""


class StorePlace(NamedTuple):
    """A store's location; `is_own` if only this workspace writes to it."""

    location: str | Path
    is_own: bool

    def parse(self) -> Location:
        """Return the parsed location.

        Raises:
            SettingsError: no store can be there, or what is there is another program's.
        """
        location = parse_location(self.location)
        if location.path is not None and not self.is_own:
            # Loads the database library, which a workspace's own store does not wait for.
            from pytest_golden.storage.sqlite import refuse_foreign

            refuse_foreign(location.path)
        return location


def find_store_place(said: str | None, state_folder: Path) -> StorePlace | None:
    """Return the location of the store that was named, by default the one in the state folder; None for no store."""
    if said == NO_STORE:
        return None
    own = state_folder / STORE_NAME
    return StorePlace(own, is_own=True) if said is None or said == str(own) else StorePlace(said, is_own=False)


def find_spool_folder(place: StorePlace, state_folder: Path) -> Path:
    """Return the folder of what waits for this store, and for no other.

    Raises:
        SettingsError: no store can be at such a place.
    """
    folder = state_folder / SPOOL_NAME
    if place.is_own:
        return folder
    return folder / hashlib.sha256(os.fsencode(parse_location(place.location).shown)).hexdigest()[:16]


def list_store_files(place: StorePlace | None) -> tuple[Path, ...]:
    """Return the files that a gate writes to while it runs, with the given store, if any; none for a store on a server.

    Raises:
        SettingsError: no store can be at such a place.
    """
    if place is None:
        return ()
    return list_sqlite_files(Path(place.location) if place.is_own else parse_location(place.location).path)


def choose_log_folder(state_folder: Path, gate_id: str) -> Path:
    """Return the folder for the logs of a gate, and remove those of the oldest gates."""
    logs = state_folder / "logs"
    if logs.is_dir():
        # The ids sort by time.
        for old in sorted(logs.iterdir())[: -KEPT_GATES + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return logs / gate_id


def make_own_folder(folder: Path) -> None:
    """Create a folder in a place where other people may have created it before.

    Raises:
        PermissionError: it belongs to somebody else, or is not a folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_own_folder(folder):
        raise PermissionError(f"{folder} belongs to another user; remove it, or set TMPDIR to another folder")


def is_own_folder(folder: Path) -> bool:
    """Tell whether it is a folder that belongs to this user."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
