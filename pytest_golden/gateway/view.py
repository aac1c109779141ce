"""Copy-on-write views of a project's folder: an overlay by the kernel, or a private copy.

A view tells the seal how it is mounted, gives what the pipeline left at a path, and takes the write set. It starts
nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if sys.platform == "linux":
    from fcntl import ioctl

from pytest_golden.gateway.content import find_data, find_regular_file, lstat_or_none, may_have_holes
from pytest_golden.gateway.fingerprint import Fingerprint, find_differences, take_fingerprint
from pytest_golden.gateway.stand_ins import NO_STAND_INS, put_into_copy
from pytest_golden.gateway.write_set import UNREAD, UpperLayer, is_opaque, is_whiteout, take_write_set

if TYPE_CHECKING:
    from pytest_golden.gateway.model import WriteSet
    from pytest_golden.gateway.stand_ins import StandIns

_FICLONE = 0x40049409
_CHUNK_BYTES = 1 << 20


class View(Protocol):
    """What the gateway needs of a view; `project_dir` is where the original lies, `seen_at` where the pipeline sees it."""

    project_dir: Path
    seen_at: str

    def mount_arguments(self) -> list[str]:
        """Give the sandbox's arguments that put the view in the original's place."""
        ...

    def find_file(self, relative: str) -> Path | None:
        """Give a host path with the content that the pipeline saw last, None when there is no regular file."""
        ...

    def take_write_set(self) -> WriteSet:
        """Compare what the pipeline left with the original."""
        ...

    def find_written(self) -> tuple[Path, tuple[str, ...]]:
        """Give a host folder and the sorted paths below it of all that the pipeline wrote, with equal bytes too."""
        ...

    def write_kept(self, folder: Path) -> None:
        """Copy what a person wants to look at later into a folder."""
        ...


class OverlayView:
    """The original below, an empty upper layer above; writing costs what is written and nothing else.

    Stand-ins are a layer between the two, so that the upper one still holds what the pipeline wrote and nothing else.
    """

    def __init__(self, project_dir: Path, folder: Path, stand_ins: StandIns = NO_STAND_INS) -> None:
        self.project_dir = project_dir
        self._stand_ins = stand_ins
        self.seen_at = str(project_dir)
        self.upper, self.work = folder / "upper", folder / "work"
        self.upper.mkdir()
        self.work.mkdir()
        os.chmod(self.upper, stat.S_IMODE(os.stat(project_dir).st_mode) | stat.S_IRWXU)

    def mount_arguments(self) -> list[str]:
        """Mount the overlay over the original."""
        lower = [self.seen_at, *([self._stand_ins.root] if self._stand_ins.paths else [])]
        sources = [argument for layer in lower for argument in ("--overlay-src", layer)]
        return [*sources, "--overlay", str(self.upper), str(self.work), self.seen_at]

    def find_file(self, relative: str) -> Path | None:
        """Look in the upper layer first, and below only where nothing above hides it."""
        above = find_regular_file(str(self.upper), relative)
        if above is not None:
            return Path(above)
        if self._is_hidden(relative):
            return None
        below = find_regular_file(self._stand_ins.root_of(relative, str(self.project_dir)), relative)
        return None if below is None else Path(below)

    def _is_hidden(self, relative: str) -> bool:
        path = str(self.upper)
        for part in relative.split("/"):
            path = os.path.join(path, part)
            found = lstat_or_none(path)
            if found is None:
                return False
            if is_whiteout(found) or not stat.S_ISDIR(found.st_mode) or is_opaque(path):
                return True
        return True

    def take_write_set(self) -> WriteSet:
        """Read the upper layer: what was written is exactly what is in it."""
        layer = UpperLayer(str(self.project_dir), str(self.upper))
        return take_write_set(str(self.project_dir), str(self.upper), layer.written, layer.removed, self._stand_ins)

    def find_written(self) -> tuple[Path, tuple[str, ...]]:
        """List the upper layer."""
        return self.upper, tuple(sorted(UpperLayer(str(self.project_dir), str(self.upper)).written))

    def write_kept(self, folder: Path) -> None:
        """Keep the files that the pipeline wrote."""
        _copy_written(self.take_write_set(), self.upper, folder)


class CopyView:
    """A private copy of the original, made by the file system's own cloning where it has that."""

    def __init__(
        self,
        project_dir: Path,
        folder: Path,
        fingerprint: Fingerprint,
        *,
        sealed: bool,
        stand_ins: StandIns = NO_STAND_INS,
    ) -> None:
        self.project_dir = project_dir
        self._stand_ins = stand_ins
        self.copy = folder / "view"
        self.seen_at = str(project_dir if sealed else self.copy)
        copy_tree(project_dir, self.copy, fingerprint)
        put_into_copy(stand_ins, self.copy)
        self._before = take_fingerprint(str(self.copy))

    def mount_arguments(self) -> list[str]:
        """Mount the copy over the original."""
        return ["--bind", str(self.copy), str(self.project_dir)]

    def find_file(self, relative: str) -> Path | None:
        """Look in the copy."""
        found = find_regular_file(str(self.copy), relative)
        return None if found is None else Path(found)

    def take_write_set(self) -> WriteSet:
        """Compare the copy's files with what they were when it was made."""
        written, removed = self._differences()
        return take_write_set(str(self.project_dir), str(self.copy), written, removed, self._stand_ins)

    def find_written(self) -> tuple[Path, tuple[str, ...]]:
        """List what is new in the copy, or has other times than when it was made."""
        founds = ((path, lstat_or_none(os.path.join(self.copy, path))) for path in self._differences()[0])
        files = (path for path, found in founds if found is not None and not stat.S_ISDIR(found.st_mode))
        return self.copy, tuple(sorted(files))

    def write_kept(self, folder: Path) -> None:
        """Keep the files that the pipeline wrote."""
        _copy_written(self.take_write_set(), self.copy, folder)

    def _differences(self) -> tuple[list[str], list[str]]:
        after = take_fingerprint(str(self.copy), is_ours=True, known=self._before.marks.keys())
        differing = tuple(find_differences(self._before, after))
        written = [path for path in differing if path in after.marks]
        return written, [path for path in differing if path not in after.marks]


