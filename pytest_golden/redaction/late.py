"""Patterns that are compiled when they are first used: most texts need few, and whoever starts a program waits for all."""

from __future__ import annotations

import re
from typing import Any, cast


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Give what does all that a compiled pattern does; it costs nothing until then, and once more a pattern's own time."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        # From now on they are found without this detour.
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


_METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split")
