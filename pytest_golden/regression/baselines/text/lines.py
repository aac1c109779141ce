r"""The lines of a text file, in batches, so that a file of any size and with lines of any length is read in flat memory.

Only `\n` ends a line, and it stays on it. UTF-16 and UTF-32, with a byte-order mark or where their zero bytes give them away,
are read as the UTF-8 of the same text.
"""

from __future__ import annotations

import codecs
import io
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import UnreadableError
from pytest_golden.regression.baselines.opening import read_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.regression.baselines.model import Content

#: Patterns see a line as a whole: a longer one would have to be taken apart.
LONGEST_MATCHED_LINE = 16 << 20
#: Without patterns, a longer line is taken apart.
LONGEST_PIECE = 1 << 20
# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


# Enough to tell UTF-16 by, which has a zero byte in each sign of Latin scripts.
_LOOKED_AT_BYTES = 4 << 10
_FEWEST_BYTES = 8
# Unicode has so many planes beside the first.
_MOST_PLANES = 0x10


def read_blocks(content: Content, *, whole_lines: bool) -> Iterator[bytes]:
    r"""Give a file in blocks of whole lines, some hundred KiB at a time.

    Args:
        content: the file.
        whole_lines: refuse a line that is too long for patterns; else it comes in blocks that do not end in `\n`.

    Raises:
        UnreadableError: it cannot be read, or a line is too long.
    """
    carried: list[bytes] = []
    carried_bytes = 0
    for chunk in _read_utf8(content):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*carried, chunk[:end]))
            carried, carried_bytes = [], 0
        carried.append(chunk[end:])
        carried_bytes += len(chunk) - end
        if whole_lines and carried_bytes > LONGEST_MATCHED_LINE:
            raise UnreadableError(content.side, "has a line of more than 16 MiB, too long for masks and ignore_lines")
        if not whole_lines and carried_bytes > LONGEST_PIECE:
            line = b"".join(carried)
            yield line[:LONGEST_PIECE]
            carried, carried_bytes = [line[LONGEST_PIECE:]], len(line) - LONGEST_PIECE
    if carried_bytes:
        yield b"".join(carried)


def split_lines(block: bytes) -> list[bytes]:
    r"""Give the lines of a block, each with its `\n`."""
    return io.BytesIO(block).readlines()


def last_lines(block: bytes, count: int) -> list[bytes]:
    """Give so many of the last lines of a block, or all."""
    start = len(block)
    for _ in range(count):
        start = block.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return split_lines(block[start:])


def find_encoding(content: Content) -> str:
    """Give what the beginning of a file says: `UTF-16`, `UTF-32`, or else `UTF-8`.

    Raises:
        UnreadableError: it cannot be read.
    """
    return _encoding_of(next(read_chunks(content), b"")).upper().removesuffix("-LE").removesuffix("-BE")


def _encoding_of(beginning: bytes) -> str:
    return next((name for mark, name in _MARKS if beginning.startswith(mark)), None) or _guess(beginning)


def _guess(beginning: bytes) -> str:
    """Tell UTF-16 by its zero bytes: most signs have one, and all at the same place. In UTF-32 every sign has one, most have three."""
    some = beginning[:_LOOKED_AT_BYTES]
    if len(some) < _FEWEST_BYTES:
        return "utf-8"
    low, high = some[0::2].count(0), some[1::2].count(0)
    if min(low, high):
        return _guess_utf_32(some)
    if 4 * max(low, high) <= len(some):
        return "utf-8"
    return "utf-16-le" if high else "utf-16-be"


def _guess_utf_32(some: bytes) -> str:
    for encoding, (first, second, last) in {"utf-32-le": (3, 2, 0), "utf-32-be": (0, 1, 3)}.items():
        if not any(some[first::4]) and max(some[second::4]) <= _MOST_PLANES and 0 not in some[last::4]:
            return encoding
    return "utf-8"


def _read_utf8(content: Content) -> Iterator[bytes]:
    chunks = read_chunks(content)
    beginning = next(chunks, b"")
    encoding = _encoding_of(beginning)
    if encoding == "utf-8":
        yield beginning
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
    yield decoder.decode(beginning).encode("utf-8", "surrogatepass")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
