"""How templates write values: moments, durations, sizes, long texts, terminals' output. Each gives text or finished HTML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from pytest_golden.clock import iso_utc
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.web.shown.ansi import show_ansi, show_output
from pytest_golden.web.shown.strips import name_standing, show_cells, show_gate_cells, show_run_cells
from pytest_golden.web.shown.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def show_moment(moment: datetime | str | None) -> Markup:
    """Give a moment as a `time` element: UTC for people, ISO for programs; a script makes it local."""
    if moment is None:
        return Markup("")
    told = moment if isinstance(moment, str) else iso_utc(moment)
    shown = told[:16].replace("T", " ")
    return Markup('<time datetime="{}">{} UTC</time>').format(make_visible(told), make_visible(shown))


def show_plain_moment(moment: datetime) -> str:
    """Give a moment where no element has room: UTC."""
    return f"{iso_utc(moment)[:16].replace('T', ' ')} UTC"


def show_duration(seconds: float | None) -> str:
    """Give a duration as `golden` tells it."""
    return "" if seconds is None else format_elapsed(seconds)


def show_percent(share: float | None) -> str:
    """Give a share of one in percent."""
    return "" if share is None else f"{share * 100:.1f} %".replace(".0 %", " %")


def show_size(count: float | None) -> str:
    """Give a number of bytes in the unit that keeps it short."""
    if count is None:
        return ""
    unit = 0
    while count >= _STEP and unit < len(_SIZES) - 1:
        count, unit = count / _STEP, unit + 1
    return f"{count:.0f} {_SIZES[unit]}" if unit == 0 or count >= 10 else f"{count:.1f} {_SIZES[unit]}"


def show_json(value: Any) -> str:
    """Give a value as JSON that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def cut(text: Any, most: int) -> str:
    """Keep the head of a text, and say that there is more."""
    told = str(text)
    return told if len(told) <= most else f"{told[:most]}\N{HORIZONTAL ELLIPSIS}"


def show_lines(text: Any) -> Markup:
    """Give a text of people with its line ends."""
    return Markup("<br>").join(escape(make_visible(line)) for line in str(text).splitlines())


def first_line(text: str | None) -> str:
    """Give the sentence that a reason begins with; what follows has room on its own page."""
    return next(iter((text or "").splitlines()), "")


def pair(value: Any) -> tuple[str, str]:
    """Give a word as what a choice sends and what it shows."""
    return str(value), cut(value, 60)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ansi": show_ansi,
    "cells": show_cells,
    "coloured_output": show_output,
    "cut": cut,
    "duration": show_duration,
    "first_line": first_line,
    "gate_cells": show_gate_cells,
    "lines": show_lines,
    "moment": show_moment,
    "pair": pair,
    "percent": show_percent,
    "plain_moment": show_plain_moment,
    "pretty": show_json,
    "run_cells": show_run_cells,
    "size": show_size,
    "standing": name_standing,
}
