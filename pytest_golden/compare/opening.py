"""The two files of a comparison, its mismatch and its errors; and reading files without trusting them.

Only regular files are read, archives are decompressed, and everything is read in chunks, so that no file fills the memory. An archive is
recognized by its suffix: `.gz`, `.bz2`, `.xz`, `.zst`. Every failure is an `UnreadableError`.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from importlib import import_module
from math import ceil, floor, log10
from typing import IO, TYPE_CHECKING, Any, cast

from pytest_golden.errors import GoldenError
from pytest_golden.manifest.comparisons import comparison_by_suffix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path, PurePath

    from _typeshed import WriteableBuffer

    from pytest_golden.gateway.table_difference import TableDifference
    from pytest_golden.manifest.model import DeclaredOutput
    from pytest_golden.regression.model import ReasonKind


CHUNK_BYTES = 256 << 10

# Content that expands beyond this size and this factor is a bomb or an accident: data is compressed 5 to 100 times.
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

# A piece of zstd can expand to 32,768 times its size, one of xz to 7,000 times.
_PIECE_BYTES = 512
# A piece of bz2 can expand to a million times its size, so it is read in parts.
_PART_BYTES = 1 << 20
# Twice as much as `xz -9` needs; an archive may ask for 4 GiB.
_XZ_MEMORY_BYTES = 160 << 20


class Side(StrEnum):
    """Whose file it is."""

    OUTPUT = "output"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Content:
    """One of the two files of a comparison."""

    path: Path
    side: Side


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an output does not hold. The first line of `message` is one sentence; a readable difference may follow.

    `difference` is the difference of a table as values.
    """

    kind: ReasonKind
    message: str
    difference: TableDifference | None = None


@dataclass(frozen=True, slots=True)
class Movement:
    """The differences between the outputs of two runs on the same input, and the fewest rules that make them equal.

    `rules` are keys of an entry of `outputs:`, with the values to add. `seen` says what differs and which rule covers
    it, `unsolved` what no rule covers: one sentence each.
    """

    rules: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    unsolved: tuple[str, ...] = ()


#: Numbers that differ by at most this share of the larger one differ only in their last digits, as after sums in another order.
LAST_DIGITS = 1e-10


def propose_tolerance(share: float) -> float:
    """Return a tolerance for numbers that differed by this share: ten times as much, with one digit, and at least 1e-9.

    Two runs do not show the largest difference that later runs can have. 1e-9 is the default of `math.isclose`.
    """
    unit = 10.0 ** floor(log10(share))
    return max(1e-9, float(f"{ceil(share / unit - 1e-9) * unit * 10:.0e}"))


class UnreadableError(GoldenError):
    """A file cannot be read as expected. The message continues a sentence that begins with the file's name: `is cut short`."""

    def __init__(self, side: Side, message: str) -> None:
        self.side = side
        super().__init__(message)


class VastError(UnreadableError):
    """An archive expands beyond all limits, so only a part of it was read."""


class PatternTimedOutError(GoldenError):
    """A pattern of the manifest backtracks without end on a text."""


def choose_comparison(path: str | PurePath, declared: DeclaredOutput) -> str:
    """Return the declared comparison, or else the one for the file's suffix, without that of an archive."""
    return declared.compare or comparison_by_suffix(str(path).replace("\\", "/"))


