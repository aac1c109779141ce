"""Colours of a terminal as classes of HTML. What moves the cursor is left out; anything else unseen is made visible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.web.shown.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.regression.model import GoldenProjectResult

# Select graphic rendition; source: ECMA-48, section 8.3.117.
_COLOURS = re.compile("(?:\x1b\\[|\x9b)([0-9;:]{0,64})m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("strike",)}


def show_ansi(text: str) -> Markup:
    """Give a text with its colours as spans."""
    return Markup("").join(_spans(text))


def show_output(result: GoldenProjectResult) -> Markup:
    """Give what is kept of a result's output, with the colours that its lines had."""
    lines = result.output_summary.split("\n")
    return show_ansi("\n".join(f"{result.output_colours.get(line, line)}\x1b[0m" for line in lines))


def _spans(text: str) -> Iterator[Markup]:
    style = _Style()
    at = 0
    for found in _COLOURS.finditer(text):
        yield style.wrap(text[at : found.start()])
        style.take(found[1])
        at = found.end()
    yield style.wrap(text[at:])


class _Style:
    """What is switched on."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def wrap(self, text: str) -> Markup:
        shown = escape(make_visible(strip_escapes(text)))
        if not shown or not self._classes:
            return shown
        return Markup('<span class="{}">{}</span>').format(" ".join(self._classes.values()), shown)

    def take(self, codes: str) -> None:
        """Switch on and off what a sequence says; colours beyond the sixteen that have names are read over."""
        numbers = iter([int(code) if code.isdigit() else 0 for code in re.split("[;:]", codes)])
        for number in numbers:
            if number in {38, 48}:
                _read_over_colour(numbers)
            else:
                self._take_one(number)

    def _take_one(self, number: int) -> None:
        if number == 0:
            self._classes.clear()
        elif number in _STYLES:
            self._classes[_STYLES[number]] = f"ansi-{_STYLES[number]}"
        elif number in _ENDS:
            for name in _ENDS[number]:
                self._classes.pop(name, None)
        elif number in {39, 49}:
            self._classes.pop("ink" if number == 39 else "paper", None)
        else:
            self._take_colour(number)

    def _take_colour(self, number: int) -> None:
        tens, which = divmod(number, 10)
        if which >= len(_NAMES):
            return
        name = f"bright-{_NAMES[which]}" if tens in {9, 10} else _NAMES[which]
        if tens in {3, 9}:
            self._classes["ink"] = f"ansi-{name}"
        elif tens in {4, 10}:
            self._classes["paper"] = f"ansi-on-{name}"


def _read_over_colour(numbers: Iterator[int]) -> None:
    """Read over what follows 38 and 48: 5 and an index, or 2 and three shares."""
    for _ in range({5: 1, 2: 3}.get(next(numbers, 0), 0)):
        next(numbers, None)
