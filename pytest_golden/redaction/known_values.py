r"""Search texts for known values, in whatever spelling a program prints them.

A value is found as it is, with the escapes of JSON (also of JSON in JSON), Python, shells, URLs and HTML, inside base64 and
hexadecimal text, and across line breaks: as `base64` and `textwrap` break lines, with the indentation and the borders of boxes.

One expression that knows all spellings would be slow. Each spelling has an anchor, a run of letters and digits that no
escape changes. One search for all anchors tells which pieces of the text are looked at closely; most texts have none.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.rule import MARK, compile_late, compile_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Span = tuple[int, int]

_SHORTEST_CORE = 6
_SHORTEST_LINE = 16
_SHORTEST_ANCHOR, _LONGEST_ANCHOR = 3, 16
# Part of a longer value can be cut off where a text is cut.
_LONGEST_PIECE = 4096
_LEAST_WINDOW = 4096
# Up to so much work, a loop is faster than importing and building a search for all anchors. A call counts as so many signs.
_MOST_COMPARED, _SIGNS_OF_CALL = 1 << 25, 80
_MANY_ANCHORS = 600
_RUN = compile_late("[A-Za-z0-9]+")
_PART = compile_late(r"[A-Za-z0-9]+|[ \t\r\n]+|\\+[nr]?|(?s:(.)\1*)")
_BACKSLASH = r"(?:\\|%(?:25)?5[Cc])"
_BLANK = r"(?:[ \t\r\n]|\+|%(?:25)?(?:20|0[ADad9])|\\{1,7}[nrt ])"
_LETTERS = {"\a": "a", "\b": "b", "\f": "f", "\v": "v", "\0": "0"}
_NAMED = {"&": "|amp", "<": "|lt", ">": "|gt", '"': "|quot", "'": "|apos"}
_DOUBLED = frozenset("\"'$%")
_IN_BASE64 = {"+": r"(?>(?:[+\-]|%2[Bb]|\\{1,7}u002[Bb])?)", "/": r"(?:\\{0,7}/|_|%2[Ff])"}
_PADDING = "(?:={1,2}|(?:%3[Dd]){1,2})?"
# Not inside a longer word, but behind the n of a JSON text's \n, a URL's escape and the end of a colour.
_WORD_START = r"(?:(?<!\w)|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\dm))"
_WORD_END = r"(?!\w)"
_BREAK = compile_late(r"\n|\r\n?|\\\\{0,6}(?:r\\{1,7})?n")
# What may stand after and before a break inside of a value: blanks; borders of boxes, signs of differences, quotation marks.
_BARS = "|\u2502\u2503\u2551"
_BORDERS = f"{_BARS}\"'+>"
_BESIDE_BREAKS = ((" \t", " \t"), (f" \t{_BARS}", f" \t{_BARS}\\"), (f" \t{_BORDERS}", f" \t{_BORDERS}\\="))
# A value with so many other signs is found although some of these are lost at breaks.
_LONG_WITHOUT = 10
# So much of a longer value is recognized before an ellipsis.
_LONGEST_BEGINNING = 16
_CUT_OFF = r"[^\s\u2026]{0,256}?(?=\u2026|\.\.\.|[\"']\+\d)"


class _Spelling(NamedTuple):
    """A pattern, and the texts of which every match contains one; none if the pattern is to be searched in any case."""

    anchors: tuple[str, ...]
    pattern: str


class KnownValues:
    """Hides known values in texts.

    Args:
        literals: hidden wherever they are.
        words: hidden where they are words of their own.
    """

    def __init__(self, literals: Iterable[str], words: Iterable[str] = ()) -> None:
        given = [piece for literal in literals for piece in _cut(literal) if piece]
        plain = [_Spelling(_find_anchors(value), _spell(value)) for value in given]
        beginnings = [value[:_LONGEST_BEGINNING] for value in given if len(value) > _LONGEST_BEGINNING]
        plain += [_Spelling(_find_anchors(beginning), _spell(beginning) + _CUT_OFF) for beginning in beginnings]
        plain += [_Spelling((word,), f"{_WORD_START}{word}{_WORD_END}") for word in words]
        spellings = {*plain, *(one for value in (*given, *words) for one in _encode(value.encode("utf-8", "replace")))}
        self._always = [one.pattern for one in spellings if not one.anchors]
        self._anchored = [(anchor, one.pattern) for one in spellings for anchor in one.anchors]
        self._anchors = tuple(dict.fromkeys(anchor for anchor, _ in self._anchored))
        # How much longer its spelling can be: a percent sign and two digits, both escaped, for each of four bytes.
        self._overlap = max([_count_spelled(value) for value in given], default=0) + 64
        self._by_beginning: dict[str, list[tuple[str, str]]] = {}
        self._compared = 0
        self._search: Callable[[str], bool] | None = None

    def hide(self, text: str) -> str:
        """Return the text with the mark in place of each known value."""
        if not self._anchors and not self._always:
            return text
        spans = [*self._find(text), *self._find_broken(text)]
        if not spans:
            return text
        pieces: list[str] = []
        done = 0
        for start, end in _unite(spans):
            pieces += (text[done:start], MARK)
            done = end
        return "".join((*pieces, text[done:]))

    def _find(self, text: str) -> Iterator[Span]:
        for pattern in self._always:
            yield from (found.span() for found in compile_once(pattern).finditer(text))
        if not self._may_hold(text):
            return
        width = max(_LEAST_WINDOW, self._overlap)
        for start in range(0, len(text), width):
            end = start + width + self._overlap
            window = text[start:end]
            if len(text) > len(window) and not self._may_hold(window):
                continue
            for pattern in dict.fromkeys(pattern for anchor, pattern in self._candidates(window) if anchor in window):
                # What is beside the window can be a part of the word, so the text is not cut there.
                hits = compile_once(pattern).finditer(text, start, end + 1)
                yield from (found.span() for found in hits if found.end() <= end)

    def _find_broken(self, text: str) -> Iterator[Span]:
        """Find values that line breaks are inside of."""
        pieces = _BREAK.split(text)
        searched = {text}
        for after, before in _BESIDE_BREAKS if len(pieces) > 1 else ():
            stripped = [piece.lstrip(after).rstrip(before) for piece in pieces]
            joined = "".join(stripped)
            if joined not in searched and (self._always or self._may_hold(joined)):
                margins = [len(piece) - len(piece.lstrip(after)) for piece in pieces]
                yield from _move([*self._find(joined)], text, margins, stripped)
            searched.add(joined)

    def _candidates(self, window: str) -> Iterator[tuple[str, str]]:
        """Yield the anchors that a piece of text may contain, each with its pattern: those whose beginning is there."""
        if len(self._anchored) < _MANY_ANCHORS:
            return iter(self._anchored)
        if not self._by_beginning:
            for anchor, pattern in self._anchored:
                self._by_beginning.setdefault(anchor[:_SHORTEST_ANCHOR], []).append((anchor, pattern))
        present = {window[start : start + _SHORTEST_ANCHOR] for start in range(len(window))}
        return (each for beginning in self._by_beginning.keys() & present for each in self._by_beginning[beginning])

    def _may_hold(self, text: str) -> bool:
        """Tell whether a text contains an anchor."""
        if self._search is None:
            self._compared += (len(text) + _SIGNS_OF_CALL) * len(self._anchors)
            if self._compared < _MOST_COMPARED:
                return any(anchor in text for anchor in self._anchors)
        self._search = self._search or _make_search(self._anchors)
        return self._search(text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8"))


def _move(spans: Iterable[Span], text: str, margins: Iterable[int], stripped: Iterable[str]) -> Iterator[Span]:
    """Yield where spans of joined pieces are in the text that was broken up; `margins` are what was taken before each piece."""
    breaks = [0, *(found.end() for found in _BREAK.finditer(text))]
    places = [start + margin for start, margin in zip(breaks, margins, strict=True)]
    starts = [0, *accumulate(map(len, stripped))]
    for span in spans:
        # The last of several pieces that begin here is the one that is not empty.
        first, last = (bisect_right(starts, position) - 1 for position in (span[0], span[1] - 1))
        yield places[first] + span[0] - starts[first], places[last] + span[1] - starts[last]


known_values = lru_cache(maxsize=64)(KnownValues)
"""Return what hides these values; made once, since every attempt of a project has the same ones."""


def _make_search(anchors: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for the presence of many words at once: pydantic's core has a search that takes the same time for any number."""
    from pydantic_core import SchemaValidator, core_schema

    pattern = "|".join(sorted(anchors))
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python


