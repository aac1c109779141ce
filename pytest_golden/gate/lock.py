"""One gate at a time in a workspace, also between processes. It only waits and says so; it never breaks a lock."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pytest_golden.gate.hiding import is_own_folder, make_own_folder
from pytest_golden.storage.folder import STATE_FOLDER, ignore_in_git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK_NAME = "gate.lock"
_WRITABLE_BY_OTHERS = 0o022


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
    """Return the folder that `prepare_state_folder` gives, to read in it: nothing is made, and it may not be there."""
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
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"pytest-golden-{user}-{digest}"


def _make_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ignore_in_git(folder)
    if not os.access(folder, os.W_OK):
        message = f"{folder} cannot be written"
        raise PermissionError(message)


def _read_holder(path: Path) -> str:
    try:
        number = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return f" (pid {number})" if number.isdigit() else ""
