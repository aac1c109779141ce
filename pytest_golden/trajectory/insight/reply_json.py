"""Find the JSON in a model's reply: the whole text, in fences, or in the middle of prose. Pure; bounded work for every reply.

Text that is nearly JSON (single quotes, None, a comma too many) is read where it is the whole reply or in a fence. Nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_READ = 1_000_000
_MOST_MENDED = 200_000
_MOST_FENCES, _MOST_PLACES = 20, 200
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"[{\[]")
# Strings match as a whole, closed or not: nothing inside one is changed, and each character is read once.
_RELAXED = re.compile(
    r"'(?P<body>(?:[^'\\]|\\.)*)(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|\b(?:None|True|False)\b|(?P<comma>,)(?=\s*[}\]])",
    re.DOTALL,
)
_QUOTES = re.compile(r"\\.|\"", re.DOTALL)
_CONSTANTS = {"None": "null", "True": "true", "False": "false"}
_THOUGHT_ENDS = "</think>"
_NOTHING = object()
# NaN and Infinity are not JSON: they are read as null.
_DECODER = json.JSONDecoder(parse_constant=lambda _word: None)


class FoundValue(NamedTuple):
    """A JSON value of a reply, where it is in the text, and whether prose surrounds it."""

    value: Any
    start: int
    end: int
    is_in_prose: bool


def find_json(reply: str) -> tuple[str, Iterator[FoundValue]]:
    """Return the text of a reply without the model's thoughts, and its JSON values, the likeliest first.

    The whole text is the only value when it is JSON. Otherwise come the values in fences, then objects and lists in prose.
    """
    text = reply[:MOST_READ].removeprefix("\ufeff").strip()
    whole = _load(text)
    if whole is _NOTHING and _THOUGHT_ENDS in text:
        text = _drop_thought(text)
        whole = _load(text)
    if whole is not _NOTHING:
        return text, iter((FoundValue(whole, 0, len(text), is_in_prose=False),))
    return text, _find_values(text)


def _drop_thought(text: str) -> str:
    """Return the text after the thought. A closing tag inside a JSON value does not end a thought."""
    values = list(_find_values(text))
    mark = text.rfind(_THOUGHT_ENDS)
    while mark >= 0:
        around = [found.start for found in values if found.start < mark < found.end]
        if not around:
            return text[mark + len(_THOUGHT_ENDS) :].strip()
        mark = text.rfind(_THOUGHT_ENDS, 0, min(around))
    return text


def _find_values(text: str) -> Iterator[FoundValue]:
    """Return each value in a fence, then each object or list in prose, outermost ones only."""
    for fenced in islice(_FENCE.finditer(text), _MOST_FENCES):
        value = _load(fenced[1].strip())
        if value is not _NOTHING:
            yield FoundValue(value, *fenced.span(1), is_in_prose=False)
    position = 0
    for _place in range(_MOST_PLACES):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        start = opening.start()
        position = start + 1
        try:
            value, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield FoundValue(value, start, position, is_in_prose=True)


def _load(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _load_relaxed(text)


def _load_relaxed(text: str) -> Any:
    """Read what is nearly JSON: Python's quotes and constants, and commas before a closing bracket."""
    if text[:1] not in {"{", "["} or len(text) > _MOST_MENDED:
        return _NOTHING
    try:
        return _DECODER.decode(_RELAXED.sub(_write_strictly, text))
    except (ValueError, RecursionError):
        return _NOTHING


def _write_strictly(found: re.Match[str]) -> str:
    body = found["body"]
    if body is not None:
        return '"' + _QUOTES.sub(lambda quote: "'" if quote[0] == "\\'" else quote[0].replace('"', '\\"'), body) + '"'
    return _CONSTANTS.get(found[0], found[0]) if found["comma"] is None else ""
