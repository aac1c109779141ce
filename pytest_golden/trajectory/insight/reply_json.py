"""Finds the JSON in what a model replied: plain, fenced, in the middle of prose, or wrapped as the APIs wrap it.

Bounded work whatever the reply: what is beyond a million characters is not read, and few places are tried.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_READ = 1_000_000
_MOST_PLACES = 20
_MOST_WRAPPINGS = 6
_FENCES = ("```", "~~~")
_TOLD_KEYS = frozenset({"analysis", "suggestions", "rootcauses", "recommendations", "improvements"})
# What APIs and talkative models put around the answer.
_WRAPPER_KEYS = (
    "reflection",
    "result",
    "response",
    "output",
    "answer",
    "data",
    "choices",
    "message",
    "content",
    "text",
)
_DECODER = json.JSONDecoder()


class Found(NamedTuple):
    """What a reply holds: the values of its JSON when it is an object or a list, its text, and whether all was JSON."""

    value: Any
    text: str
    is_whole: bool


def read_reply(reply: object) -> Found:
    """Find the answer in a reply of any type."""
    value: Any = reply
    for _wrapping in range(_MOST_WRAPPINGS):
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = bytes(value[:MOST_READ]).decode("utf-8", "replace")
        if isinstance(value, str):
            return _read_text(value)
        value = _plain(value)
        inner = _unwrap(value)
        if inner is None:
            return Found(value if isinstance(value, (dict, list)) else None, "", is_whole=True)
        value = inner
    return Found(None, "", is_whole=False)


def key_form(key: object) -> str:
    """Return a key without case and marks, so that rootCauses, root_causes and "Root causes" are one."""
    return re.sub(r"[^a-z0-9]", "", str(key)[:100].lower())


def _plain(value: Any) -> Any:
    """Return JSON-safe values for any object; one of pydantic's by its fields, one that carries a text by its text."""
    if isinstance(value, (dict, list)):
        return json_form(value)
    try:
        if hasattr(value, "model_dump"):
            value = value.model_dump()
        elif isinstance(getattr(value, "text", None), str):
            value = value.text
    except Exception:  # a foreign class may raise anything
        return None
    return json_form(value)


def _unwrap(value: Any) -> Any:
    """Return what is inside a wrapper; None when the value is no wrapper."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _unwrap_list(value)
    if isinstance(value, dict) and not _is_answer(value):
        return next((value[key] for key in _WRAPPER_KEYS if isinstance(value.get(key), (dict, list, str))), None)
    return None


def _unwrap_list(value: list[Any]) -> Any:
    """Return the only choice of a list of choices, or the joined text of a message in several blocks."""
    blocks = [item for item in value if isinstance(item, dict)]
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    if texts:
        return "\n".join(texts)
    return value[0] if len(blocks) == len(value) == 1 and _has_wrapper(blocks[0]) else None


def _has_wrapper(value: dict[Any, Any]) -> bool:
    return not _is_answer(value) and any(key in value for key in _WRAPPER_KEYS) and "description" not in value


def _is_answer(value: dict[Any, Any]) -> bool:
    return any(key_form(key) in _TOLD_KEYS for key in value)


def _read_text(text: str) -> Found:
    text = text[:MOST_READ].lstrip("\ufeff").strip()
    value = _load(text)
    if isinstance(value, (dict, list)):
        return read_reply(value)
    if isinstance(value, str) and value != text:
        return read_reply(value)._replace(is_whole=False)
    for fenced in islice(_fenced(text), _MOST_PLACES):
        found = read_reply(_load(fenced))
        if _tells(found.value):
            return found
    return Found(_find_embedded(text), text, is_whole=False)


def _tells(value: Any) -> bool:
    """Tell whether JSON in the middle of something else is the answer, not an example of something."""
    if isinstance(value, list):
        return any(isinstance(item, dict) and "description" in item for item in value)
    return isinstance(value, dict) and _is_answer(value)


def _fenced(text: str) -> Iterator[str]:
    """Return what stands in fences, the last one also when the reply ends before it is closed."""
    lines: list[str] | None = None
    for line in text.splitlines():
        is_fence = line.lstrip().startswith(_FENCES)
        if is_fence and lines is not None:
            yield "\n".join(lines)
            lines = None
        elif is_fence:
            lines = []
        elif lines is not None:
            lines.append(line)
    if lines:
        yield "\n".join(lines)


def _find_embedded(text: str) -> Any:
    """Return the first JSON object in prose that looks like an answer."""
    start = -1
    for _place in range(_MOST_PLACES):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            value, _end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if _tells(value):
            return value
    return None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
