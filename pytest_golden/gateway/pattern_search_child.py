"""Searches files for a regular expression; a bare script, since a catastrophic pattern can only be stopped by a kill.

Arguments: the pattern, then the files; standard input: a list of texts, by `marshal`. Exit code 0 when it is found, 1 when not.
"""

from __future__ import annotations

import marshal
import re
import sys

WINDOW_BYTES = 4 << 20
OVERLAP_BYTES = 256 << 10


def contains(path: str, pattern: re.Pattern[str]) -> bool:
    """Search a file of any size by windows that overlap, so that a match on a border is found."""
    carried = b""
    with open(path, "rb") as file:
        while True:
            part = file.read(WINDOW_BYTES)
            window = carried + part
            if pattern.search(window.decode("utf-8", "backslashreplace")):
                return True
            if not part:
                return False
            carried = window[-OVERLAP_BYTES:]


def main() -> int:
    """Search the files in order, then the texts."""
    pattern = re.compile(sys.argv[1], re.MULTILINE)
    texts = marshal.load(sys.stdin.buffer)
    return 0 if any(contains(path, pattern) for path in sys.argv[2:]) or any(map(pattern.search, texts)) else 1


if __name__ == "__main__":
    sys.exit(main())
