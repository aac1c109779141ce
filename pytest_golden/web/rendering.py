"""Render pages from templates. Every value that a template writes is made visible and escaped, so that none can be forgotten."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from pytest_golden.clock import iso_utc
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.web.drawing import make_visible, show_cells, show_gate_cells, show_minute, show_run_cells
from pytest_golden.web.visitor import is_person

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from starlette.requests import Request

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.web.access import Refusal
    from pytest_golden.web.services import ServeOptions, Services
    from pytest_golden.web.visitor import Doorkeeper

# Select graphic rendition; source: ECMA-48, section 8.3.117.
_COLOURS = re.compile("(?:\x1b\\[|\x9b)([0-9;:]{0,64})m")
_COLOUR_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("strike",)}


def show_time(timestamp: datetime | str | None) -> Markup:
    """Return a timestamp as a `time` element: UTC for people, ISO for programs; a script makes it local."""
    if timestamp is None:
        return Markup("")
    told = timestamp if isinstance(timestamp, str) else iso_utc(timestamp)
    shown = told[:16].replace("T", " ")
    return Markup('<time datetime="{}">{} UTC</time>').format(make_visible(told), make_visible(shown))


def show_duration(seconds: float | None) -> str:
    """Return a duration as `golden` prints it."""
    return "" if seconds is None else format_elapsed(seconds)


def show_percent(share: float | None) -> str:
    """Return a fraction in percent."""
    return "" if share is None else f"{share * 100:.1f} %".replace(".0 %", " %")


def show_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def cut(text: Any, most: int) -> str:
    """Return the beginning of a text, with an ellipsis if there is more."""
    told = str(text)
    return told if len(told) <= most else f"{told[:most]}\N{HORIZONTAL ELLIPSIS}"


def show_lines(text: Any) -> Markup:
    """Return a text with its line ends as HTML."""
    return Markup("<br>").join(escape(make_visible(line)) for line in str(text).splitlines())


def first_line(text: str | None) -> str:
    """Return the first line of a text: the sentence that a reason begins with."""
    return next(iter((text or "").splitlines()), "")


def pair(value: Any) -> tuple[str, str]:
    """Return the value that a choice sends and the label that it shows."""
    return str(value), cut(value, 60)


def show_ansi(text: str) -> Markup:
    """Return a text with its colours as spans; cursor movements are left out, other unseen characters made visible."""
    return Markup("").join(_spans(text))


def show_output(result: GoldenProjectResult) -> Markup:
    """Return the kept output of a result, in the colours of its lines."""
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
    """The styles that are switched on."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def wrap(self, text: str) -> Markup:
        shown = escape(make_visible(strip_escapes(text)))
        if not shown or not self._classes:
            return shown
        return Markup('<span class="{}">{}</span>').format(" ".join(self._classes.values()), shown)

    def take(self, codes: str) -> None:
        """Apply the codes of a sequence; colours beyond the sixteen named ones are skipped."""
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
        if which >= len(_COLOUR_NAMES):
            return
        name = f"bright-{_COLOUR_NAMES[which]}" if tens in {9, 10} else _COLOUR_NAMES[which]
        if tens in {3, 9}:
            self._classes["ink"] = f"ansi-{name}"
        elif tens in {4, 10}:
            self._classes["paper"] = f"ansi-on-{name}"


def _read_over_colour(numbers: Iterator[int]) -> None:
    """Skip what follows 38 and 48: 5 and an index, or 2 and three components."""
    for _ in range({5: 1, 2: 3}.get(next(numbers, 0), 0)):
        next(numbers, None)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ansi": show_ansi,
    "cells": show_cells,
    "coloured_output": show_output,
    "cut": cut,
    "duration": show_duration,
    "first_line": first_line,
    "gate_cells": show_gate_cells,
    "lines": show_lines,
    "moment": show_time,
    "pair": pair,
    "percent": show_percent,
    "plain_moment": show_minute,
    "pretty": show_json,
    "run_cells": show_run_cells,
}


class Renderer:
    """Fills templates. `render` binds their forms to the visit of the browser."""

    def __init__(self, options: ServeOptions, doorkeeper: Doorkeeper) -> None:
        self._options = options
        self._sessions = doorkeeper.sessions
        self._templates = Environment(
            loader=PackageLoader("pytest_golden.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(
            url=self.url,
            static=self._static,
            is_read_only=options.is_read_only,
            current="",
            form_token="",
            is_inside=False,
            is_person=False,
        )

    def url(self, *parts: str, **query: Any) -> str:
        """Return the address of a page: `url("journal", entry_id)`; parts are quoted, query values that are None left out."""
        path = "/".join(quote(part, safe="") for part in parts)
        told = urlencode([(name, value) for name, value in query.items() if value is not None])
        return f"{self._options.place.prefix}/{path}{'?' if told else ''}{told}"

    def render(self, request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page. A browser without a visit is given one, since the page's forms are bound to it."""
        visit = self._sessions.find_visit(request.cookies)
        begun = visit or self._sessions.begin_visit()
        values["form_token"] = self._sessions.sign_form(begun)
        values.setdefault("is_inside", True)
        values["is_person"] = is_person(request)
        response = HTMLResponse(self._templates.get_template(template).render(values), status)
        if visit is None:
            self._sessions.set_visit(response, begun)
        return response

    def render_refusal(self, refusal: Refusal) -> HTMLResponse:
        """Return the page for a refusal."""
        page = self._templates.get_template("refusal.html").render(refusal=refusal)
        return HTMLResponse(page, refusal.status, refusal.headers)

    def _static(self, name: str) -> str:
        return f"{self._options.place.prefix}/static/{name}?v={_digest(name)}"


def _finalize(value: Any) -> Any:
    """Show a value that a template writes; None is nothing."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else make_visible(str(value))


@cache
def _digest(name: str) -> str:
    content = files("pytest_golden.web").joinpath("static", name).read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of one served site. `is_ending` tells open streams to end."""

    options: ServeOptions
    services: Services
    doorkeeper: Doorkeeper
    renderer: Renderer
    is_ending: Callable[[], bool]
