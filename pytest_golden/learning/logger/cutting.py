"""Cutting of what an agent logs to what is kept. Each cut is marked in its place, and JSON stays JSON. Pure; never raises."""

from __future__ import annotations

import json
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Mapping

# What one long text costs to be measured exactly; of those that surely do not fit, the length is enough.
_LONG_TEXT = 1_000
_MOST_OF_MARK = 64
_MOST_OF_KEY = 200
_SMALLEST = 96
_LEFT_OUT = "[cut]"
# Made once: `json.dumps` with arguments makes one for each call.
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Cut(NamedTuple):
    """What is kept, and whether anything is missing from it."""

    kept: Any
    is_cut: bool


def cut_text(text: str, most_characters: int) -> Cut:
    """Keep the beginning of a text, and say at its end how much is gone."""
    if len(text) <= most_characters:
        return Cut(text, False)
    kept = text[: max(0, most_characters - _MOST_OF_MARK)]
    return Cut(f"{kept} [cut: {len(text) - len(kept):,} characters]", True)


def cut_middle(text: str, most_characters: int) -> Cut:
    """Keep both ends of a text, and say between them how much is gone: what went wrong may stand at either."""
    if len(text) <= most_characters:
        return Cut(text, False)
    half = max(1, (most_characters - _MOST_OF_MARK) // 2)
    return Cut(f"{text[:half]} [cut: {len(text) - 2 * half:,} characters] {text[-half:]}", True)


def cut_steps(steps: tuple[str, ...], most_steps: int, most_bytes: int) -> Cut:
    """Keep the first and the last steps, one in the middle saying how many are gone, and shorten names that are too long.

    Args:
        steps: their names, in order.
        most_steps: how many are kept.
        most_bytes: what all may have as JSON.
    """
    kept = steps
    if len(steps) > most_steps:
        head = most_steps // 2
        tail = most_steps - head - 1
        kept = (*steps[:head], f"[cut: {len(steps) - head - tail:,} steps]", *steps[-tail:])
    if _fits(kept, most_bytes):
        return Cut(kept, kept is not steps)
    share = most_bytes // len(kept)
    return Cut(tuple(_shorten(step, share) for step in kept), True)


def cut_json(value: Any, most_bytes: int) -> Cut:
    """Keep what has room of any value, as JSON content. Small members of a mapping are kept before large ones.

    `most_bytes` is counted in ASCII, as it is stored; so few that not even a mark has room are taken for 96.
    """
    if isinstance(value, (bytes, bytearray)):
        value = value[: most_bytes + 1]  # each byte is one of text, or more
    content = _as_json(value)
    sizes = _Sizes(most_bytes)
    if sizes.of(content) <= most_bytes:
        return Cut(content, False)
    return Cut(_fit(content, max(_SMALLEST, most_bytes), sizes), True)


def measure(value: Any) -> int:
    """Count the bytes of JSON content in ASCII, as it is stored."""
    return len(_ENCODER.encode(value))


def _as_json(value: Any) -> Any:
    try:
        return json_form(value)
    except Exception:  # a foreign class may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def _fits(steps: tuple[str, ...], most_bytes: int) -> bool:
    return sum(map(len, steps)) <= most_bytes and measure(steps) <= most_bytes


def _shorten(text: str, most_bytes: int) -> str:
    """Keep the beginning of a text that as JSON has so many bytes at most, its quotes and a mark included."""
    room = max(1, most_bytes - 4)
    kept = text[:room]
    while (size := measure(kept)) > room and len(kept) > 1:
        kept = kept[: max(1, min(len(kept) - 1, len(kept) * room // size))]
    if len(kept) == len(text):
        return text
    mark = f" [cut: {len(text) - len(kept):,} characters]"
    if most_bytes < 2 * _MOST_OF_MARK:
        return f"{kept[: max(1, len(kept) - 4)]} ..."
    return kept[: max(1, len(kept) - len(mark))] + mark


class _Sizes:
    """Bytes of JSON content, each container looked at once. Beyond four times the room they are only roughly right."""

    def __init__(self, most_bytes: int) -> None:
        self._exact_up_to = 4 * most_bytes
        self._seen = 0
        self._known: dict[int, int] = {}

    def of(self, value: Any) -> int:
        if isinstance(value, str):
            return self._of_text(value)
        if not isinstance(value, (dict, list)):
            return len(str(value)) + 1
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = self._of_container(value)
        return known

    def _of_container(self, value: dict[str, Any] | list[Any]) -> int:
        if isinstance(value, list):
            return 2 + sum(self.of(item) + 1 for item in value)
        return 2 + sum(self.of(key) + self.of(item) + 2 for key, item in value.items())

    def _of_text(self, text: str) -> int:
        if self._seen > self._exact_up_to or len(text) > self._exact_up_to:
            return len(text) + 2
        if len(text) < _LONG_TEXT:
            size = len(encode_basestring_ascii(text))
        else:
            size = self._known.get(id(text)) or len(encode_basestring_ascii(text))
            self._known[id(text)] = size
        self._seen += size
        return size


def _fit(value: Any, room: int, sizes: _Sizes) -> Any:
    if isinstance(value, str):
        return _shorten(value, room)
    if isinstance(value, dict):
        return _fit_mapping(value, room, sizes)
    return _fit_list(value, room, sizes) if isinstance(value, list) else value


def _fit_list(items: list[Any], room: int, sizes: _Sizes) -> list[Any]:
    """Keep the first items."""
    left = room - _MOST_OF_MARK - 2
    kept: list[Any] = []
    for item in items:
        size = sizes.of(item) + 1
        if size > left:
            if left > 2 * _SMALLEST and isinstance(item, (str, list, dict)):
                kept.append(_fit(item, left - 1, sizes))
            break
        kept.append(item)
        left -= size
    if len(kept) < len(items):
        kept.append(f"[cut: {len(items) - len(kept):,} items]")
    return kept


def _fit_mapping(mapping: Mapping[str, Any], room: int, sizes: _Sizes) -> dict[str, Any]:
    """Keep the small members whole and give the large ones what is left, in equal parts; in the order that they had.

    Of very many the first ones are looked at.
    """
    left = room - _MOST_OF_MARK - 2
    parts: dict[str, Any] = {}
    by_size = sorted(islice(mapping, left // _SMALLEST + 1), key=lambda key: sizes.of(mapping[key]))
    for number, key in enumerate(by_size):
        beside = sizes.of(key) + 2
        size, share = sizes.of(mapping[key]), left // (len(by_size) - number) - beside
        if len(key) > _MOST_OF_KEY or share < min(size, _SMALLEST):
            continue
        parts[key] = mapping[key] if size <= share else _fit(mapping[key], share, sizes)
        left -= beside + min(size, share)
    kept = {key: parts[key] for key in mapping if key in parts}
    if len(kept) < len(mapping):
        kept[_LEFT_OUT] = f"{len(mapping) - len(kept):,} members"
    return kept
