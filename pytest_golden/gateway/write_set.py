"""Which paths a pipeline wrote, by comparing what it left with what was there before.

Rewriting a file with equal bytes is no change, a changed mode is one, and what was made and removed again is absent.
Caches, `.git` and virtual environments never appear.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from pytest_golden.gateway.content import describe_file, has_equal_content, is_content, lstat_below, lstat_or_none
from pytest_golden.gateway.fingerprint import CACHE_FOLDERS, VENV_MARK, WITHHELD_FOLDERS
from pytest_golden.gateway.model import WriteSet, WrittenFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LEFT_OUT = CACHE_FOLDERS | WITHHELD_FOLDERS


def take_write_set(before_root: str, after_root: str, written: Iterable[str], removed: Iterable[str]) -> WriteSet:
    """Build the write set from candidates, looking at content only where it may have changed.

    `written` are relative paths that may be new or different below `after_root`; `removed` are paths that are gone.
    """
    created: list[str] = []
    changed: list[str] = []
    gone = {path for path in removed if is_content(lstat_below(before_root, path))}
    files: dict[str, WrittenFile] = {}
    for relative in written:
        path, original = os.path.join(after_root, relative), os.path.join(before_root, relative)
        found, before = lstat_or_none(path), lstat_below(before_root, relative)
        if found is None or not is_content(found):
            if is_content(before):
                gone.add(relative)
            continue
        if before is None or not is_content(before):
            created.append(relative)
            files[relative] = describe_file(path, relative, found)
            continue
        equal = has_equal_content(path, found, original, before)
        if equal and found.st_mode == before.st_mode:
            continue
        changed.append(relative)
        files[relative] = describe_file(path, relative, found, mode_only=equal)
    return WriteSet(tuple(sorted(created)), tuple(sorted(changed)), tuple(sorted(gone)), dict(sorted(files.items())))


def list_content(root: str, prefix: str = "") -> Iterator[str]:
    """List files and symlinks below a folder, relative to `root`, each as `prefix` and its name; caches left out."""
    try:
        with os.scandir(os.path.join(root, prefix)) as listing:
            entries = list(listing)
    except OSError:
        return
    for entry in entries:
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from list_content(root, f"{prefix}{entry.name}/")
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
        self._walk("")

    def _walk(self, prefix: str) -> None:
        names = self._list(prefix)
        if prefix and VENV_MARK in names:
            return
        for name in names:
            if name in _LEFT_OUT:
                continue
            relative = prefix + name
            found = os.lstat(os.path.join(self.upper, relative))
            if is_whiteout(found):
                self._remove(relative)
            elif stat.S_ISDIR(found.st_mode):
                self._enter(relative)
            else:
                self.written.append(relative)
                if self._was_folder(relative):
                    self._remove(relative)

    def _list(self, prefix: str) -> list[str]:
        folder = os.path.join(self.upper, prefix)
        try:
            return os.listdir(folder)
        except PermissionError:
            os.chmod(folder, stat.S_IRWXU)  # The pipeline closed a folder of its own; the layer is ours.
            return os.listdir(folder)

    def _enter(self, relative: str) -> None:
        if not self._was_folder(relative):
            self.removed.append(relative)
        elif is_opaque(os.path.join(self.upper, relative)):
            kept = set(self._names_above(relative + "/"))
            self.removed += [path for path in list_content(self.lower, relative + "/") if path not in kept]
        self._walk(relative + "/")

    def _names_above(self, prefix: str) -> Iterator[str]:
        for path in list_content(self.upper, prefix):
            found = lstat_or_none(os.path.join(self.upper, path))
            if found is not None and not is_whiteout(found):
                yield path

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
