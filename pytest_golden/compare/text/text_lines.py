r"""Reads the lines of a text file that count, with their numbers, and walks two such files side by side, in constant memory.

Only `\n` ends a line, and it stays on it. UTF-16 and UTF-32, recognised by a byte-order mark or by their zero bytes, are read
as the UTF-8 of the same text.
"""

from __future__ import annotations

import codecs
import io
from collections import Counter, deque
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from pytest_golden.compare.opening import UnreadableError, read_chunks
from pytest_golden.compare.showing import find_first_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.text_patterns import PatternProcess


#: Patterns see a line as a whole: a longer one would have to be taken apart.
LONGEST_MATCHED_LINE = 16 << 20
#: Without patterns, a longer line is taken apart.
LONGEST_PIECE = 1 << 20
CONTEXT_LINES = 3

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
# Unicode has so many planes besides the first.
_MOST_PLANES = 0x10

_LONGEST_KEPT = 32 << 10
# A secret of several lines can have begun so many before the first that differs.
_KEPT_LINES = 64

_BUCKETS = 1 << 16
_MOST_LINES_HELD = 50_000
_MOST_BYTES_HELD = 32 << 20


class Line(NamedTuple):
    """One line, its number in the file from 1, and its bytes with their line end, masked."""

    number: int
    text: bytes


class CountingLines:
    """The lines of one file that count. `texts` are those that are read and not yet passed, `numbers` theirs."""

    def __init__(self, content: Content, patterns: PatternProcess, *, as_unix: bool = False) -> None:
        self.texts: list[bytes] = []
        self.numbers: Sequence[int] = ()
        self.at = 0
        self._ended = 0
        self._is_open = False
        self._blocks = read_blocks(content, whole_lines=not patterns.is_idle)
        self._patterns = patterns
        self._as_unix = as_unix

    @property
    def is_spent(self) -> bool:
        """Tell whether all lines that were read are passed."""
        return self.at == len(self.texts)

    @property
    def lines_read(self) -> int:
        """Return how many lines of the file were read, ignored ones included."""
        return self._ended + self._is_open

    def next_block(self) -> bytes:
        """Return the next lines as they are in the file, without taking them; empty at the end."""
        return next(self._blocks, b"")

    def treat(self, block: bytes) -> tuple[bytes, list[int] | None]:
        """Return the lines of a block that count, masked, and their positions when others do not."""
        treated, positions = self._patterns.treat_block(block)
        return treated.replace(b"\r\n", b"\n") if self._as_unix else treated, positions

    def skip(self, block: bytes, line_ends: int | None = None) -> None:
        """Pass lines that `next_block` gave, with the number of line ends in them where that is known."""
        if block:
            self._ended += block.count(b"\n") if line_ends is None else line_ends
            self._is_open = not block.endswith(b"\n")

    def take(self, block: bytes, treated: bytes, positions: list[int] | None) -> None:
        """Add the lines that `treat` made of a block to those not yet passed."""
        first = self._ended + 1
        lines = split_lines(treated)
        numbers = range(first, first + len(lines)) if positions is None else [first + at for at in positions]
        if self.is_spent:
            self.texts, self.numbers = lines, numbers
        else:
            self.texts = [*self.texts[self.at :], *lines]
            self.numbers = [*self.numbers[self.at :], *numbers]
        self.at = 0
        self.skip(block)

    def fill(self, count: int = 1) -> int:
        """Read on until so many lines are not yet passed; return how many there are, fewer only at the end."""
        while len(self.texts) - self.at < count and (block := self.next_block()):
            self.take(block, *self.treat(block))
        return len(self.texts) - self.at

    def pass_by(self, count: int) -> None:
        """Pass lines."""
        self.at += count

    def look(self, count: int, most_bytes: int) -> list[Line]:
        """Return the next lines without passing them: one at least, where there is one, and then as many as have room."""
        found: list[Line] = []
        # Lines can be long: no more are read than are returned, apart from the first that has no room.
        while len(found) < count and self.fill(len(found) + 1) > len(found):
            position = self.at + len(found)
            most_bytes -= len(self.texts[position])
            if found and most_bytes < 0:
                break
            found.append(Line(self.numbers[position], self.texts[position]))
        return found

    def read_all(self) -> Iterator[list[bytes]]:
        """Yield all lines that count, some thousands at a time, without their numbers."""
        while block := self.next_block():
            yield split_lines(self.treat(block)[0])