def copy_tree(source: Path, target: Path, fingerprint: Fingerprint) -> None:
    """Copy what a fingerprint of the source names: files with mode and times, symlinks as they are, no special files."""
    target.mkdir(mode=0o700)
    folders: list[tuple[str, int]] = []
    for relative, mark in fingerprint.marks.items():
        origin, copy = os.path.join(source, relative), os.path.join(target, relative)
        mode = mark[1] if len(mark) == 2 else mark[2] if len(mark) > 2 else 0
        if stat.S_ISDIR(mode):
            os.mkdir(copy, 0o700)
            folders.append((copy, mode))
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(origin), copy)
        elif stat.S_ISREG(mode):
            copy_file(origin, copy)
    for folder, mode in reversed(folders):
        os.chmod(folder, stat.S_IMODE(mode))
    os.chmod(target, stat.S_IMODE(os.stat(source).st_mode) | stat.S_IRWXU)


def copy_file(origin: str, copy: str) -> None:
    """Copy one file with mode and times, sharing its blocks where the file system can."""
    copy_content(origin, copy)
    shutil.copystat(origin, copy, follow_symlinks=False)


def copy_content(origin: str, copy: str) -> None:
    """Copy what is in one file, sharing its blocks where the file system can; holes stay holes."""
    if _clone(origin, copy):
        return
    found = os.lstat(origin)
    if may_have_holes(found):
        _copy_data(origin, copy, found.st_size)
    else:
        shutil.copyfile(origin, copy, follow_symlinks=False)


def _clone(origin: str, copy: str) -> bool:
    if sys.platform != "linux":
        return False
    with open(origin, "rb") as source, open(copy, "wb") as target, suppress(OSError):
        ioctl(target.fileno(), _FICLONE, source.fileno())
        return True
    return False


def _copy_data(origin: str, copy: str, size_bytes: int) -> None:
    """Copy a file with holes as one: filled with zeros it could be larger than the disk."""
    with open(origin, "rb") as source, open(copy, "wb") as target:
        target.truncate(size_bytes)
        for start, end in find_data(source.fileno(), size_bytes):
            source.seek(start)
            target.seek(start)
            target.writelines(source.read(min(left, _CHUNK_BYTES)) for left in range(end - start, 0, -_CHUNK_BYTES))


def _copy_written(write_set: WriteSet, source: Path, folder: Path) -> None:
    for relative, file in write_set.files.items():
        if file.sha256 == UNREAD:
            continue
        copy = folder / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        origin = source / relative
        if origin.is_symlink():
            copy.symlink_to(os.readlink(origin))
        else:
            copy_file(str(origin), str(copy))
            # A kept file is for looking at: it must not run with its owner's rights.
            copy.chmod(stat.S_IMODE(copy.stat().st_mode) & 0o777)
