"""Records which files of the checkout are opened while a pipeline runs, by the kernel's inotify: Linux only, no privileges.

It watches folders, not processes, so it also records what others open at the same time: too much, never too little. It does
not record files and folders that are only looked up or listed, nor reads through a file that was open before.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.write_set import CACHE_FOLDERS, WITHHELD_FOLDERS, is_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FOLDERS = 20_000
MOST_READS = 5_000
_COMPILED = "__pycache__"
#: Folders in which no reads are recorded.
UNWATCHED_FOLDERS = (CACHE_FOLDERS | WITHHELD_FOLDERS | {"node_modules"}) - {_COMPILED}
# Source: inotify(7), and linux/inotify.h for the values.
_OPEN, _MOVED_TO, _CREATE, _OVERFLOW, _ISDIR = 0x20, 0x80, 0x100, 0x4000, 0x40000000
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 1 << 16
_LIMITS = {
    errno.ENOSPC: "fs.inotify.max_user_watches is reached",
    errno.EMFILE: "the limit fs.inotify.max_user_instances is reached, or too many files are open",
}


class ReadRecorder:
    """Records what was opened between `begin` and `end`, in the checkout that a folder is in, or else below that folder.

    Caches, virtual environments and `node_modules` are left out. A pipeline that works on a copy of its folder opens no file of it;
    a recorder of its own watches that (`is_copy`).
    """

    def __init__(
        self, folder: Path, *, is_copy: bool = False, most_folders: int = MOST_FOLDERS, most_reads: int = MOST_READS
    ) -> None:
        folder = Path(os.path.realpath(folder))
        above = () if is_copy else (folder, *folder.parents)
        self.root = next((place for place in above if (place / ".git").exists()), folder)
        self._most_folders = most_folders
        self._most_reads = most_reads
        self._inotify: int | None = None
        self._folders: dict[int, str] = {}
        self._trouble: str | None = None
        self._is_told = False
        self.inside: tuple[str, ...] | None = None

    def open_for_copy(self, folder: Path) -> ReadRecorder:
        """Return a recorder for a copy of a part of the checkout, relative to the copy."""
        return ReadRecorder(folder, is_copy=True, most_folders=self._most_folders, most_reads=self._most_reads)

    def begin(self) -> None:
        """Forget what was opened before."""
        if self._inotify is not None and self._take() is None:
            # There is a new folder, or events were lost: all watches are set again.
            self.close()
        if self._inotify is None and self._trouble is None:
            self._set_up()

    def end(self, own: Path) -> tuple[str, ...] | None:
        """Return the files opened since `begin`, sorted, relative to the root; None if that is not known.

        Files in `own`, a real path, are left out; `inside` holds them then.
        """
        self.inside = None
        taken = None if self._inotify is None else self._take()
        if taken is None:
            self.close()
            return None
        inside = {path for path in taken if (self.root / path).is_relative_to(own)}
        self.inside = self._bound(inside)
        return self._bound(taken - inside)

    def _bound(self, paths: set[str]) -> tuple[str, ...] | None:
        is_known = len(paths) <= self._most_reads and all(map(_is_text, paths))
        return tuple(sorted(paths)) if is_known else None

    def take_warnings(self) -> tuple[str, ...]:
        """Return why nothing is recorded; the first call only."""
        if self._trouble is None or self._is_told:
            return ()
        self._is_told = True
        return (f"reads are not recorded: {self._trouble}",)

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        if self._inotify is not None:
            os.close(self._inotify)
        self._inotify = None
        self._folders = {}

    def _set_up(self) -> None:
        if sys.platform != "linux":
            self._trouble = "only Linux reports which files are opened"
            return
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self._inotify = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            for folder in self._list_folders():
                if len(self._folders) >= self._most_folders:
                    self._fail(f"{self.root} has more than {self._most_folders:,} folders")
                    return
                self._watch(libc, self._inotify, folder)
        except OSError as error:
            self._fail(_LIMITS.get(error.errno or 0, error.strerror or str(error)))

    def _watch(self, libc: ctypes.CDLL, inotify: int, folder: str) -> None:
        name = os.fsencode(self.root / folder)
        try:
            watch = _checked(libc.inotify_add_watch(inotify, name, _OPEN | _CREATE | _MOVED_TO))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # It was removed, or we cannot read it, and so the pipeline cannot either.
        self._folders[watch] = folder

    def _fail(self, trouble: str) -> None:
        self._trouble = trouble
        self.close()

    def _list_folders(self) -> Iterator[str]:
        """Return the folders to watch, relative to the root with a slash at the end, each before what is in it is listed."""
        pending = [""]
        while pending:
            folder = pending.pop()
            yield folder
            try:
                with os.scandir(self.root / folder) as listing:
                    entries = list(listing)
            except OSError:
                continue
            if folder and is_environment({entry.name for entry in entries}):
                continue
            pending += (
                f"{folder}{entry.name}/"
                for entry in entries
                if entry.name not in UNWATCHED_FOLDERS and entry.is_dir(follow_symlinks=False)
            )

    def _take(self) -> set[str] | None:
        """Return the files opened so far; None when events were lost or a new folder is not watched."""
        taken: set[str] = set()
        is_known = True
        for watch, mask, name in self._read_events():
            folder = self._folders.get(watch, "")
            if mask & _OVERFLOW or (mask & _ISDIR and mask & (_CREATE | _MOVED_TO) and name not in UNWATCHED_FOLDERS):
                is_known = False
            elif mask & _OPEN and not mask & _ISDIR:
                taken.add(_name_read(folder, name))
        return taken if is_known else None

    def _read_events(self) -> Iterator[tuple[int, int, str]]:
        while self._inotify is not None:
            try:
                told = os.read(self._inotify, _BUFFER_BYTES)
            except BlockingIOError:
                return
            start = 0
            while start < len(told):
                watch, mask, _, length = _EVENT.unpack_from(told, start)
                start += _EVENT.size + length
                yield watch, mask, os.fsdecode(told[start - length : start].rstrip(b"\0"))


def _name_read(folder: str, name: str) -> str:
    if not f"/{folder}".endswith(f"/{_COMPILED}/"):
        return f"{folder}{name}"
    # The source of a module that is already compiled is only looked up.
    return f"{folder.removesuffix(f'{_COMPILED}/')}{name.partition('.')[0]}.py"


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
