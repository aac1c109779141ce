"""Lines as multisets: which lines stand more often in one file than in the other, in flat memory for files of any size.

The hashes of all lines are summed up: equal sums are the same lines (but for a chance of one in 2**64). Where they are not,
each line's hash goes to the sum of one of many buckets, for the output as plus, for the baseline as minus, and only the
lines of buckets that do not come to nought are counted, not more than fit in memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pytest_golden.compare.text.text_lines import CountingLines

    # Files are read twice; one that is gone by then is an error.
    Opener = Callable[[], CountingLines]

_BUCKETS = 1 << 16
_MOST_LINES_HELD = 50_000
_MOST_BYTES_HELD = 32 << 20


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


def find_unordered_difference(ours: Opener, theirs: Opener) -> UnorderedDifference | None:
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
    """How much more often lines stand in the output; as many of them as have room."""

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
