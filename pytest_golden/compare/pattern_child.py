"""Applies users' patterns to texts; a bare script, since a catastrophic pattern can only be stopped by a kill.

Frames on stdin and stdout: four bytes of length, then a value by `marshal`. The first frame is the patterns
`[ignore_lines, masks, mark]`. Each further one is answered: a list of texts (str) by the list of them masked; a block of
lines (bytes) by `[block, positions]`, the lines that count and, when some do not, which ones of the block they are. A line
in which an ignoring pattern is found does not count; matches of masks become the mark, in the order of the masks. No
pattern sees a line's end.
"""

from __future__ import annotations

import marshal
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_frame() -> Any:
    """Return the next value, None at the end of the input."""
    head = sys.stdin.buffer.read(4)
    return marshal.loads(sys.stdin.buffer.read(int.from_bytes(head, "big"))) if len(head) == 4 else None


def write_frame(value: Any) -> None:
    """Write one value."""
    raw = marshal.dumps(value)
    sys.stdout.buffer.write(len(raw).to_bytes(4, "big"))
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


class Treatment:
    """The patterns, ready to be applied."""

    def __init__(self, ignore_lines: list[str], masks: list[str], mark: str) -> None:
        self._ignoring = [re.compile(pattern).search for pattern in ignore_lines]
        self._masking = [re.compile(pattern).sub for pattern in masks]
        self._mark = mark

    def mask(self, texts: list[str]) -> list[str]:
        """Mask texts or lines."""
        for substitute in self._masking:
            texts = [substitute(self._marked, text) for text in texts]
        return texts

    def treat(self, block: bytes) -> list[Any]:
        """Return the lines of a block that count, masked, and their positions in it when others do not."""
        lines = block.decode("utf-8", "surrogateescape").split("\n")
        # What follows the last line end: nothing, or a line without one.
        lines, open_line = lines[:-1], lines[-1:] if lines[-1] else []
        count = len(lines)
        plain = [*lines, *open_line]
        ends = [line[len(line.removesuffix("\r")) :] for line in plain] if b"\r" in block else [""] * len(plain)
        plain = [line.removesuffix("\r") for line in plain] if b"\r" in block else plain
        kept = self._keep(plain)
        masked = self.mask([plain[at] for at in kept] if len(kept) < len(plain) else plain)
        treated = [line + ends[at] + ("\n" if at < count else "") for at, line in zip(kept, masked, strict=True)]
        return ["".join(treated).encode("utf-8", "surrogateescape"), [*kept] if len(kept) < len(plain) else None]

    def _keep(self, lines: list[str]) -> Sequence[int]:
        kept: Sequence[int] = range(len(lines))
        for search in self._ignoring:
            kept = [at for at in kept if not search(lines[at])]
        return kept

    def _marked(self, match: re.Match[str]) -> str:
        # Marks for empty matches would stand between all letters.
        return self._mark if match.end() > match.start() else ""


def main() -> None:
    """Answer frame by frame."""
    treatment = Treatment(*read_frame())
    while (asked := read_frame()) is not None:
        write_frame(treatment.treat(asked) if isinstance(asked, bytes) else treatment.mask(asked))


if __name__ == "__main__":
    main()
