"""Any Python value as JSON-safe values; and a dict and a list that refuse to be written, equal to the plain ones, for values that are kept.

JSON content comes out as it is; the rest becomes readable text, for good. This is not a serialiser: what was not JSON content is not read back.
Only the container itself is frozen; what freezes all that is in it is `trajectory/vocabulary.py`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_golden.clock import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

# What JSON does not escape, but a terminal obeys or does not show.
_UNSEEN_IN_JSON = "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"a kept {type(self).__mro__[1].__name__} cannot be written; make a copy and write that")


class FrozenDict(dict[Any, Any]):
    """A dict that cannot be written after it is made."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (), dict(self)

    def __setstate__(self, items: dict[Any, Any]) -> None:
        """Fill a new copy, which may be part of a cycle; pickle and copy call it."""
        if self:
            _refuse(self)
        dict.update(self, items)


class FrozenList(list[Any]):
    """A list that cannot be written after it is made."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (), list(self)

    def __setstate__(self, items: list[Any]) -> None:
        """Fill a new copy, which may be part of a cycle; pickle and copy call it."""
        if self:
            _refuse(self)
        list.extend(self, items)


# json.dumps and json.loads descend on the interpreter's stack, whose limit is 1,000 by default.
MAX_DEPTH = 200
# A list that holds itself twice, a hundred times over, is small in memory and endless as text.
MAX_VALUES = 250_000
_MAX_REPR = 100_000
# Python refuses to write integers of more than 4,300 digits in decimal.
_MAX_INT_BITS = 14_000
# Known by their exact class, which is many times faster than asking an abstract one.
_PLAIN_KINDS = frozenset({type(None), bool, str, int, float})
_CONTAINER_KINDS = frozenset({FrozenDict, FrozenList, dict, list, tuple})
_CONTAINERS = (Mapping, list, tuple, set, frozenset)
_LEFT_OUT = f"<left out: more than {MAX_VALUES} values>"


def json_form(value: Any) -> Any:
    """Return the value as dict, list, str, int, finite float, bool or None, whatever it holds."""
    if type(value) in _PLAIN_KINDS:
        return _plain(value)
    return _JsonForm().of(value, 0)


def list_scalars(plain: Any) -> Iterator[Any]:
    """Yield the keys and the values of JSON content, at any depth, without the dicts and lists themselves."""
    waiting = [plain]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        else:
            yield one


def escape_in_json(text: str) -> str:
    """Return JSON with escapes for what JSON leaves as it is, and a terminal obeys or does not show."""
    return re.sub(_UNSEEN_IN_JSON, lambda found: json.dumps(found[0])[1:-1], text)


def readable_text(value: Any) -> str:
    """Return text as it is, and any other value as JSON text."""
    form = value if isinstance(value, str) else json_form(value)
    return form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)


class _JsonForm:
    """One pass over one value: knows the containers it stands in and how many values it has seen."""

    def __init__(self) -> None:
        self._standing_in: set[int] = set()
        self._seen = 0

    def of(self, value: Any, depth: int) -> Any:
        self._seen += 1
        kind = type(value)
        if kind in _PLAIN_KINDS:
            return _plain(value)
        if kind in _CONTAINER_KINDS or isinstance(value, _CONTAINERS) or _is_record(value):
            return self._container(value, depth)
        if isinstance(value, Enum):
            return self.of(value.value, depth)
        return _plain(value) if isinstance(value, (str, int, float)) else _as_text(value)

    def _container(self, value: Any, depth: int) -> Any:
        if id(value) in self._standing_in:
            return "<cycle>"
        if depth >= MAX_DEPTH:
            return f"<left out: nested deeper than {MAX_DEPTH} levels>"
        self._standing_in.add(id(value))
        try:
            return self._items(value, depth + 1)
        finally:
            self._standing_in.discard(id(value))

    def _items(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if _is_record(value):
            return self._mapping(
                {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, depth
            )
        items: list[Any] = []
        for item in sorted(value, key=_repr) if isinstance(value, (set, frozenset)) else value:
            if self._seen >= MAX_VALUES:
                items.append(_LEFT_OUT)
                break
            items.append(self.of(item, depth))
        return items

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, item in value.items():
            if self._seen >= MAX_VALUES:
                plain[_LEFT_OUT] = None
                break
            plain[_unused_key(key, plain)] = self.of(item, depth)
        return plain


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NOT_FINITE[str(float(value))]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if value.bit_length() <= _MAX_INT_BITS else hex(value)
    return value


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _as_text(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, datetime):
        return iso_utc(value) if value.tzinfo else value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else _foreign_text(value)


def _foreign_text(value: Any) -> Any:
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"[:_MAX_REPR]
        if isinstance(value, Integral):
            return _plain(int(value))
        if isinstance(value, Real):
            return _plain(float(value))
        return str(value)[:_MAX_REPR] if type(value).__module__ in _TELLING else _repr(value)
    except Exception:  # a foreign class may raise anything
        return _repr(value)


_TELLING = frozenset({"decimal", "uuid", "pathlib", "pathlib._local", "ipaddress"})


def _repr(value: Any) -> str:
    try:
        return repr(value)[:_MAX_REPR]
    except Exception:  # a foreign class may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def _unused_key(key: Any, taken: Mapping[str, Any]) -> str:
    name = key if type(key) is str else _key_text(key)
    while name in taken:
        name = f"{name} ({type(key).__name__})"
    return name


def _key_text(key: Any) -> str:
    if isinstance(key, Enum):
        return _key_text(key.value)
    if key is None or isinstance(key, bool):
        return _JSON_WORDS[key]
    return str(_plain(key) if isinstance(key, (str, int, float)) else _as_text(key))


_JSON_WORDS = {True: "true", False: "false", None: "null"}