class SideBySide:
    """Two files walked at once. `passed` are the last lines that were equal, as pairs of output and baseline."""

    def __init__(self, ours: CountingLines, theirs: CountingLines) -> None:
        self.ours = ours
        self.theirs = theirs
        self.passed: deque[tuple[Line, Line]] = deque(maxlen=_KEPT_LINES)

    def find_difference(self) -> bool:
        """Pass equal lines up to the next that differ; return False at the end of both."""
        while True:
            if self.ours.is_spent and self.theirs.is_spent and self._pass_block():
                continue
            ours, theirs = self.ours.fill(), self.theirs.fill()
            if not ours or not theirs:
                return bool(ours or theirs)
            if self._pass_equal(min(ours, theirs)):
                return True

    def pass_by(self, ours: int, theirs: int) -> None:
        """Pass lines that differ."""
        self.ours.pass_by(ours)
        self.theirs.pass_by(theirs)

    def _pass_block(self) -> bool:
        """Pass a block that is equal in both files, as it is or as the patterns leave it; return False where that ends."""
        one, other = self.ours.next_block(), self.theirs.next_block()
        is_same = one == other
        ours = (one, None) if is_same else self.ours.treat(one)
        theirs = ours if is_same else self.theirs.treat(other)
        if one and ours == theirs:
            line_ends = one.count(b"\n")
            self._remember(*ours, line_ends + (not one.endswith(b"\n")))
            self.ours.skip(one, line_ends)
            self.theirs.skip(other, line_ends if is_same else None)
            return True
        self.ours.take(one, *ours)
        self.theirs.take(other, *theirs)
        return False

    def _remember(self, block: bytes, positions: list[int] | None, count: int) -> None:
        """Keep the last lines of a block for the context of what comes."""
        lines = last_lines(block, _KEPT_LINES)
        last = range(count)[-len(lines) :] if positions is None else positions[-len(lines) :]
        for at, line in zip(last, lines, strict=False):
            self._keep(self.ours.lines_read + at + 1, self.theirs.lines_read + at + 1, line)

    def _pass_equal(self, count: int) -> bool:
        """Pass equal lines; return True when one that differs was reached."""
        ours, theirs = self.ours, self.theirs
        one, other = ours.texts[ours.at : ours.at + count], theirs.texts[theirs.at : theirs.at + count]
        equal = find_first_difference(one, other)
        for back in range(min(_KEPT_LINES, equal), 0, -1):
            at = equal - back
            self._keep(ours.numbers[ours.at + at], theirs.numbers[theirs.at + at], one[at])
        self.pass_by(equal, equal)
        return equal < count

    def _keep(self, our_number: int, their_number: int, line: bytes) -> None:
        kept = line if len(line) <= _LONGEST_KEPT else line[:_LONGEST_KEPT] + b"\n"
        self.passed.append((Line(our_number, kept), Line(their_number, kept)))


def read_blocks(content: Content, *, whole_lines: bool) -> Iterator[bytes]:
    r"""Yield a file in blocks of whole lines, some hundred KiB at a time.

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
    r"""Return the lines of a block, each with its `\n`."""
    return io.BytesIO(block).readlines()


def last_lines(block: bytes, count: int) -> list[bytes]:
    """Return up to `count` of the last lines of a block."""
    start = len(block)
    for _ in range(count):
        start = block.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return split_lines(block[start:])


def find_encoding(content: Content) -> str:
    """Return what the beginning of a file says: `UTF-16`, `UTF-32`, or else `UTF-8`.

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


@dataclass(frozen=True, slots=True)
class UnorderedDifference:
    """Lines, with how many more there are of them, in the order of their file.

    `is_whole` tells that these are all; else they are some of them.
    """

    only_ours: tuple[tuple[bytes, int], ...]
    only_theirs: tuple[tuple[bytes, int], ...]
    our_lines: int
    their_lines: int
    is_whole: bool


def find_unordered_difference(
    ours: Callable[[], CountingLines], theirs: Callable[[], CountingLines]
) -> UnorderedDifference | None:
    """Return what one file has more of than the other; None when both have the same lines as often."""
    if has_same_lines(ours(), theirs()):
        return None
    sums = [0] * _BUCKETS
    our_lines = _add_up(_lines(ours()), sums, 1)
    their_lines = _add_up(_lines(theirs()), sums, -1)
    chosen, is_whole = _choose([bucket for bucket in range(_BUCKETS) if sums[bucket]], our_lines + their_lines)
    excess = _Excess()
    excess.count(_lines(ours()), chosen, 1)
    excess.count(_lines(theirs()), chosen, -1)
    return UnorderedDifference(
        tuple((line, count) for line, count in excess.counts.items() if count > 0),
        tuple((line, -count) for line, count in excess.counts.items() if count < 0),
        our_lines,
        their_lines,
        is_whole and not excess.is_full,
    )


def has_same_lines(ours: CountingLines, theirs: CountingLines) -> bool:
    """Tell whether both have the same lines as often."""
    return _sum(ours) == _sum(theirs)


class _Excess:
    """Counts how much more often lines are in the output, for as many lines as fit in memory."""

    def __init__(self) -> None:
        self.counts: Counter[bytes] = Counter()
        self.is_full = False
        self._held_bytes = 0

    def count(self, lines: Iterable[bytes], chosen: Collection[int], step: int) -> None:
        for line in lines:
            if crc32(line) % _BUCKETS not in chosen:
                continue
            if line not in self.counts and not self._has_room(line):
                self.is_full = True
                continue
            self.counts[line] += step

    def _has_room(self, line: bytes) -> bool:
        self._held_bytes += len(line)
        return self._held_bytes <= _MOST_BYTES_HELD or not self.counts


def _sum(counting: CountingLines) -> int:
    return sum(sum(map(hash, lines)) for lines in _batches(counting))


def _lines(counting: CountingLines) -> Iterator[bytes]:
    return chain.from_iterable(_batches(counting))


def _batches(counting: CountingLines) -> Iterator[list[bytes]]:
    """Return lines that all have an end: the last of a file, which may lack it, is one like all others."""
    for lines in counting.read_all():
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        yield lines


def _add_up(lines: Iterable[bytes], sums: list[int], sign: int) -> int:
    total = 0
    for line in lines:
        sums[crc32(line) % _BUCKETS] += sign * hash(line)
        total += 1
    return total


def _choose(differing: list[int], total: int) -> tuple[set[int], bool]:
    """Choose as many buckets as their lines, evenly spread, have room."""
    count = max(1, _MOST_LINES_HELD * _BUCKETS // max(total, 1))
    return set(differing[:count]), len(differing) <= count
