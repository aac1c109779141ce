"""Archives that come in frames, decompressed piece by piece; what the standard library opens in flat memory is not here."""

from __future__ import annotations

import bz2
import io
import lzma
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

# A piece of zstd can unfold to 32,768 times its size, one of xz to 7,000 times.
_PIECE_BYTES = 512
# What bz2 gives at a time.
_PART_BYTES = 1 << 20
# As much as `xz -9` needs, twice over; an archive may ask for 4 GiB.
_XZ_MEMORY_BYTES = 160 << 20


class Frame(Protocol):
    """A decompressor for one frame: what lies behind the frame's end is `unused_data`."""

    @property
    def eof(self) -> bool:
        """Tell whether the frame's end was reached."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Give what was handed in and lies behind the end."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """Take a piece and give what it unfolds to.

        One that gives it in parts says so by `needs_input`, and is handed no bytes for the next part.
        """
        ...


class _Bz2Frame:
    """One stream of bz2, of which a piece can unfold to a million times its size: it comes in parts."""

    def __init__(self) -> None:
        self._stream = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return self._stream.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, /) -> bytes:
        return self._stream.decompress(data, _PART_BYTES)


class ZstandardMissingError(GoldenError):
    """Nothing that is installed reads zstd."""


def start_bz2() -> Frame:
    """Give a decompressor for one stream of bz2; Python's own reader passes over what is no bz2 behind it."""
    return _Bz2Frame()


def start_xz() -> Frame:
    """Give a decompressor for one stream of xz, with a limit to its memory."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


def open_zst(file: IO[bytes]) -> IO[bytes]:
    """Open zstd: by Python's own module from 3.14 on, else by the package `zstandard`.

    Both refuse a frame that asks for more than 128 MiB.

    Raises:
        ZstandardMissingError: there is neither.
    """
    start = _find_zstd()
    if start is None:
        message = "is a .zst archive, and nothing here reads those: pip install 'pytest-golden-projects[tables]'"
        raise ZstandardMissingError(message)
    return io.BufferedReader(FramedReader(file, start))


def _find_zstd() -> Callable[[], Frame] | None:
    for module, make in (("compression.zstd", _own), ("zstandard", _packaged)):
        try:
            return make(import_module(module))
        except ImportError:
            continue
    return None


def _own(module: Any) -> Callable[[], Frame]:
    decompressor: Callable[[], Frame] = module.ZstdDecompressor
    return decompressor


def _packaged(module: Any) -> Callable[[], Frame]:
    return lambda: module.ZstdDecompressor().decompressobj()


class FramedReader(io.RawIOBase):
    """The plain content of frames one behind another.

    A read raises EOFError when the last frame is cut short, ValueError when a frame is broken.
    """

    def __init__(self, file: IO[bytes], start: Callable[[], Frame]) -> None:
        self._file = file
        self._start = start
        self._frame: Frame | None = None
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
            self._ready = memoryview(frame.decompress(piece))
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
