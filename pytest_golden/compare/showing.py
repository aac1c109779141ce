"""Differences as a person reads them: bounded, one line a line, and nothing in them that a terminal would obey. Pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.wording import name_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    # Takes what is secret out of a text.
    Redact = Callable[[str], str]


MOST_LINES = 40
MOST_BYTES = 6 << 10
LONGEST_LINE = 200
MOST_NAMES = 10
_LONGEST_NAME = 40
#: A cut can make a secret unrecognizable: so much around what is shown is redacted before it is cut.
LONGEST_REDACTED = 32 << 10
NOT_SHOWN = "[... not shown: redaction finds a secret there ...]"
_LEFT_OUT = "[... more is not shown ...]"
_SPECIAL = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def compose(headline: str, lines: Iterable[str] = ()) -> str:
    """Put a message together: a sentence, and below it as much of the difference as has room."""
    kept = [cut(headline, 2 * LONGEST_LINE)]
    room = MOST_BYTES - _size(kept[0]) - _size(_LEFT_OUT)
    for line in lines:
        shown = cut(line, LONGEST_LINE + 50)
        room -= _size(shown)
        if len(kept) == MOST_LINES - 1 or room < 0:
            kept.append(_LEFT_OUT)
            break
        kept.append(shown)
    return "\n".join(kept)


def describe_broken(shown_as: str, broken: Sequence[str]) -> str:
    """Say which rules an output breaks: one in the first line, several below it."""
    if len(broken) == 1:
        return compose(f"{shown_as} breaks a rule: {broken[0]}")
    return compose(f"{shown_as} breaks {len(broken)} rules: {broken[0]}, and more", broken)


def show(text: str, *, show_blanks: bool = False) -> str:
    r"""Write a text in one line: what is not printable as an escape, bytes that are not text as `\xff`.

    With `show_blanks`, tabs too, and blanks at its end as dots.
    """
    if text.isprintable() and not show_blanks:
        return text
    if show_blanks:
        body = text.rstrip(" ")
        return "".join(map(_escape, body)) + "\N{MIDDLE DOT}" * (len(text) - len(body))
    return "".join("    " if sign == "\t" else _escape(sign) for sign in text)


def cut(text: str, longest: int) -> str:
    """Cut a text at its end, where it is longer."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def cut_middle(text: str, longest: int) -> str:
    """Cut the middle out of a text, where it is longer."""
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def cut_pair(left: str, right: str, longest: int = LONGEST_LINE) -> tuple[str, str]:
    """Cut two texts at the same place, so that the first difference between them can be seen."""
    if max(len(left), len(right)) <= longest:
        return left, right
    start = max(0, find_first_difference(left, right) - longest // 3)
    return _window(left, start, longest), _window(right, start, longest)


def find_first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the first position at which two texts, or two strings of bytes, differ; the length of the shorter when none does."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _window(text: str, start: int, longest: int) -> str:
    return ("..." if start else "") + cut(text[start:], longest)


def _escape(sign: str) -> str:
    if sign.isprintable():
        return sign
    if "\udc80" <= sign <= "\udcff":
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return _SPECIAL.get(sign) or sign.encode("unicode_escape").decode()


def _size(line: str) -> int:
    return len(line.encode("utf-8", "backslashreplace")) + 1


def show_name(name: str) -> str:
    """Write a column's name."""
    return cut(show(name), _LONGEST_NAME)


def quote_name(name: str) -> str:
    """Write a column's name within a sentence."""
    return f"`{show_name(name)}`"


def quote_names(names: Sequence[str]) -> str:
    """Write some columns' names within a sentence."""
    return name_some([*map(quote_name, names)], MOST_NAMES)
