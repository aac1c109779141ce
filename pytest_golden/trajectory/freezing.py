"""Deep freezing of what a caller hands in, so that a kept value never changes.

What comes out compares equal to what went in: a dict stays a dict, a list a list, but both refuse to be written.
Objects of other classes are copied when their copy equals them; one that compares by identity stays the same object.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import date, time, timedelta
from enum import Enum
from numbers import Number
from pathlib import PurePath
from types import FunctionType, NoneType
from typing import Any
from uuid import UUID

from pytest_golden.frozen import FrozenDict, FrozenList

_ATOMS = (str, bytes, Number, NoneType, Enum, date, time, timedelta, PurePath, UUID, type, FunctionType, range)


def freeze(field: str, value: Any) -> Any:
    """Give a deeply frozen value equal to the given one; cycles stay cycles.

    Raises:
        ValueError: tuples or sets are nested deeper than the interpreter can follow; names the field.
    """
    kind = type(value)
    if kind in _PLAIN_KINDS:
        return value
    # Most of what is given is flat, and copied at once.
    if kind is dict and _PLAIN_KINDS.issuperset(map(type, value.values())):
        return FrozenDict(value)
    if kind is list and _PLAIN_KINDS.issuperset(map(type, value)):
        return FrozenList(value)
    try:
        return _Freezer().freeze(value)
    except RecursionError:
        raise ValueError(f"{field} is nested too deeply to be kept; flatten it or give it as text") from None


def freeze_mapping(field: str, value: Any) -> FrozenDict:
    """Give a frozen dict, empty for None; refuse anything but a mapping with a `ValueError` that names the field."""
    if value is None:
        return _EMPTY
    if type(value) is not dict and not isinstance(value, Mapping):
        raise ValueError(f"{field} must be a mapping (a dict) or None, not {value!r}")
    frozen: FrozenDict = freeze(field, value)
    return frozen


_EMPTY = FrozenDict()
_SETTLED = (FrozenDict, FrozenList, *_ATOMS)
# Known by their exact class, which is many times faster than asking abstract ones.
_PLAIN_KINDS = frozenset({NoneType, bool, int, float, str, bytes, FrozenDict, FrozenList})


class _Freezer:
    """One pass over one value. Lists and dicts are filled from a work list, so that their depth costs no stack."""

    def __init__(self) -> None:
        # The source is kept beside its copy, so that no other object takes its id during the pass.
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
    except Exception:  # whatever a foreign class raises here, the content is kept as it is
        return value
    try:
        return duplicate if bool(duplicate == value) else value
    except Exception:  # an array gives no single answer, and would change with the caller's
        return duplicate
