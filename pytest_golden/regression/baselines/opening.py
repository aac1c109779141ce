"""Files read without trusting them: regular ones only, archives seen through, in chunks, so that none fills the memory.

What is seen through is told by the suffix: `.gz`, `.bz2`, `.xz`, `.zst`. Every failure is an `UnreadableError`.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import stat
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from pytest_golden.regression.baselines.archives import (
    FramedReader,
    ZstandardMissingError,
    open_zst,
    start_bz2,
    start_xz,
)
from pytest_golden.regression.baselines.model import Content, Side, UnreadableError, VastError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 256 << 10
# What unfolds to more than this, and to so many times its size, is a bomb or an accident: data is packed 5 to 100 times smaller.
_MOST_UNFOLDED_BYTES = 1 << 30
_MOST_TIMES = 250
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_TROUBLES = {
    errno.ENOENT: "is gone: it was removed after the run",
    errno.ENOTDIR: "is gone: it was removed after the run",
    errno.ELOOP: "is a symbolic link, and no file",
    errno.EACCES: "may not be read: permission denied",
}
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)


def read_chunks(content: Content, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Give what a file holds, an archive's plain content, in chunks of that size; only the last one is shorter.

    Raises:
        UnreadableError: it is gone, no regular file, or an archive that is broken or needs what is not installed.
        VastError: it is an archive that unfolds beyond all bounds.
    """
    with _opened(content) as file:
        if not is_archive(content):
            yield from _chunks(file, chunk_bytes, content)
            return
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise UnreadableError(content.side, f"is empty, and so no {_suffix(content)} archive")
        with _seen_through(file, content) as plain:
            yield from _bounded(_chunks(plain, chunk_bytes, content), size, content)


def read_raw_chunks(content: Content, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Give what a file holds as it lies on the disk, as `read_chunks` does."""
    with _opened(content) as file:
        yield from _chunks(file, chunk_bytes, content)


def read_size(content: Content) -> int:
    """Give the size that a file has on the disk, in bytes.

    Raises:
        UnreadableError: it is gone or no regular file.
    """
    with _opened(content) as file:
        return os.fstat(file.fileno()).st_size


def is_archive(content: Content) -> bool:
    """Tell whether the file is seen through."""
    return _suffix(content) in {".gz", ".bz2", ".xz", ".zst"}


def _bounded(chunks: Iterator[bytes], packed_bytes: int, content: Content) -> Iterator[bytes]:
    """Refuse to go on in an archive that would take hours, or the whole disk, to be unfolded."""
    room = max(_MOST_UNFOLDED_BYTES, _MOST_TIMES * packed_bytes)
    for chunk in chunks:
        room -= len(chunk)
        if room < 0:
            raise VastError(
                content.side,
                f"is a {_suffix(content)} archive that unfolds to more than 1 GiB and {_MOST_TIMES} times its size, as a bomb does: "
                "declare `compare: exists` for it, or write it unpacked",
            )
        yield chunk


def _suffix(content: Content) -> str:
    return content.path.suffix.lower()


@contextmanager
def _opened(content: Content) -> Iterator[IO[bytes]]:
    # Where an output's link leads, no baseline should go; a link among the baselines was looked at by the caller.
    flags = _FLAGS | (getattr(os, "O_NOFOLLOW", 0) if content.side is Side.OUTPUT else 0)
    try:
        descriptor = os.open(content.path, flags)
    except OSError as error:
        raise UnreadableError(content.side, _describe(error)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError(content.side, "is no regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


@contextmanager
def _seen_through(file: IO[bytes], content: Content) -> Iterator[IO[bytes]]:
    try:
        plain = _open_archive(file, _suffix(content))
    except ZstandardMissingError as error:
        raise UnreadableError(content.side, str(error)) from None
    with plain:
        yield plain


def _open_archive(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    if suffix == ".bz2":
        return io.BufferedReader(FramedReader(file, start_bz2))
    if suffix == ".xz":
        return io.BufferedReader(FramedReader(file, start_xz))
    return open_zst(file)


def _chunks(file: IO[bytes], chunk_bytes: int, content: Content) -> Iterator[bytes]:
    while True:
        try:
            chunk = file.read(chunk_bytes)
        except _BROKEN as error:
            raise UnreadableError(content.side, _describe_broken(error, _suffix(content))) from None
        if not chunk:
            return
        yield chunk


def _describe_broken(error: Exception, suffix: str) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return _describe(error)
    if isinstance(error, EOFError):
        return f"is a {suffix} archive that is cut short"
    return f"is no sound {suffix} archive: {error}"


def _describe(error: OSError) -> str:
    if error.errno is not None and error.errno in _TROUBLES:
        return _TROUBLES[error.errno]
    return f"cannot be opened: {error.strerror or error}"
