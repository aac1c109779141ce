"""One comparison of a field of a step with a value. How comparisons are joined is in `query.py`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration, check_text, check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.trajectory.step import Step

_SAME = ("=", "!=")
_ORDERED = (*_SAME, "<", "<=", ">", ">=")
#: The fields, and what each may be compared with.
OPERATORS: Mapping[str, tuple[str, ...]] = {
    "type": _SAME,
    "importance": _ORDERED,
    "content": (*_SAME, "~"),
    "text": (*_SAME, "~"),
    "error": (*_SAME, "~"),
    "duration_ms": _ORDERED,
    "timestamp": _ORDERED,
    "under": _SAME,
    "metadata": (*_ORDERED, "~"),
}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ABSENT = object()
_PLAIN_PATH = re.compile(r"[A-Za-z_][\w\-]*(\.[\w\-]+)*", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.:+\-/]+")
_WORDS = {True: "true", False: "false", None: "null"}
_MOST_PARTS, _MOST_DIGITS = 20, 9
_MOST_INTEGER = 10**300


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A field, an operator and a value; made by `make_term`, which checks them. `path` is for `metadata` alone."""

    field: str
    operator: str
    value: Any
    path: str = ""

    def matches(self, step: Step, subtrees: Mapping[str, set[str]] | None) -> bool:
        """Tell whether the step answers it; `subtrees` holds, for each root that is asked for, the ids below it."""
        if self.operator == "!=":
            return not self._is_same(step, subtrees)
        if self.operator == "=":
            return self._is_same(step, subtrees)
        if self.operator == "~":
            return any(self.value.casefold() in text.casefold() for text in self._texts(step))
        return self._is_in_order(self._measure(step))

    def __str__(self) -> str:
        name = self.field
        if name == "metadata":
            path = self.path if _PLAIN_PATH.fullmatch(self.path) else json.dumps(self.path, ensure_ascii=False)
            name = f"metadata.{path}"
        return f"{name}{self.operator}{_show_value(self.value, is_free=self.field in _FREE)}"

    def _is_same(self, step: Step, subtrees: Mapping[str, set[str]] | None) -> bool:
        if self.field == "under":
            below = {self.value} if subtrees is None else subtrees[self.value]
            return step.parent_step_id in below
        if self.field == "error":
            return self._is_same_error(step)
        if self.field == "content":
            return bool(_text_of(step.content) == self.value)
        if self.field == "text":
            return any(self.value.casefold() in text.casefold() for text in self._texts(step))
        return _is_equal(self._measure(step), self.value)

    def _is_same_error(self, step: Step) -> bool:
        if isinstance(self.value, bool):
            return step.has_error is self.value
        return self.value in self._texts(step)

    def _is_in_order(self, measured: Any) -> bool:
        wanted = self.value
        if self.field == "importance":
            measured, wanted = measured.rank, wanted.rank
        elif _kind(measured) != _kind(wanted):
            return False
        return bool(_COMPARE[self.operator](measured, wanted))

    def _measure(self, step: Step) -> Any:
        if self.field == "metadata":
            return find_path(step.metadata, self.path)
        return getattr(step, self.field)

    def _texts(self, step: Step) -> Iterator[str]:
        if self.field == "metadata":
            found = find_path(step.metadata, self.path)
            if found is not _ABSENT:
                yield from _list_texts(found)
        elif self.field == "error":
            yield from _list_texts([step.metadata.get(key) or () for key in ("error", "failed")])
        else:
            yield _text_of(step.content)
            if self.field == "text":
                yield from _list_texts(step.metadata)
                yield from _list_texts(() if step.context is None else step.context)


# Fields whose values may be of any kind, so that a text that looks like another kind stands in quotes.
_FREE = frozenset({"metadata", "error"})


def make_term(field: str, operator_: str, value: Any, name: str, path: str = "") -> QueryTerm:
    """Make a comparison.

    Raises:
        ValueError: the value is none that the field can have; the message begins with `name`.
    """
    if field == "metadata":
        return QueryTerm(field, operator_, _check_free(name, operator_, value), check_text("metadata path", path))
    if field == "error" and isinstance(value, bool):
        return QueryTerm(field, operator_, value)
    return QueryTerm(field, operator_, _CHECKS[field](name, value))


def _check_number(name: str, value: Any) -> float:
    milliseconds = check_duration(name, value)
    if milliseconds is None:
        raise ValueError(f"{name} must be a number of milliseconds")
    return milliseconds


def _check_string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, not {value!r}")  # noqa: TRY004 - one kind of refusal
    return value


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "type": lambda name, value: check_word(name, value, StepType),
    "importance": lambda name, value: check_word(name, value, Importance),
    "content": _check_string,
    "text": _check_string,
    "error": _check_string,
    "duration_ms": _check_number,
    "timestamp": check_time,
    "under": check_text,
}


def _check_free(name: str, operator_: str, value: Any) -> Any:
    if operator_ == "~":
        return _check_string(name, value)
    is_finite = not isinstance(value, (int, float)) or abs(value) < _MOST_INTEGER
    if (value is None or isinstance(value, (str, bool, int, float))) and is_finite:
        return value
    raise ValueError(f"{name} can be compared with text, a number up to 1e300, true, false or null, not {value!r}")


def find_path(metadata: Any, path: str) -> Any:
    """Find what is at a path of keys joined by dots; keys may have dots themselves, and a number counts in a list."""
    return _find(metadata, path, _MOST_PARTS)


def _find(value: Any, path: str, most: int) -> Any:
    if isinstance(value, Mapping):
        return _find_key(value, path, most)
    head, dot, rest = path.partition(".")
    if not isinstance(value, list) or not head.isdecimal() or len(head) > _MOST_DIGITS or int(head) >= len(value):
        return _ABSENT
    if not dot:
        return value[int(head)]
    return _find(value[int(head)], rest, most - 1) if most else _ABSENT


def _find_key(value: Mapping[Any, Any], path: str, most: int) -> Any:
    if path in value:
        return value[path]
    # The shortest key that is there leads on: one way only, and no search through all of them.
    at = path.find(".")
    while at >= 0 and most:
        if path[:at] in value:
            return _find(value[path[:at]], path[at + 1 :], most - 1)
        at = path.find(".", at + 1)
    return _ABSENT


def _is_equal(measured: Any, wanted: Any) -> bool:
    return _kind(measured) == _kind(wanted) and bool(measured == wanted)


def _kind(value: Any) -> object:
    """Tell numbers from truth values, which Python holds for equal."""
    if isinstance(value, bool) or value is None or value is _ABSENT:
        return type(value)
    if isinstance(value, (int, float)):
        return float
    return str if isinstance(value, str) else type(value)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    plain = json_form(content)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _list_texts(value: Any) -> Iterator[str]:
    """Give all texts in a value, keys too; scalars as JSON writes them."""
    waiting = [value if isinstance(value, str) else json_form(value)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        else:
            yield one if isinstance(one, str) else json.dumps(one)


def _show_value(value: Any, *, is_free: bool) -> str:
    if isinstance(value, (StepType, Importance)):
        return str(value)
    if isinstance(value, bool) or value is None:
        return _WORDS[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if not isinstance(value, str):
        return iso_utc(value)
    return (
        value
        if not is_free and _PLAIN_WORD.fullmatch(value) and value[0].isalpha()
        else json.dumps(value, ensure_ascii=False)
    )
