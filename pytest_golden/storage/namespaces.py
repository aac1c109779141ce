"""Namespaces as text that sorts by whole elements, so that everything below one is a range of an index.

An element is percent-encoded and ends with a slash: `("plans", "etl/daily")` is `plans/etl%2Fdaily/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

# The sign that follows the slash: no text that begins with "plans/" sorts at or after "plans0".
_AFTER_SLASH = "0"


def write_namespace(elements: Iterable[str]) -> str:
    """Write a namespace as one text."""
    return "".join([f"{quote(element, safe='', errors='surrogatepass')}/" for element in elements])


def read_namespace(text: str) -> tuple[str, ...]:
    """Read what `write_namespace` wrote."""
    return tuple(unquote(element, errors="surrogatepass") for element in text.split("/")[:-1])


def namespace_range(prefix: Iterable[str]) -> tuple[str, str] | None:
    """Give the first text of the namespaces that begin with these whole elements and the first one after them.

    None means that all begin so: the prefix is empty.
    """
    low = write_namespace(prefix)
    return (low, low[:-1] + _AFTER_SLASH) if low else None
