"""Sets of paths that are asked whether something of them lies at, below or above a place. Pure text over paths.

Paths are relative to the checkout's root, with slashes; one that ends with a slash stands for all that is below it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.regression.unexpected import is_named

if TYPE_CHECKING:
    from collections.abc import Iterable

_WILDCARD = re.compile(r"[*?\[]")


class PathIndex:
    """Paths by all folders above them, so that a thousand places are looked up at once."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        self._folders = tuple(path for path in self.paths if path.endswith("/"))
        self._at_or_below: dict[str, str] = {}
        for path in self.paths:
            place = path.rstrip("/")
            while place not in self._at_or_below:
                self._at_or_below[place] = path
                place = place.rpartition("/")[0]

    def find(self, place: str) -> str | None:
        """Give a path at or below a place, or a folder that holds the place; the root's place is empty."""
        found = self._at_or_below.get(place)
        return found if found is not None else next((one for one in self._folders if f"{place}/".startswith(one)), None)

    def find_named(self, pattern: str) -> str | None:
        """Give a path that a pattern names, or a folder in which it may name something."""
        beginning = find_beginning(pattern)
        if self.find(beginning) is None:
            return None
        for path in self.paths:
            if path.endswith("/"):
                if f"{beginning}/".startswith(path) or path.startswith(f"{beginning}/" if beginning else ""):
                    return path
            elif is_named(path, pattern):
                return path
        return None

    def list_below(self, place: str) -> tuple[str, ...]:
        """Give all paths at or below a place."""
        if place not in self._at_or_below:
            return ()
        prefix = f"{place}/" if place else ""
        return tuple(path for path in self.paths if path == place or path.startswith(prefix))


def find_beginning(pattern: str) -> str:
    """Give the folder, or the file, that all names of a pattern begin with."""
    wildcard = _WILDCARD.search(pattern)
    return pattern.rstrip("/") if wildcard is None else pattern[: wildcard.start()].rpartition("/")[0]
