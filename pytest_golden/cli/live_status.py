"""A line that shows what is running, for how long and at which step, while somebody is watching a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from pytest_golden.cli.screen import make_visible, open_console
from pytest_golden.clock import monotonic_seconds
from pytest_golden.regression.wording import format_elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SPINNER = "|/-\\"
_TURNS_PER_SECOND = 5


@contextmanager
def show_status(name: str, present_step: Callable[[], str | None]) -> Iterator[None]:
    """Show a live line on stderr during a with-block, if that is a terminal; `present_step` is asked again and again."""
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
