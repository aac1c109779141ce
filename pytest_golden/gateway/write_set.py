"""The paths that a pipeline wrote, and the fingerprint that proves that the project's own files did not change.

A file that was rewritten with equal bytes did not change; a file with a new mode did. A file that was created and removed again is not
in the write set. Neither are caches, `.git` and virtual environments; a pipeline cannot write the last two (see `seal.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.gateway import content
from pytest_golden.gateway.model import OutputFinding, PipelineOutcome, WriteSet, WrittenFile
from pytest_golden.gateway.resolution import NO_STAND_INS
from pytest_golden.redaction.redactor import redact_known

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.gateway.resolution import StandIns

    Examine = Callable[[PipelineOutcome, "WrittenFiles"], Iterable[OutputFinding]]


#: Caches: never fingerprinted, copied or part of a write set.
CACHE_FOLDERS = frozenset(
    ["__pycache__", ".golden", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"]
)
#: Folders that a pipeline may read but never write; too large to read for each run.
WITHHELD_FOLDERS = frozenset({".git", ".nox", ".tox"})
#: The file that marks a virtual environment, which is withheld too.
VENV_MARK = "pyvenv.cfg"
#: How many bytes of holes in a write set are hashed, at two GiB a second; further files are named and not read.
MOST_HOLES_BYTES = 16 << 30
#: The content hash of a file that was not read.
UNREAD = ""
_LEFT_OUT = CACHE_FOLDERS | WITHHELD_FOLDERS

Mark = tuple[int, ...]


def take_write_set(
    before_root: str,
    after_root: str,
    written: Iterable[str],
    removed: Iterable[str],
    stand_ins: StandIns = NO_STAND_INS,
) -> WriteSet:
    """Build the write set from candidates. A file's content is read only if it may have changed.

    `written` are relative paths that may be new or different below `after_root`; `removed` are paths that are gone.
    `stand_ins` replaced files below `before_root`.
    """
    created: list[str] = []
    changed: list[str] = []
    gone = {path for path in removed if content.is_content(content.lstat_below(before_root, path))}
    files: dict[str, WrittenFile] = {}
    holes_left = MOST_HOLES_BYTES
    for relative in written:
        root = stand_ins.root_of(relative, before_root)
        path, original = os.path.join(after_root, relative), os.path.join(root, relative)
        found, before = content.lstat_or_none(path), content.lstat_below(root, relative)
        if found is None or not content.is_content(found):
            if content.is_content(before):
                gone.add(relative)
            continue
        holes = content.count_hole_bytes(path, found)
        is_readable = holes <= holes_left
        holes_left -= holes if is_readable else 0
        kind = _find_change(path, found, original, before) if is_readable else "file"
        if kind is None:
            continue
        (changed if content.is_content(before) else created).append(relative)
        files[relative] = (
            content.describe_file(path, relative, found, mode_only=kind == "mode")
            if is_readable
            else WrittenFile(relative, kind, found.st_size, UNREAD)
        )
    return WriteSet(tuple(sorted(created)), tuple(sorted(changed)), tuple(sorted(gone)), dict(sorted(files.items())))


def _find_change(path: str, found: os.stat_result, original: str, before: os.stat_result | None) -> str | None:
    """Return what changed in a written file: `file` for its content, `mode` for only its mode, None for nothing."""
    if before is None or not content.is_content(before) or not content.has_equal_content(path, found, original, before):
        return "file"
    return None if found.st_mode == before.st_mode else "mode"


class UpperLayer:
    """The upper layer of an overlay, read as the kernel reads it.

    A character device 0/0 is a whiteout: the name was removed. A folder with the attribute `user.overlay.opaque` hides the
    folder below it. Source: https://docs.kernel.org/filesystems/overlayfs.html
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
        found = content.lstat_or_none(path)
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
        before = content.lstat_below(self.lower, relative)
        return before is not None and stat.S_ISDIR(before.st_mode)


def list_content(root: str, prefix: str = "") -> Iterator[str]:
    """List files and symlinks below the folder `prefix`, which ends with a slash. All paths are relative to `root`; caches are left out."""
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


