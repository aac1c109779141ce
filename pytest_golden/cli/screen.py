"""How commands speak: JSON for programs; text, tables and live lines for people."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pytest_golden.clock import monotonic_seconds
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.github import disarm
from pytest_golden.report.result_text import make_visible
from pytest_golden.values.json_form import escape_in_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.regression.verdict import RunVerdict


# In a pipe or a log, folded lines cannot be joined again, so they are not folded unless COLUMNS is set.
_UNFOLDED = 10_000
_LEAST_ROOM = 30
#: At this width and above, a row has room for more than an id, a time and one text.
WIDE = 110
# Ids made by others may be longer; those are folded.
_LONGEST_WHOLE = 40
_LEAST_ROOM_IN_TABLE = 20
_SPINNER = "|/-\\"
_TURNS_PER_SECOND = 5


def open_console(stream: IO[str] | None = None) -> Console:
    """Return a console on stdout, or another stream; it folds at the terminal's width and honours NO_COLOR."""
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
    print(escape_in_json(told))


def answer(arguments: argparse.Namespace, facts: Any, told: str | Callable[[Console], None]) -> int:
    """Print facts (or what a function returns) as JSON if `--json` is given, else the text for people; return 0."""
    if arguments.json:
        print_json(facts() if callable(facts) else facts)
    elif isinstance(told, str):
        open_console().print(styled(told))
    else:
        told(open_console())
    return 0


def styled(text: object, style: str = "") -> Text:
    """Return text that is shown as it is: no markup is read, and no control character or GitHub command gets through."""
    return Text(disarm(make_visible(str(text))), style=style, overflow="fold")


def show_local(timestamp: datetime | None) -> str:
    """Return a timestamp in the local time zone as text, to the minute; a dash if there is none."""
    return "-" if timestamp is None else timestamp.astimezone().strftime("%Y-%m-%d %H:%M")


def print_list(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and its explanation; the explanations are aligned if there is room."""
    pairs = list(lines)
    longest = max((len(first) for first, _ in pairs), default=0)
    for first, second in pairs:
        print_beside(console, styled(f"  {first.ljust(longest)}", "bold"), second)


def print_beside(console: Console, first: Text, told: str | Text) -> None:
    """Print a text beside another, folded under its own beginning; print it below the other if there is no room."""
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


def print_indented(console: Console, told: str | Text, indent: int) -> None:
    """Print a text with all its lines indented, including folded ones."""
    for part in _fold(told, console, console.width - indent):
        console.print(Text.assemble(" " * indent, part))


def _fold(told: str | Text, console: Console, width: int) -> Iterator[Text]:
    for part in (styled(told) if isinstance(told, str) else told).wrap(console, max(1, width)):
        part.rstrip()
        yield part


def make_table(*titles: str, right: Sequence[str] = ()) -> Table:
    """Return a table without rows; columns in `right` align right."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    return table


def print_listing(
    console: Console,
    titles: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    whole: Sequence[str] = (),
    right: Sequence[str] = (),
) -> None:
    """Print a table with rows; columns in `whole`, such as ids, are not folded while the others have room."""
    table = make_table(*titles, right=right)
    lengths = {title: len(title) for title in whole}
    for row in rows:
        for title, told in zip(titles, row, strict=True):
            if title in lengths:
                lengths[title] = min(_LONGEST_WHOLE, max(lengths[title], len(told)))
        table.add_row(*(styled(told) if isinstance(told, str) else told for told in row))
    if console.width - sum(length + 2 for length in lengths.values()) >= _LEAST_ROOM_IN_TABLE:
        for column in table.columns:
            column.width = lengths.get(str(column.header))
    print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table; outside a terminal, without blanks at the ends of lines."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


@contextmanager
def show_status(name: str, present_step: Callable[[], str | None]) -> Iterator[None]:
    """Show what is running, for how long and at which step, in a line on stderr during a with-block, if it is a terminal."""
    console = open_console(sys.stderr)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    since = monotonic_seconds()

    def describe() -> Text:
        seconds = monotonic_seconds() - since
        step = present_step()
        sign = _SPINNER[int(seconds * _TURNS_PER_SECOND) % len(_SPINNER)]
        told = f"{sign} {name}  {format_elapsed(seconds)}" + (f"  {make_visible(step)}" if step else "")
        return Text(told, no_wrap=True, overflow="ellipsis")

    with Live(
        get_renderable=describe,
        console=console,
        transient=True,
        refresh_per_second=_TURNS_PER_SECOND,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


@contextmanager
def show_progress(told: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows a number after a text on a terminal's stderr; clear the line at the end."""
    with show_line() as show:
        yield lambda number: show(f"{told} {number:,}")


@contextmanager
def show_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that replaces the text of a line on a terminal's stderr; clear the line at the end."""
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


STATUS_STYLES: Mapping[ResultStatus, str] = {
    ResultStatus.PASSED: "green",
    ResultStatus.FAILED: "bold red",
    ResultStatus.ERROR: "bold red",
    ResultStatus.SKIPPED: "yellow",
}


def ask_person(question: str) -> str | None:
    """Ask the person at the terminal for a line; return None where there is none, and "" if the person closes the input."""
    if not (os.isatty(0) and os.isatty(2)):
        return None
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline()


def style_of(verdict: RunVerdict) -> str:
    """Return the style of a verdict. Only a run that passed is green."""
    return "bold green" if verdict.is_good else "bold red" if verdict.is_bad else "bold yellow"
