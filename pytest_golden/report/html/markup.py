"""HTML out of texts: what is not `Html` already is made visible and escaped, so that nothing can be forgotten."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pytest_golden.report.failure_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMPTY = frozenset({"meta", "link", "rect", "br"})


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Html:
    """Give an element. A child that is not `Html` is shown as it is, None is left out, as is an attribute of None.

    Attributes are named as in HTML, with `_` for `-` and one more behind a word of Python's (`class_`).
    """
    named = (
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{name}{''.join(named)}>"
    return Html(start if name in _EMPTY else f"{start}{join(children)}</{name}>")


def join(children: Iterable[str | None], between: str = "") -> Html:
    """Give the children one behind the other."""
    told = (child if isinstance(child, Html) else _escape(child) for child in children if child is not None)
    return Html(between.join(told))


def one_line(text: str, most: int = 400) -> str:
    """Make one line of a text, and cut it."""
    return cut(" ".join(make_visible(text).split()), most)


def cut(text: str, most: int) -> str:
    """Keep the head of a text, and say how much is gone."""
    return text if len(text) <= most else f"{text[:most]} [... {len(text) - most:,} more signs]"


def _escape(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode()
    return html.escape(make_visible(printable), quote=True)
