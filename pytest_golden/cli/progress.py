"""How far a long command is, on the last line of a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def show_progress(told: str) -> Iterator[Callable[[int], None]]:
    """Give what shows a number behind a text on stderr; the line is empty again at the end."""
    with show_line() as show:
        yield lambda number: show(f"{told} {number:,}")


@contextmanager
def show_line() -> Iterator[Callable[[str], None]]:
    """Give what shows a text on stderr in place of the one before; the line is empty again at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    width = 0

    def show(line: str) -> None:
        nonlocal width
        width = max(width, len(line))
        sys.stderr.write(f"\r{line.ljust(width)}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if width:
            sys.stderr.write(f"\r{' ' * width}\r")
            sys.stderr.flush()