def _cut(literal: str) -> Iterator[str]:
    """Yield a value without blanks at its ends, its longer lines, and pieces of a very long one."""
    value = literal.strip()
    yield value
    if "\n" in value:
        yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= _SHORTEST_LINE)
    if len(value) > _LONGEST_PIECE:
        yield from (value[start : start + _LONGEST_PIECE] for start in range(0, len(value), _LONGEST_PIECE))


def _find_anchors(value: str) -> tuple[str, ...]:
    longest = max(_RUN.findall(value), key=len, default="")[:_LONGEST_ANCHOR]
    return (longest,) if len(longest) >= _SHORTEST_ANCHOR else ()


def _count_spelled(value: str) -> int:
    return max(2 * len(value.encode("utf-8", "replace")), sum(1 if _RUN.match(sign) else 48 for sign in value))


def _spell(value: str) -> str:
    """Return a pattern for a value with any of the usual escapes.

    Each part of the value decides at once how much it takes. If parts could share signs in several ways, a text that differs
    at its end would be tried in all of them, which would take forever.
    """
    is_long = len(value) - sum(value.count(sign) for sign in f"{_BORDERS}\\= ") >= _LONG_WITHOUT
    least_blanks = 0 if len(value) >= 2 * _SHORTEST_CORE else 1
    patterns = []
    for found in _PART.finditer(value):
        part, after = found[0], value[found.end() :]
        if part[0] in " \t\r\n":
            # Where a line is broken at a blank, the blank is gone.
            blank = _BLANK.replace(r"\+", r"\+(?=%)") if after[:1] == "+" else _BLANK
            patterns.append(f"(?>{blank}{{{least_blanks},64}})")
        elif part[0] == "\\":
            letter = part.strip("\\")
            escaped = f"(?>{_BACKSLASH}{{{0 if is_long else 1},64}}){letter}"
            # Beside a letter it looks like an escaped line break.
            patterns.append(f"(?>(?:{escaped})?)" if letter and is_long else escaped)
        elif part.isascii() and part.isalnum():
            patterns.append(part)
        else:
            patterns.append(_spell_signs(part, after, is_lost=is_long and part[0] in f"{_BORDERS}="))
    return "".join(patterns)


