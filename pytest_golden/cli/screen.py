"""How commands speak: JSON for programs, rich text for people. What they say is theirs."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from pytest_golden.report.failure_text import make_visible
from pytest_golden.report.github import disarm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.table import Table

__all__ = [
    "make_visible",
    "open_console",
    "print_beside",
    "print_indented",
    "print_json",
    "print_list",
    "print_table",
    "styled",
]

# In a pipe or a log nobody can bring back what a fold has cut apart; COLUMNS still says otherwise.
_UNFOLDED = 10_000
_LEAST_ROOM = 30
# What JSON leaves as it is, and a terminal obeys or does not show.
_UNSEEN_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def open_console(stream: IO[str] | None = None) -> Console:
    """Give a console on stdout, or another stream; it folds at the terminal's width and honours NO_COLOR."""
    stream = sys.stdout if stream is None else stream
    is_folded = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(
        file=stream,
        width=None if is_folded else _UNFOLDED,
        # By itself, rich would take the colours away and leave bold type.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    told = json.dumps(value, indent=2, ensure_ascii=not is_unicode, default=str)
    print(_UNSEEN_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], told))


def styled(text: object, style: str = "") -> Text:
    """Give a text that is shown as it is: no markup is read in it, no control character and no command gets through."""
    return Text(disarm(make_visible(str(text))), style=style, overflow="fold")


def print_list(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    """Print pairs of something typed or named and what it is, the second parts below each other where there is room."""
    pairs = list(lines)
    longest = max((len(first) for first, _ in pairs), default=0)
    for first, second in pairs:
        print_beside(console, styled(f"  {first.ljust(longest)}", "bold"), second)


def print_beside(console: Console, first: Text, told: str | Text) -> None:
    """Print a text beside another, its further lines below its beginning; below the other where there is no room."""
    indent = len(first) + 2
    if console.width < indent + _LEAST_ROOM:
        first.rstrip()
        console.print(first)
        print_indented(console, told, 4)
        return
    for number, part in enumerate(_fold(told, console, console.width - indent)):
        line = Text.assemble(first if number == 0 else " " * len(first), "  ", part)
        line.rstrip()
        console.print(line)


def print_table(console: Console, table: Table) -> None:
    """Print a table, without the blanks at the ends of its lines where no terminal shows them."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


def print_indented(console: Console, told: str | Text, indent: int) -> None:
    """Print a text with all its lines indented, also those that the width makes."""
    for part in _fold(told, console, console.width - indent):
        console.print(Text.assemble(" " * indent, part))


def _fold(told: str | Text, console: Console, width: int) -> Iterator[Text]:
    for part in (styled(told) if isinstance(told, str) else told).wrap(console, max(1, width)):
        part.rstrip()
        yield part
