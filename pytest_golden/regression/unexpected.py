"""Paths, and the patterns of `writes:` and `outputs:` that name them. Pure text over paths; no file is read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Interpreters and tools leave these beside any program that they run.
_NEVER_UNEXPECTED = (
    "**/__pycache__/**",
    "**/*.pyc",
    "**/.pytest_cache/**",
    "**/.mypy_cache/**",
    "**/.ruff_cache/**",
    "**/.ipynb_checkpoints/**",
    "**/.coverage*",
    "**/.DS_Store",
    "**/.user.yml",
)
# The pieces of a pattern over paths, and the wildcards as regular expressions.
_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
_MEANINGS = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def find_unexpected(written: Iterable[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the written paths that no pattern of `writes:` or `outputs:` names, in their order.

    `*` stays within one folder, `**` crosses folders; a pattern that names a folder includes everything in it.
    """
    matchers = [_matcher(pattern) for pattern in (*_NEVER_UNEXPECTED, *patterns)]
    return tuple(path for path in written if not any(matches.fullmatch(path) for matches in matchers))


def is_named(path: str, pattern: str) -> bool:
    """Tell whether a pattern names a path, by the rules of `find_unexpected`. No file is read."""
    return path == pattern or _matcher(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> re.Pattern[str]:
    plain = pattern.removeprefix("./").rstrip("/")
    pieces = "".join(_translate(piece) for piece in _PIECE.findall(plain))
    return re.compile(f"{pieces}(?:/.*)?", re.DOTALL)


def _translate(piece: str) -> str:
    if piece in _MEANINGS:
        return _MEANINGS[piece]
    if len(piece) > 1:
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^/{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return re.escape(piece)
