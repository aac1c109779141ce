"""Symlinks that a path or a pattern leads over: who points one elsewhere changes what is read, and no file has changed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.changed.paths import find_beginning
from pytest_golden.regression.unexpected import is_named

if TYPE_CHECKING:
    from collections.abc import Callable

# As many as Linux follows.
_MOST_LINKS = 40
_WILDCARD = re.compile(r"[*?\[]")


def list_links(path: str) -> tuple[str, ...]:
    """Give the symlinks that an absolute path leads over, each at its real place; one that it ends with among them."""
    if os.path.realpath(path) == os.path.normpath(path):
        return ()
    found: list[str] = []
    anchor, *left = Path(path).parts
    here = anchor
    while left and len(found) < _MOST_LINKS:
        name = left.pop(0)
        place = os.path.normpath(Path(here, name))
        target = _read_link(place)
        if target is None:
            here = place
            continue
        found.append(place)
        left = [*target.parts, *left]
        if target.is_absolute():
            here = left.pop(0)
    return tuple(dict.fromkeys(found))


def leads_through(pattern: str, link: str, find_target: Callable[[str], str], root: str) -> bool:
    """Tell whether a pattern's wildcards may lead over a symlink to files that it does not name where they really lie.

    Both are relative to `root`, the absolute path of the checkout; `find_target` gives the absolute path where one leads.
    """
    parts = pattern.split("/")
    for number in range(1, len(parts)):
        beginning = "/".join(parts[:number])
        if not _WILDCARD.search(beginning) or not is_named(link, beginning):
            continue
        if parts[number - 1] == "**":
            # It names the same files at their own place too.
            home = f"{root}/{find_beginning(pattern)}".rstrip("/")
            return not f"{find_target(link)}/".startswith(f"{home}/")
        if number == link.count("/") + 1:
            return True
    return False


def _read_link(place: str) -> Path | None:
    try:
        return Path(place).readlink()
    except (OSError, ValueError):
        return None
