"""The words of a trajectory, and how what a caller gives is frozen."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from datetime import date, time, timedelta
from enum import Enum, StrEnum
from numbers import Number, Real
from pathlib import PurePath
from types import FunctionType, NoneType
from typing import Any
from uuid import UUID

from pytest_golden.values.checking import show
from pytest_golden.values.frozen import FrozenDict, FrozenList

SCHEMA_VERSION = 1
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


class Importance(StrEnum):
    """How much a step matters, from least to most. As text they sort by letter; compare `rank` instead."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return 0 for low up to 3 for critical."""
        return _RANKS[self]


_RANKS = {importance: rank for rank, importance in enumerate(Importance)}


class TrajectoryOutcome(StrEnum):
    """How the run behind a trajectory ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"
    PARTIAL = "partial"


def check_duration(field: str, duration_ms: object) -> float | None:
    """Return milliseconds as a float, or None for unknown. Raise a `ValueError` for anything negative, infinite or no number."""
    if duration_ms is None:
        return None
    if not isinstance(duration_ms, bool) and isinstance(duration_ms, Real):
        try:
            milliseconds = float(duration_ms)
        except OverflowError:
            milliseconds = math.inf
        if math.isfinite(milliseconds) and milliseconds >= 0:
            return milliseconds
    raise ValueError(f"{field} must be a finite number of milliseconds, 0 or more, or None, not {show(duration_ms)}")


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
        # The source is kept beside its copy, so that no other object can get its id meanwhile.
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
            return self._container(value)
        if isinstance(value, tuple):
            items = [self._one(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, (set, frozenset)):
            return frozenset(value)
        return bytes(value) if isinstance(value, bytearray) else _copied(value)

    def _container(self, value: Any) -> Any:
        if id(value) not in self._known:
            target: Any = FrozenList() if isinstance(value, list) else FrozenDict()
            self._known[id(value)] = (value, target)
            self._unfilled.append((value, target))
        return self._known[id(value)][1]


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
