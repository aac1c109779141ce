"""Cutting of what is too large to be kept with a step or a snapshot. Says how much is gone; never raises."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_golden.values.frozen import FrozenDict, FrozenList
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CONTENT_BYTES = 1024 * 1024
# What is kept of a step must stay below the longest line that is read, also where each letter is written as six.
_MOST_LIMITS = 6
_MOST_KEYS = _LONGEST_KEY = 1_000
_FEW = 10
_CONTAINERS = frozenset({dict, list, tuple, FrozenDict, FrozenList})
_SCALARS = frozenset({type(None), bool, int, float})
# Bytes of JSON: an escaped control character, and twice an integer as long as it is ever written.
_MOST_OF_LETTER, _MOST_OF_NUMBER = 6, 10_000


def cut_content(content: Any, limit_bytes: int = MAX_CONTENT_BYTES) -> tuple[Any, int]:
    """Return the content and 0 when it fits, else its first bytes and how many are left out.

    Sizes are those of UTF-8; other content than text and bytes is measured, and cut, as JSON text.
    """
    if isinstance(content, str):
        return _cut_text(content, limit_bytes)
    if isinstance(content, (bytes, bytearray)):
        return bytes(content[:limit_bytes]), max(0, len(content) - limit_bytes)
    if content is None or isinstance(content, (bool, int, float)) or _is_small(content, limit_bytes):
        return content, 0
    text, left_out = _cut_text(json.dumps(json_form(content), ensure_ascii=False), limit_bytes)
    return (text, left_out) if left_out else (content, 0)


def cut_mapping(mapping: Mapping[Any, Any], limit_bytes: int = MAX_CONTENT_BYTES) -> tuple[Mapping[Any, Any], int]:
    """Return the mapping and 0 when it fits, else with its large values cut, and how many bytes are left out.

    A value may have the limit, and all together a few times that; of more than that the first keys are kept, and each
    value gets a share.
    """
    # A few numbers, as most metadata is, need not be looked at one by one.
    if len(mapping) <= _FEW and _SCALARS.issuperset(map(type, mapping.values())):
        return mapping, 0
    size = 0 if _is_small(mapping, limit_bytes) else _measure(mapping)
    if size <= limit_bytes:
        return mapping, 0
    most = limit_bytes * _MOST_LIMITS
    if size <= most:
        parts = {key: cut_content(value, limit_bytes) for key, value in mapping.items()}
        left_out = sum(cut for _, cut in parts.values())
        return ({key: kept for key, (kept, _) in parts.items()} if left_out else mapping), left_out
    share = min(limit_bytes, most // min(len(mapping), _MOST_KEYS))
    first = islice(mapping.items(), _MOST_KEYS)
    shortened = {_shorten_key(key): cut_content(value, share)[0] for key, value in first}
    return shortened, max(1, size - _measure(shortened))


def _shorten_key(key: Any) -> Any:
    is_short = isinstance(key, str) and len(key) <= _LONGEST_KEY
    return key if is_short else str(json_form(key))[:_LONGEST_KEY]


def _measure(content: Any) -> int:
    return len(json.dumps(json_form(content), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _is_small(content: Any, limit_bytes: int) -> bool:
    """Tell whether a flat container surely fits, so that it need not be written to be measured."""
    if type(content) not in _CONTAINERS or len(content) * _MOST_OF_NUMBER > limit_bytes:
        return False
    letters = 0
    for value in (*content, *content.values()) if isinstance(content, dict) else content:
        kind = type(value)
        if kind is str:
            letters += len(value)
        elif kind not in _SCALARS:
            return False
    return letters * _MOST_OF_LETTER <= limit_bytes // 4


def _cut_text(text: str, limit_bytes: int) -> tuple[str, int]:
    if len(text) * 4 <= limit_bytes:
        return text, 0
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit_bytes:
        return text, 0
    end = limit_bytes
    while encoded[end] & 0b1100_0000 == 0b1000_0000:  # not in the middle of a character
        end -= 1
    return encoded[:end].decode("utf-8", "surrogatepass"), len(encoded) - end
