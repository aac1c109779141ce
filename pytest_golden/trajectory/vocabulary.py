"""Define the words of a trajectory, and freeze and cut the values that callers give."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from datetime import date, time, timedelta
from enum import Enum, StrEnum
from itertools import islice
from numbers import Number
from pathlib import PurePath
from types import FunctionType, NoneType
from typing import Any
from uuid import UUID

from pytest_golden.values.checking import find_amount, show
from pytest_golden.values.json_form import FrozenDict, FrozenList, json_form

_ATOMS = (str, bytes, Number, NoneType, Enum, date, time, timedelta, PurePath, UUID, type, FunctionType, range)
_EMPTY = FrozenDict()
_SETTLED = (FrozenDict, FrozenList, *_ATOMS)
# Matched by exact class, which is many times faster than `isinstance` with abstract classes.
_PLAIN_KINDS = frozenset({NoneType, bool, int, float, str, bytes, FrozenDict, FrozenList})


class StepType(StrEnum):
    """What kind of thing a step is."""

    REASONING = "reasoning"
    ACTION = "action"
    OBSERVATION = "observation"
    TOOL_CALL = "tool_call"
    STATE_CHANGE = "state_change"


#: The types of steps that do something.
ACTING = frozenset({StepType.ACTION, StepType.TOOL_CALL})


class Ranked(StrEnum):
    """Words from least to most. As text they sort by letter; compare `rank` instead."""

    @property
    def rank(self) -> int:
        """Return 0 for the least of the words."""
        return list(type(self)).index(self)


class Importance(Ranked):
    """How much a step matters, from least to most."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class TrajectoryOutcome(StrEnum):
    """How the run behind a trajectory ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"
    PARTIAL = "partial"


def check_duration(field: str, duration_ms: object) -> float | None:
    """Return milliseconds as a float, or None for unknown. Raise a `ValueError` for anything negative, infinite or no number."""
    milliseconds = find_amount(duration_ms)
    if milliseconds is None and duration_ms is not None:
        raise ValueError(
            f"{field} must be a finite number of milliseconds, 0 or more, or None, not {show(duration_ms)}"
        )
    return milliseconds


def freeze(field: str, value: Any) -> Any:
    """Return a deeply frozen value that equals the given one, so that a kept value never changes; cycles stay cycles.

    A dict stays a dict and a list a list, but both refuse changes. Objects of other classes are copied if the copy equals
    the original; an object that compares by identity is kept as it is.

    Raises:
        ValueError: tuples or sets are nested deeper than the interpreter can follow; the message names the field.
    """
    kind = type(value)
    if kind in _PLAIN_KINDS:
        return value
    # Most values are flat, and copied at once.
    if kind is dict and _PLAIN_KINDS.issuperset(map(type, value.values())):
        return FrozenDict(value)
    if kind is list and _PLAIN_KINDS.issuperset(map(type, value)):
        return FrozenList(value)
    try:
        return _Freezer().freeze(value)
    except RecursionError:
        raise ValueError(f"{field} is nested too deeply to be kept; flatten it or give it as text") from None


def freeze_mapping(field: str, value: Any) -> FrozenDict:
    """Return a frozen dict, empty for None. Raise a `ValueError` that names the field for anything but a mapping."""
    if value is None:
        return _EMPTY
    if type(value) is not dict and not isinstance(value, Mapping):
        raise ValueError(f"{field} must be a mapping (a dict) or None, not {show(value)}")
    frozen: FrozenDict = freeze(field, value)
    return frozen


class _Freezer:
    """Freezes one value. Lists and dicts are filled from a work list, so that deep nesting needs no recursion."""

    def __init__(self) -> None:
        # The source is kept beside its copy, so that no other object can get its id in the meantime.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._unfilled: list[tuple[Any, Any]] = []

    def freeze(self, value: Any) -> Any:
        frozen = self._one(value)
        while self._unfilled:
            source, target = self._unfilled.pop()
            if isinstance(target, dict):
                dict.update(target, {key: self._one(item) for key, item in dict(source).items()})
            else:
                list.extend(target, [self._one(item) for item in list(source)])
        return frozen

    def _one(self, value: Any) -> Any:
        if type(value) in _PLAIN_KINDS or isinstance(value, _SETTLED):
            return value
        if isinstance(value, (list, Mapping)):
            if id(value) not in self._known:
                target: Any = FrozenList() if isinstance(value, list) else FrozenDict()
                self._known[id(value)] = (value, target)
                self._unfilled.append((value, target))
            return self._known[id(value)][1]
        if isinstance(value, tuple):
            items = [self._one(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, (set, frozenset)):
            return frozenset(value)
        return bytes(value) if isinstance(value, bytearray) else _copied(value)


def _copied(value: Any) -> Any:
    """Copy an object that compares by its content; keep one that compares by identity or cannot be copied."""
    compares_by_identity: bool = getattr(type(value), "__eq__", None) is object.__eq__
    if compares_by_identity:
        return value
    try:
        duplicate = copy.deepcopy(value)
    except Exception:  # a foreign class may raise anything; keep the content as it is
        return value
    try:
        return duplicate if bool(duplicate == value) else value
    except Exception:  # an array has no single truth value, and the original could change later
        return duplicate


MAX_CONTENT_BYTES = 1024 * 1024
# A kept step must stay below the longest line that is read, even if each letter is written as six.
_MOST_LIMITS = 6
_MOST_KEYS = _LONGEST_KEY = 1_000
_FEW = 10
_CONTAINERS = frozenset({dict, list, tuple, FrozenDict, FrozenList})
_SCALARS = frozenset({type(None), bool, int, float})
# Bytes of JSON: an escaped control character, and twice the longest integer that is written.
_MOST_OF_LETTER, _MOST_OF_NUMBER = 6, 10_000


def cut_content(content: Any, limit_bytes: int = MAX_CONTENT_BYTES) -> tuple[Any, int]:
    """Return the content and 0 if it fits, else its first bytes and the number of bytes left out.

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
    """Return the mapping and 0 if it fits, else the mapping with its large values cut, and the number of bytes left out.

    Each value may have the limit, and all together a few times that. Beyond that the first keys are kept, and each value
    gets a share.
    """
    # Most metadata is a few numbers, which need no further check.
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
    """Tell whether a flat container certainly fits, without serializing it."""
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
