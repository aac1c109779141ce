"""The proof that a project's files were not touched: what the file system says of each of them, before and after.

No file is opened. Caches are left out, and so are `.git` and virtual environments, which are withheld from writing
instead (see `seal.py`).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

#: Folders whose content comes and goes by itself; never fingerprinted, copied or part of a write set.
CACHE_FOLDERS = frozenset(
    {
        "__pycache__",
        ".golden",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
#: Folders that a pipeline may read and never write; too large to look at each time.
WITHHELD_FOLDERS = frozenset({".git", ".nox", ".tox"})
#: The file that makes a folder a virtual environment, which is withheld too.
VENV_MARK = "pyvenv.cfg"

Mark = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What was found below a folder.

    `marks` maps each relative path to (inode, size, mode, mtime ns, ctime ns), a folder's to (inode, mode) alone since
    its times change with the caches inside it. `withheld` are the folders (and a worktree's `.git` file) that were not
    looked into.
    """

    marks: Mapping[str, Mark] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()


def is_environment(names: Collection[str]) -> bool:
    """Tell whether a folder with these names in it is a virtual environment; the mark alone makes none."""
    return VENV_MARK in names and not {"bin", "Scripts"}.isdisjoint(names)


def take_fingerprint(root: str, *, is_ours: bool = False, known: Collection[str] = ()) -> Fingerprint:
    """Look at every file below a folder, without following symlinks.

    A folder that cannot be listed is marked as such, so that a change of that is seen too; one that is ours (a copy) is
    opened up. `known` folders are looked into whatever they have become.
    """
    marks: dict[str, Mark] = {}
    withheld: list[str] = []
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        try:
            if is_ours:
                open_up(folder)
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            marks[f"{prefix}(unreadable)"] = (error.errno or 0,)
            continue
        if prefix and prefix[:-1] not in known and is_environment({entry.name for entry in entries}):
            withheld.append(prefix[:-1])
            continue
        for entry in entries:
            name = entry.name
            if name in WITHHELD_FOLDERS:
                withheld.append(prefix + name)
            elif name not in CACHE_FOLDERS:
                _mark(entry, prefix + name, marks, pending)
    return Fingerprint(marks, tuple(withheld))


def open_up(folder: str) -> None:
    """Let us look into a folder of ours that a pipeline has closed."""
    if not os.access(folder, os.R_OK | os.X_OK):
        os.chmod(folder, stat.S_IRWXU)


def _mark(entry: os.DirEntry[str], path: str, marks: dict[str, Mark], pending: list[tuple[str, str]]) -> None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return  # Gone between the listing and the look; the comparison will tell if it mattered.
    if stat.S_ISDIR(found.st_mode):
        marks[path] = (found.st_ino, found.st_mode)
        pending.append((entry.path, path + "/"))
    else:
        marks[path] = (found.st_ino, found.st_size, found.st_mode, found.st_mtime_ns, found.st_ctime_ns)


def find_differences(before: Fingerprint, after: Fingerprint) -> Iterator[str]:
    """Give the paths that are new, gone or different, sorted."""
    if before.marks == after.marks:
        return
    for path in sorted(before.marks.keys() | after.marks.keys()):
        if before.marks.get(path) != after.marks.get(path):
            yield path
