"""Which paths a pipeline wrote, by comparing what it left with what was there before.

Rewriting a file with equal bytes is no change, a changed mode is one, and what was made and removed again is absent.
Caches, `.git` and virtual environments never appear.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from pytest_golden.gateway.content import (
    count_hole_bytes,
    describe_file,
    has_equal_content,
    is_content,
    lstat_below,
    lstat_or_none,
)
from pytest_golden.gateway.fingerprint import CACHE_FOLDERS, WITHHELD_FOLDERS, is_environment, open_up
from pytest_golden.gateway.model import WriteSet, WrittenFile
from pytest_golden.gateway.stand_ins import NO_STAND_INS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.gateway.stand_ins import StandIns

#: How much of holes in a write set is hashed, which takes a second for two GiB; files beyond are named and not read.
MOST_HOLES_BYTES = 16 << 30
#: The content hash of a file that was not read.
UNREAD = ""
_LEFT_OUT = CACHE_FOLDERS | WITHHELD_FOLDERS


def take_write_set(
    before_root: str,
    after_root: str,
    written: Iterable[str],
    removed: Iterable[str],
    stand_ins: StandIns = NO_STAND_INS,
) -> WriteSet:
    """Build the write set from candidates, looking at content only where it may have changed.

    `written` are relative paths that may be new or different below `after_root`; `removed` are paths that are gone.
    `stand_ins` were there in the place of what lies below `before_root`.
    """
    created: list[str] = []
    changed: list[str] = []
    gone = {path for path in removed if is_content(lstat_below(before_root, path))}
    files: dict[str, WrittenFile] = {}
    holes_left = MOST_HOLES_BYTES
    for relative in written:
        root = stand_ins.root_of(relative, before_root)
        path, original = os.path.join(after_root, relative), os.path.join(root, relative)
        found, before = lstat_or_none(path), lstat_below(root, relative)
        if found is None or not is_content(found):
            if is_content(before):
                gone.add(relative)
            continue
        holes = count_hole_bytes(path, found)
        is_readable = holes <= holes_left
        holes_left -= holes if is_readable else 0
        kind = _compare(path, found, original, before) if is_readable else "file"
        if kind is None:
            continue
        (changed if is_content(before) else created).append(relative)
        files[relative] = (
            describe_file(path, relative, found, mode_only=kind == "mode")
            if is_readable
            else WrittenFile(relative, kind, found.st_size, UNREAD)
        )
    return WriteSet(tuple(sorted(created)), tuple(sorted(changed)), tuple(sorted(gone)), dict(sorted(files.items())))


def _compare(path: str, found: os.stat_result, original: str, before: os.stat_result | None) -> str | None:
    """Tell what is different in a file that was written: all of it, its mode, or (None) nothing."""
    if before is None or not is_content(before) or not has_equal_content(path, found, original, before):
        return "file"
    return None if found.st_mode == before.st_mode else "mode"


def list_content(root: str, prefix: str = "") -> Iterator[str]:
    """List files and symlinks below a folder, relative to `root`, each as `prefix` and its name; caches left out."""
    pending = [prefix]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(os.path.join(root, prefix)) as listing:
                entries = [entry for entry in listing if entry.name not in _LEFT_OUT]
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


class UpperLayer:
    """The upper layer of an overlay, read the way the kernel reads it.

    A character device 0/0 is a whiteout: the name is gone. A folder with the attribute `user.overlay.opaque` hides the
    one below. Source: https://docs.kernel.org/filesystems/overlayfs.html
    """

    def __init__(self, lower: str, upper: str) -> None:
        self.lower, self.upper = lower, upper
        self.written: list[str] = []
        self.removed: list[str] = []
        self._opaque: list[str] = []
        self._pending = [""]
        open_up(upper)
        while self._pending:
            self._look_into(self._pending.pop())
        present = frozenset(self.written)
        for folder in self._opaque:
            self.removed += [path for path in list_content(lower, folder + "/") if path not in present]

    def _look_into(self, prefix: str) -> None:
        try:
            names = os.listdir(os.path.join(self.upper, prefix))
        except OSError:
            return  # So deep that no path can name it.
        if is_environment(names) and prefix and not self._was_folder(prefix[:-1]):
            return
        for name in names:
            if name not in _LEFT_OUT:
                self._look_at(prefix + name)

    def _look_at(self, relative: str) -> None:
        path = os.path.join(self.upper, relative)
        found = lstat_or_none(path)
        if found is None:
            return
        if is_whiteout(found):
            self._remove(relative)
        elif stat.S_ISDIR(found.st_mode):
            open_up(path)
            self._enter(relative)
        else:
            self.written.append(relative)
            if self._was_folder(relative):
                self._remove(relative)

    def _enter(self, relative: str) -> None:
        if not self._was_folder(relative):
            self.removed.append(relative)
        elif is_opaque(os.path.join(self.upper, relative)):
            self._opaque.append(relative)
        self._pending.append(relative + "/")

    def _remove(self, relative: str) -> None:
        if self._was_folder(relative):
            self.removed += list_content(self.lower, relative + "/")
        else:
            self.removed.append(relative)

    def _was_folder(self, relative: str) -> bool:
        before = lstat_below(self.lower, relative)
        return before is not None and stat.S_ISDIR(before.st_mode)


def is_whiteout(found: os.stat_result) -> bool:
    """Tell whether an entry of an upper layer says that the name below is gone."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: str) -> bool:
    """Tell whether a folder of an upper layer hides the one below it."""
    try:
        return os.getxattr(folder, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except (OSError, AttributeError):
        return False
