"""Compare hints with signals as text, and make the columns by which the store finds hints. Pure.

An expectation lies in the index under one key of its hint, its anchor: a signal that fits has that key too. Guesses use
the shape of a hint instead: the source that it names, and its other keys.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = "source"
#: The shape of an expectation without a hint.
NO_HINT = ""
#: The shape of one with a check, whatever its hint: no guess is looked for there.
CHECKED = "check"
#: The most keys of a hint: the rank has no room for more.
MOST_KEYS = 99
#: Longer keys are not compared: a deep and wide signal would have endless ones.
LONGEST_KEY = 300
#: The longest shape: shapes are in an index.
LONGEST_SHAPE = 1000
_EXPIRY_BITS = 48
_NEVER = (1 << _EXPIRY_BITS) - 1
_LONGEST_SHOWN = 60

#: A signal's keys, dotted for what lies deeper, and each one's values as text (none for a list or mapping as a whole).
Words = dict[str, tuple[str, ...]]


def find_problem(hint: Mapping[str, Any]) -> str:
    """Return why a hint cannot be kept, with what to do; "" if it can."""
    if not 0 < len(hint) <= MOST_KEYS:
        return f"has {len(hint)} keys, and 1 to {MOST_KEYS} are compared"
    for key, item in hint.items():
        if len(key) > LONGEST_KEY:
            return f"the key {show(key)} is longer than {LONGEST_KEY} characters"
        if item is not None and not isinstance(item, str | bool | int | float):
            return f"{key} must be a text, a number, true, false or null, since it is compared as text"
    if len(write_shape(hint)) > LONGEST_SHAPE:
        return f"its keys, and its source, have more than {LONGEST_SHAPE:,} characters together; leave some out"
    return ""


def read_words(source: str, data: Mapping[str, Any]) -> Words:
    """Return what a signal has; `source` is its own, whatever its data say."""
    words: dict[str, list[str]] = {}
    for key, value in _walk(data):
        values = words.setdefault(key, [])
        if not isinstance(value, dict | list | tuple):
            values.append(write_text(value))
    return {**{key: tuple(values) for key, values in words.items()}, SOURCE: (source,)}


def write_text(value: Any) -> str:
    """Write a value as it is compared: a text as it is, a number, true, false and null as JSON has them."""
    return value if isinstance(value, str) else json.dumps(value)


def allows_guess(hint: Mapping[str, Any] | None, words: Words) -> bool:
    """Tell whether a signal may be meant: some key of the hint has an equal value in it, and none another; or there is no hint."""
    found = [write_text(value) in words[key] for key, value in (hint or {}).items() if key in words]
    return not hint or (any(found) and all(found))


def fits(hint: Mapping[str, Any], words: Words) -> bool:
    """Tell whether every key of a hint is in the signal with an equal value."""
    return all(write_text(value) in words.get(key, ()) for key, value in hint.items())


def describe_misfit(hint: Mapping[str, Any], words: Words) -> str:
    """Say why a hint does not fit; empty when it does."""
    shown = [
        f"{key} is {_show(words[key])} in the signal, not {_show((write_text(value),))}"
        for key, value in hint.items()
        if key in words and write_text(value) not in words[key]
    ]
    missing = [key for key in hint if key not in words]
    return "; ".join([*shown, *([f"the signal has no {', '.join(missing)}"] if missing else [])])


@lru_cache(maxsize=64)
def anchor_of(key: str, value: str) -> int:
    """Return the number under which an expectation with this key and value in its hint may lie in the index."""
    written = f"{key}\0{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(written, digest_size=8).digest()) >> 1


def anchors_of(words: Words) -> tuple[int, ...]:
    """Return all numbers under which an expectation may lie that a signal fits."""
    return tuple(anchor_of(key, value) for key, values in words.items() for value in values)


def list_anchors(hint: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers under which a hint may be kept, those first that are likely to be rare: long, and not the source."""
    written = [(key, write_text(value)) for key, value in hint.items()]
    written.sort(key=lambda pair: (pair[0] == SOURCE, -len(pair[1])))
    return tuple(anchor_of(key, value) for key, value in written)


def write_shape(hint: Mapping[str, Any] | None, *, has_check: bool = False) -> str:
    """Write the shape of an expectation."""
    if has_check:
        return CHECKED
    if not hint:
        return NO_HINT
    source = write_text(hint[SOURCE]) if SOURCE in hint else None
    return json.dumps([source, *sorted(key for key in hint if key != SOURCE)], separators=(",", ":"))


@lru_cache(maxsize=1024)
def read_shape(shape: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the source that a hint of this shape names, None for any, and its other keys."""
    source, *keys = json.loads(shape) if shape else (None,)
    return source, tuple(keys)


def count_keys(shape: str) -> int:
    """Return how many keys a hint of this shape has."""
    source, keys = read_shape(shape)
    return len(keys) + (source is not None)


def rank(keys: int, expires_at: int | None) -> int:
    """Return a number that is smaller the more keys a hint has, and then the nearer its expiry (milliseconds, None: never)."""
    expiry = _NEVER if expires_at is None else min(max(expires_at, 0), _NEVER - 1)
    return ((MOST_KEYS - min(keys, MOST_KEYS)) << _EXPIRY_BITS) | expiry


def _walk(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every key of the data with its value, at any depth."""
    waiting: list[tuple[str, Any]] = [("", data)]
    while waiting:
        way, value = waiting.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            path = f"{way}.{key}" if way else str(key)
            if len(path) > LONGEST_KEY:
                continue
            yield path, item
            if isinstance(item, dict | list | tuple):
                waiting.append((path, item))


def _show(values: tuple[str, ...]) -> str:
    shown = " or ".join(repr(value) for value in values[:3]) or "not a plain value"
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[: _LONGEST_SHOWN - 4]} ..."
