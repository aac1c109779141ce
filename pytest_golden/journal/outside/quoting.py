"""What in a message is not its writer's own word: quoted lines and blocks of code, as Markdown has them."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_QUOTED = re.compile(r" {0,3}>| {4}| {0,3}\t")


def blank_quotations(text: str) -> str:
    """Replace quoted lines and code by spaces and every line's end by newlines, so that all else stays in its place."""
    blanked, fence = [], ""
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        end = "\n" * (len(line) - len(words))
        was_code, fence = bool(fence), _next_fence(words, fence)
        is_own = not (was_code or fence or _QUOTED.match(words))
        blanked.append((words if is_own else " " * len(words)) + end)
    return "".join(blanked)


def _next_fence(line: str, fence: str) -> str:
    """Give the fence that is open behind this line, "" for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    marks, rest = found[1], found[2]
    if not fence:
        # In Markdown, backticks further on make this a line with code in it, and no fence.
        return "" if marks[0] == "`" and "`" in rest else marks
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip()
    return "" if closes else fence
