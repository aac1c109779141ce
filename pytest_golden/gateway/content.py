"""Reads files without trusting who wrote them: follows no symlink, waits for no pipe."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from pytest_golden.gateway.model import WrittenFile
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

#: Where what starts a script is looked for.
SCRIPT_HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_ZEROS = memoryview(bytes(_CHUNK_BYTES))


def lstat_or_none(path: str) -> os.stat_result | None:
    """Return what the file system says of a path itself, None when there is nothing."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def lstat_below(root: str, relative: str, real: set[str] | None = None) -> os.stat_result | None:
    """Return what the file system says of a path below a folder, None when there is nothing or a symlink leads there.

    `real` are folders below `root` that need no second look; those that this call looks at are added.
    """
    parent = relative.rpartition("/")[0]
    if parent and (real is None or parent not in real):
        path = root
        for folder in parent.split("/"):
            path = f"{path}/{folder}"
            found = lstat_or_none(path)
            if found is None or not stat.S_ISDIR(found.st_mode):
                return None
        if real is not None:
            real.add(parent)
    return lstat_or_none(f"{root}/{relative}")


def find_texts(chunks: Iterable[bytes], texts: Collection[str]) -> frozenset[str]:
    """Return which texts are in what the chunks make together, as UTF-8."""
    wanted = {text: text.encode("utf-8", "surrogateescape") for text in texts}
    longest = max(map(len, wanted.values()), default=0)
    found: set[str] = set()
    kept = b""
    for chunk in chunks:
        seen = kept + chunk
        found.update(text for text, raw in wanted.items() if text not in found and raw in seen)
        kept = seen[-(longest - 1) :] if longest > 1 else b""
    return frozenset(found)


def is_content(found: os.stat_result | None) -> bool:
    """Tell whether it is a file or a symlink: the kinds that count in a write set."""
    return found is not None and (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a regular file of our own for reading, even if its mode forbids that."""
    try:
        file = open_regular(path)
    except PermissionError:
        file = os.fdopen(_open_up(path), "rb")
    with file:
        yield file


def _open_up(path: str) -> int:
    """Open a file whose mode forbids reading, and restore the mode; never open another file through a link."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or not hasattr(os, "O_PATH"):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        if (os.fstat(handle).st_ino, os.fstat(handle).st_dev) != (found.st_ino, found.st_dev):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        same = f"/proc/self/fd/{handle}"
        os.chmod(same, stat.S_IRUSR)
        try:
            return os.open(same, os.O_RDONLY | os.O_NONBLOCK)
        finally:
            os.chmod(same, stat.S_IMODE(found.st_mode))
    finally:
        os.close(handle)


def may_have_holes(found: os.stat_result) -> bool:
    """Tell whether a file takes less space than it has bytes: by holes, by compression, or since it is not on disk yet."""
    return stat.S_ISREG(found.st_mode) and getattr(found, "st_blocks", found.st_size) * 512 < found.st_size


def count_hole_bytes(path: str, found: os.stat_result) -> int:
    """Return how many bytes of a file are holes, which cost nothing to make and as much as data to read."""
    if not may_have_holes(found):
        return 0
    with opened(path) as file:
        return found.st_size - sum(end - start for start, end in find_data(file.fileno(), found.st_size))


def find_data(descriptor: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Return start and end of each part of a file that is not a hole; the whole where the file system cannot tell."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size_bytes
        return
    end = 0
    while end < size_bytes:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:
            return  # Holes are all that is left.
        end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size_bytes)
        yield start, end


def _hash(file: IO[bytes]) -> str:
    """Hash a file's bytes; those of holes are not read."""
    found = os.fstat(file.fileno())
    if not may_have_holes(found):
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    digest, position = hashlib.sha256(), 0
    for start, end in (*find_data(file.fileno(), found.st_size), (found.st_size, found.st_size)):
        for left in range(start - position, 0, -_CHUNK_BYTES):
            digest.update(_ZEROS[:left])
        file.seek(start)
        for left in range(end - start, 0, -_CHUNK_BYTES):
            digest.update(file.read(min(left, _CHUNK_BYTES)))
        position = end
    return digest.hexdigest()


def describe_file(path: str, relative: str, found: os.stat_result, *, mode_only: bool = False) -> WrittenFile:
    """Return kind, size and content hash of a file or symlink."""
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(path))
        return WrittenFile(relative, "symlink", len(target), hashlib.sha256(target).hexdigest())
    with opened(path) as file:
        digest = _hash(file)
    return WrittenFile(relative, "mode" if mode_only else "file", found.st_size, digest)


def has_equal_content(left: str, left_found: os.stat_result, right: str, right_found: os.stat_result) -> bool:
    """Tell whether two files, or two symlinks, hold the same bytes. Reads both at most once, in chunks.

    The left one is ours; the right one may be an original, which is not opened up to be read: then they differ.
    """
    if stat.S_IFMT(left_found.st_mode) != stat.S_IFMT(right_found.st_mode) or left_found.st_size != right_found.st_size:
        return False
    if stat.S_ISLNK(left_found.st_mode):
        return os.readlink(left) == os.readlink(right)
    try:
        other = open_regular(right)
    except PermissionError:
        return False
    with other, opened(left) as one:
        while True:
            chunk = one.read(_CHUNK_BYTES)
            if chunk != other.read(_CHUNK_BYTES):
                return False
            if not chunk:
                return True


def find_regular_file(root: str, relative: str) -> str | None:
    """Return the path of a regular file below a folder, None when any part of the way is missing or a symlink."""
    parts = [part for part in relative.replace("\\", "/").split("/") if part not in {"", "."}]
    found = lstat_below(root, "/".join(parts)) if parts and ".." not in parts else None
    return os.path.join(root, *parts) if found is not None and stat.S_ISREG(found.st_mode) else None


def read_shebang(script: Path) -> tuple[str, ...]:
    """Return the words after `#!` in a script's first line; empty when it has none.

    Raises:
        OSError: the file cannot be read.
    """
    with script.open("rb") as stream:
        head = stream.read(SCRIPT_HEAD_BYTES)
    if not head.startswith(b"#!"):
        return ()
    line = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").strip(" \t")
    # As the kernel splits it, to which a carriage return is part of the word.
    return tuple(re.split("[ \t]+", line, maxsplit=1))
