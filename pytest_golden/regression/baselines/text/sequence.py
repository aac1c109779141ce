"""The lines of a file that count, one behind another with their numbers, and two such files walked side by side."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.regression.baselines.showing import find_first_difference
from pytest_golden.regression.baselines.text.lines import last_lines, read_blocks, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.regression.baselines.model import Content
    from pytest_golden.regression.baselines.patterns import PatternProcess

CONTEXT_LINES = 3
_LONGEST_KEPT = 32 << 10
# A secret of several lines can have begun so many before the first that differs.
_KEPT_LINES = 64


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
        """How many lines of the file were read, those that do not count too."""
        return self._ended + self._is_open

    def next_block(self) -> bytes:
        """Give the next lines as they are in the file, without taking them; empty at the end."""
        return next(self._blocks, b"")

    def treat(self, block: bytes) -> tuple[bytes, list[int] | None]:
        """Give the lines of a block that count, masked, and their positions when others do not."""
        treated, positions = self._patterns.treat_block(block)
        return treated.replace(b"\r\n", b"\n") if self._as_unix else treated, positions

    def skip(self, block: bytes, line_ends: int | None = None) -> None:
        """Pass lines that `next_block` gave, with the number of line ends in them where that is known."""
        if block:
            self._ended += block.count(b"\n") if line_ends is None else line_ends
            self._is_open = not block.endswith(b"\n")

    def take(self, block: bytes, treated: bytes, positions: list[int] | None) -> None:
        """Take up the lines that `treat` made of a block."""
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
        """Read on until so many lines are not yet passed; gives how many there are, fewer at the end only."""
        while len(self.texts) - self.at < count and (block := self.next_block()):
            self.take(block, *self.treat(block))
        return len(self.texts) - self.at

    def pass_by(self, count: int) -> None:
        """Pass lines."""
        self.at += count

    def look(self, count: int, most_bytes: int) -> list[Line]:
        """Give the next lines without passing them: one at least, where there is one, and then as many as have room."""
        found: list[Line] = []
        # Lines can be long: no more is read than is given, but for the first that has no room.
        while len(found) < count and self.fill(len(found) + 1) > len(found):
            position = self.at + len(found)
            most_bytes -= len(self.texts[position])
            if found and most_bytes < 0:
                break
            found.append(Line(self.numbers[position], self.texts[position]))
        return found

    def read_all(self) -> Iterator[list[bytes]]:
        """Give all lines that count, some thousands at a time, without their numbers."""
        while block := self.next_block():
            yield split_lines(self.treat(block)[0])


class SideBySide:
    """Two files walked at once. `passed` are the last lines that were equal, as pairs of output and baseline."""

    def __init__(self, ours: CountingLines, theirs: CountingLines) -> None:
        self.ours = ours
        self.theirs = theirs
        self.passed: deque[tuple[Line, Line]] = deque(maxlen=_KEPT_LINES)

    def find_difference(self) -> bool:
        """Pass equal lines up to the next that differ; gives False at the end of both."""
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
        """Pass a block that is equal in both files, as it is or as the patterns leave it; gives False where that ends."""
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
        """Pass equal lines; gives True when one that differs was reached."""
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