def _spell_signs(signs: str, after: str, *, is_lost: bool) -> str:
    """Return a pattern for a run of the same sign; if it `is_lost` at line breaks, for none of it too."""
    sign, count = signs[0], len(signs)
    spelled = _spell_sign(sign)
    # Before a backslash it would not be clear which of the signs is meant by an escaped one.
    may_double = sign in _DOUBLED and after[:1] != "\\"
    if sign == "'" and may_double and not after.startswith("\"'\"'"):
        spelled = rf"(?:'\\{{1,7}}''|'\"'\"'|{spelled})"
    run = f"{spelled}{{{0 if is_lost else count},{2 * count if may_double else count}}}"
    # `%25` may be an escaped percent sign, or one before the digits 25.
    return run if sign == "%" else f"(?>{run})"


def _spell_sign(sign: str) -> str:
    code, encoded = ord(sign), sign.encode("utf-8", "surrogatepass")
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    more = f"{_BACKSLASH}{{1,7}}"
    escaped = [
        "".join(f"%(?:25)?{byte:02x}" for byte in encoded),
        more.join(f"u{units[start : start + 4]}" for start in range(0, len(units), 4)),
        more.join(f"x{byte:02x}" for byte in encoded),
        f"x{code:02x}",
        f"U{code:08x}",
        f"&(?:#0{{0,4}}{code}|#x0{{0,4}}{code:x}{_NAMED.get(sign, '')});",
    ]
    before = r"\\" if sign == "%" else _BACKSLASH
    spelled = f"(?>{before}{{0,7}})(?:(?i:{'|'.join(escaped)})|{re.escape(sign)})"
    letter = rf"|\\{{1,7}}{_LETTERS[sign]}" if sign in _LETTERS else ""
    return f"(?:{spelled}{letter})"


def _encode(encoded: bytes) -> Iterator[_Spelling]:
    """Yield the value in hexadecimal, in base64 alone, and the part of base64 that stays the same inside a longer text."""
    hexed = encoded.hex()
    anchor = hexed[:_LONGEST_ANCHOR]
    yield _Spelling((anchor, anchor.upper()), f"(?i:{hexed})")
    whole = base64.b64encode(encoded).decode().rstrip("=")
    for text in (whole, *_list_cores(encoded)):
        anchors = _find_anchors(text)
        yield _Spelling(
            anchors, "".join(_IN_BASE64.get(sign, sign) for sign in text) + (_PADDING if text == whole else "")
        )


def _list_cores(encoded: bytes) -> Iterator[str]:
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + encoded).decode().rstrip("=")
        core = text[(0, 2, 3)[shift] : len(text) - (1 if (shift + len(encoded)) % 3 else 0)]
        if len(core) >= _SHORTEST_CORE:
            yield core


def _unite(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans in order, those that overlap as one."""
    start, end = -1, -1
    for next_start, next_end in sorted(spans):
        if next_start >= end:
            if end > 0:
                yield start, end
            start = next_start
        end = max(end, next_end)
    yield start, end