def read_chunks(content: Content, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the content of a file, decompressed if it is an archive, in chunks of that size; only the last one is shorter.

    Raises:
        UnreadableError: it does not exist, is not a regular file, or is an archive that is broken or needs a missing package.
        VastError: it is an archive that expands beyond all limits.
    """
    with _open_regular(content) as file:
        if not is_archive(content):
            yield from _read_all(file, chunk_bytes, content)
            return
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise UnreadableError(content.side, f"is empty, and so no {_suffix(content)} archive")
        with _open_archive(file, content) as plain:
            yield from _refuse_vast(_read_all(plain, chunk_bytes, content), size, content)


def read_raw_chunks(content: Content, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a file on the disk, in chunks as `read_chunks` does."""
    with _open_regular(content) as file:
        yield from _read_all(file, chunk_bytes, content)


def has_equal_bytes(one: Content, other: Content) -> bool:
    """Tell whether two files have the same bytes on the disk.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    left, size = _open_descriptor(one)
    try:
        right, its_size = _open_descriptor(other)
        try:
            return size == its_size and _reads_equal(left, right, size, (one, other))
        finally:
            os.close(right)
    finally:
        os.close(left)


def _reads_equal(left: int, right: int, size: int, contents: tuple[Content, Content]) -> bool:
    """Tell whether two files of one size have the same bytes up to their ends, although they may grow meanwhile.

    A buffer that is used again is four times as fast as new chunks. Both buffers have the same old content after a short read.
    """
    # A small file is at its end after one read.
    buffers = [bytearray(min(size + 1, CHUNK_BYTES))], [bytearray(min(size + 1, CHUNK_BYTES))]
    while True:
        count = _read_into(left, buffers[0], contents[0])
        if count != _read_into(right, buffers[1], contents[1]) or buffers[0] != buffers[1]:
            return False
        size -= count
        if not count or (size <= 0 and count < len(buffers[0][0])):
            return True


def _read_into(descriptor: int, buffers: list[bytearray], content: Content) -> int:
    try:
        return os.readv(descriptor, buffers)
    except OSError as error:
        raise UnreadableError(content.side, _describe(error, _suffix(content))) from None


def read_size(content: Content) -> int:
    """Return the size of a file on the disk, in bytes.

    Raises:
        UnreadableError: it does not exist or is not a regular file.
    """
    with _open_regular(content) as file:
        return os.fstat(file.fileno()).st_size


def is_archive(content: Content) -> bool:
    """Tell whether the file is read as an archive, by its suffix."""
    return _suffix(content) in {".gz", ".bz2", ".xz", ".zst"}


def _refuse_vast(chunks: Iterator[bytes], packed_bytes: int, content: Content) -> Iterator[bytes]:
    """Refuse an archive that would take hours, or the whole disk, to decompress."""
    room = max(_MOST_UNFOLDED_BYTES, _MOST_TIMES * packed_bytes)
    for chunk in chunks:
        room -= len(chunk)
        if room < 0:
            raise VastError(
                content.side,
                f"is a {_suffix(content)} archive that unpacks to more than 1 GiB and {_MOST_TIMES} times its size, as a bomb does: "
                "declare `compare: exists` for it, or write it unpacked",
            )
        yield chunk


def _suffix(content: Content) -> str:
    return content.path.suffix.lower()


@contextmanager
def _open_regular(content: Content) -> Iterator[io.BufferedReader]:
    with os.fdopen(_open_descriptor(content)[0], "rb") as file:
        yield file


def _open_descriptor(content: Content) -> tuple[int, int]:
    """Open a regular file; return its descriptor and its size."""
    # An output's link is never followed; a link among the baselines was checked by the caller.
    flags = _FLAGS | (getattr(os, "O_NOFOLLOW", 0) if content.side is Side.OUTPUT else 0)
    try:
        descriptor = os.open(content.path, flags)
    except OSError as error:
        raise UnreadableError(content.side, _describe(error, _suffix(content))) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise UnreadableError(content.side, "is not a regular file")
    return descriptor, found.st_size


def _open_archive(file: IO[bytes], content: Content) -> IO[bytes]:
    suffix = _suffix(content)
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    if suffix == ".zst":
        return io.BufferedReader(FramedReader(file, _find_zstd(content.side)))
    # Python's own bz2 reader ignores data behind the archive that is not bz2.
    start_xz = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)
    start: Callable[[], Any] = bz2.BZ2Decompressor if suffix == ".bz2" else start_xz
    return io.BufferedReader(FramedReader(file, start, _PART_BYTES))


def _find_zstd(side: Side) -> Callable[[], Any]:
    """Return what makes a decompressor of zstd: Python's own module from 3.14 on, else the package `zstandard`.

    Both refuse a frame that asks for more than 128 MiB.
    """
    with suppress(ImportError):
        own: Callable[[], Any] = import_module("compression.zstd").ZstdDecompressor
        return own
    with suppress(ImportError):
        package = import_module("zstandard")
        return lambda: package.ZstdDecompressor().decompressobj()
    message = "is a .zst archive, and nothing here reads those: pip install 'pytest-golden-projects[tables]'"
    raise UnreadableError(side, message)


class FramedReader(io.RawIOBase):
    """The plain content of frames that follow each other; `start` makes a decompressor for one frame.

    With `part_bytes` a decompressor returns no more at a time, and says by `needs_input` whether there is more of a piece.
    A read raises EOFError when the last frame is cut short, ValueError when a frame is broken.
    """

    def __init__(self, file: IO[bytes], start: Callable[[], Any], *part_bytes: int) -> None:
        self._file = file
        self._start = start
        self._part_bytes = part_bytes
        self._frame: Any = None
        self._has_begun = False
        self._behind = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a buffer as far as one piece goes; 0 at the end."""
        view = memoryview(buffer).cast("B")
        while not self._ready:
            if not self._advance():
                return 0
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _advance(self) -> bool:
        has_more = self._frame is not None and not getattr(self._frame, "needs_input", True)
        piece = b"" if has_more else self._take_piece()
        if not piece and not has_more:
            if self._frame is not None:
                raise EOFError
            return False
        self._has_begun = True
        frame = self._frame or self._start()
        try:
            self._ready = memoryview(frame.decompress(piece, *self._part_bytes))
        except (OSError, EOFError):
            raise
        except Exception as error:
            raise ValueError(str(error)) from None
        self._frame, self._behind = (None, frame.unused_data) if frame.eof else (frame, b"")
        return True

    def _take_piece(self) -> bytes:
        piece = self._behind or self._file.read(_PIECE_BYTES)
        if self._frame is not None or not self._has_begun:
            return piece
        # Behind a stream there may be zeros, and no frame of any kind begins with one.
        return piece.lstrip(b"\0") or self._skip_zeros()

    def _skip_zeros(self) -> bytes:
        while piece := self._file.read(_PIECE_BYTES):
            if found := piece.lstrip(b"\0"):
                return found
        return b""


def _read_all(file: IO[bytes], chunk_bytes: int, content: Content) -> Iterator[bytes]:
    try:
        while chunk := file.read(chunk_bytes):
            yield chunk
    except _BROKEN as error:
        raise UnreadableError(content.side, _describe(error, _suffix(content))) from None


def _describe(error: Exception, suffix: str) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return _TROUBLES.get(error.errno) or f"cannot be opened: {error.strerror}"
    if isinstance(error, EOFError):
        return f"is a {suffix} archive that is cut short"
    return f"is not a valid {suffix} archive: {error}"
