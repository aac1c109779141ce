"""Finds the value in what a model said, whatever it has put around it. Pure; bounded work whatever was said.

Tried in this order: the whole as JSON, what stands in fences, JSON in the middle of prose, and the text as it is. What
is nearly JSON (single quotes, None, a comma too many) is taken where it is the whole or in a fence; nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_golden.errors import LanguageModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import TypeAdapter

_MOST_READ = 1024 * 1024
_MOST_MENDED = 200_000
_MOST_FENCES, _MOST_PLACES, _MOST_ITEMS = 20, 200, 20
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"[{\[]")
# Strings as wholes, closed or not, so that nothing inside of one is changed and each character is looked at once.
_RELAXED = re.compile(
    r"'(?P<body>(?:[^'\\]|\\.)*)(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|\b(?:None|True|False)\b|(?P<comma>,)(?=\s*[}\]])",
    re.DOTALL,
)
_QUOTES = re.compile(r"\\.|\"", re.DOTALL)
_CONSTANTS = {"None": "null", "True": "true", "False": "false"}
_THOUGHT_ENDS = "</think>"
_NOTHING = object()


def read_value(replies: Iterable[object], adapter: TypeAdapter[Any]) -> Any:
    """Return the first value in the replies that the schema accepts.

    Raises:
        LanguageModelError: none does; the message says what is wrong with the first value, without quoting it.
    """
    trouble: str | None = None
    for candidate in (one for reply in replies for one in find_candidates(reply)):
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            trouble = trouble or _describe(error)
        except Exception as error:  # a validator of a caller's type may raise anything
            trouble = trouble or f"{type(error).__name__} in a validator"
    raise LanguageModelError(f"the reply does not fit the schema: {trouble or 'it is empty'}")


def find_candidates(reply: object) -> Iterator[Any]:
    """Return the values that the reply may mean, the likeliest first: JSON content, and at last the text itself."""
    if not isinstance(reply, str):
        yield from _with_inner(reply)
        return
    said = reply[:_MOST_READ].removeprefix("\ufeff").strip()
    whole = _load(said)
    if whole is _NOTHING and _THOUGHT_ENDS in said:
        said = _drop_thought(said)
        whole = _load(said)
    if whole is not _NOTHING:
        yield from _with_inner(whole)
    else:
        for value, _, _ in _find_values(said):
            yield from _with_inner(value)
    if said:
        yield said


def _drop_thought(said: str) -> str:
    """Return what stands after the thought; the tag that ends one is but text where it stands inside of a value."""
    places = [(start, end) for _, start, end in _find_values(said)]
    mark = said.rfind(_THOUGHT_ENDS)
    while mark >= 0:
        around = [start for start, end in places if start < mark < end]
        if not around:
            return said[mark + len(_THOUGHT_ENDS) :].strip()
        mark = said.rfind(_THOUGHT_ENDS, 0, min(around))
    return said


def _with_inner(value: Any, depth: int = 3) -> Iterator[Any]:
    """Return the value, and what stands in it when it is but a wrapper: JSON as text, a list, an object of one key."""
    yield value
    if not depth:
        return
    inner: list[Any] = []
    if isinstance(value, str):
        loaded = _load(value)
        inner = [loaded] if isinstance(loaded, (dict, list)) else []
    elif isinstance(value, list):
        inner = value[:_MOST_ITEMS]
    elif isinstance(value, dict) and len(value) == 1:
        inner = list(value.values())
    for one in inner:
        yield from _with_inner(one, depth - 1)


def _find_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Return each value in a fence, then each object or list in prose, outermost ones only; with its start and end."""
    for fenced in islice(_FENCE.finditer(text), _MOST_FENCES):
        value = _load(fenced[1].strip())
        if value is not _NOTHING:
            yield value, *fenced.span(1)
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
        yield value, start, position


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


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _describe(error: ValidationError) -> str:
    """Say which fields are wrong; not what stands in them."""
    told = (
        f"{'.'.join(map(str, one['loc'])) or 'value'}: {one['type']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)[:3]
    )
    return "; ".join(told)[:300]