def is_whiteout(found: os.stat_result) -> bool:
    """Tell whether an entry of an upper layer means that the name below it was removed."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: str) -> bool:
    """Tell whether a folder of an upper layer hides the one below it."""
    try:
        return os.getxattr(folder, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except (OSError, AttributeError):
        return False


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The files and folders that were found below a folder.

    `marks` maps the relative path of a file to (inode, size, mode, mtime ns, ctime ns), and that of a folder to (inode, mode), because
    a folder's times change with the caches inside it. `withheld` are the folders (and a worktree's `.git` file) whose content was not
    read.
    """

    marks: Mapping[str, Mark] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()


def take_fingerprint(root: str, *, is_ours: bool = False, known: Collection[str] = ()) -> Fingerprint:
    """Read the metadata of every file below a folder, without following symlinks or opening a file.

    A folder that cannot be listed is marked as unreadable, so that a change of this is noticed too; in a copy of ours
    (`is_ours`) it is made readable. `known` folders are read even if they have become virtual environments.
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


def _mark(entry: os.DirEntry[str], path: str, marks: dict[str, Mark], pending: list[tuple[str, str]]) -> None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return  # Removed between the listing and this call; the comparison shows whether it mattered.
    if stat.S_ISDIR(found.st_mode):
        marks[path] = (found.st_ino, found.st_mode)
        pending.append((entry.path, path + "/"))
    else:
        marks[path] = (found.st_ino, found.st_size, found.st_mode, found.st_mtime_ns, found.st_ctime_ns)


def keep_only(look: Fingerprint, paths: Collection[str]) -> Fingerprint:
    """Return the part of a fingerprint for some paths and their parent folders."""
    wanted = {path for path in paths if path in look.marks}
    above = {str(folder) for path in wanted for folder in PurePosixPath(path).parents}
    return Fingerprint(
        {path: mark for path, mark in look.marks.items() if path in wanted or path in above}, look.withheld
    )


def find_differences(before: Fingerprint, after: Fingerprint) -> Iterator[str]:
    """Yield the paths that are new, gone or different, sorted."""
    if before.marks == after.marks:
        return
    for path in sorted(before.marks.keys() | after.marks.keys()):
        if before.marks.get(path) != after.marks.get(path):
            yield path


def is_environment(names: Collection[str]) -> bool:
    """Tell whether a folder with these names in it is a virtual environment. The marker file alone is not enough."""
    return VENV_MARK in names and not {"bin", "Scripts"}.isdisjoint(names)


def open_up(folder: str) -> None:
    """Make a folder of ours readable again after a pipeline changed its mode."""
    if not os.access(folder, os.R_OK | os.X_OK):
        os.chmod(folder, stat.S_IRWXU)


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Everything that one run wrote.

    `paths` are relative to project_dir, with `/`, sorted. They include everything that a pipeline can create, also symlinks and
    pipes. `redact` removes the project's secrets from text, `redact_known` from binary content. `project_dir` is
    the project's own folder. `exported` maps tables that were read from databases to the files that hold them.
    `find_file` returns the content of a file that the pipeline saw last, whoever wrote it; None if it saw none.
    """

    root: Path
    paths: tuple[str, ...]
    redact: Callable[[str], str]
    project_dir: Path | None = None
    redact_known: Callable[[str], str] = redact_known
    exported: Mapping[str, Path] = field(default_factory=dict)
    find_file: Callable[[str], Path | None] = lambda _: None
    _real_folders: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def locate(self, path: str) -> Path:
        """Return the real file of one of `paths`; a regular file is made readable. It may be a symlink: do not follow it.

        Raises:
            FileNotFoundError: it was not written, or is gone.
            OSError: it cannot be made readable.
        """
        return self.find(path)[0]

    def find(self, path: str) -> tuple[Path, os.stat_result]:
        """Return the same file and its `lstat` result. Raises the same errors as `locate`."""
        if path in self.exported:
            place = self.exported[path]
            return place, place.lstat()
        position = bisect_left(self.paths, path)
        is_written = self.paths[position : position + 1] == (path,)
        found = content.lstat_below(str(self.root), path, self._real_folders) if is_written else None
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        place = self.root / path
        if stat.S_ISREG(found.st_mode) and not (found.st_mode & stat.S_IRUSR or os.access(place, os.R_OK)):
            place.chmod(stat.S_IMODE(found.st_mode) | stat.S_IRUSR)
            found = place.lstat()
        return place, found
