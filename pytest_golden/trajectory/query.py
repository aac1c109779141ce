"""One comparison of a field of a step with a value. How comparisons are joined is in `query.py`.

Questions that a step answers with yes or no, put together with `&`, `|` and `~`. Their text form is in `query_text.py`.

Text is found wherever it stands, upper and lower case alike; it is no pattern, so that no question takes long to answer.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_golden.clock import iso_utc
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration
from pytest_golden.values.checking import check_text, check_time, check_word
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

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
    """Return all texts in a value, keys too; scalars as JSON writes them."""
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


#: So many questions may stand inside each other.
MAX_DEPTH = 50

Joint = Literal["and", "or", "not"]


@dataclass(frozen=True, slots=True)
class StepQuery:
    """One question, or several that are joined; make it with `where` or `parse_query`. As text it is what is parsed.

    `parts` are questions joined by `joint`; without any, "and" is answered by every step. A single question is a `term`.

    Raises:
        ValueError: the parts stand deeper than 50 inside each other.
    """

    term: QueryTerm | None = None
    joint: Joint = "and"
    parts: tuple[StepQuery, ...] = ()
    depth: int = 1

    def __post_init__(self) -> None:
        depth = 1 + max((part.depth for part in self.parts), default=0)
        if depth > MAX_DEPTH:
            raise ValueError(f"a query may be nested {MAX_DEPTH} deep at most")
        object.__setattr__(self, "depth", depth)

    def __and__(self, other: StepQuery) -> StepQuery:
        return join("and", (self, other)) if isinstance(other, StepQuery) else NotImplemented

    def __or__(self, other: StepQuery) -> StepQuery:
        return join("or", (self, other)) if isinstance(other, StepQuery) else NotImplemented

    def __invert__(self) -> StepQuery:
        if self.joint == "not":
            return self.parts[0]
        return StepQuery(joint="not", parts=(self,))

    def __str__(self) -> str:
        if self.term is not None:
            return str(self.term)
        if self.joint == "not":
            return f"not {_in_brackets(self.parts[0])}"
        return (" " if self.joint == "and" else " or ").join(map(_in_brackets, self.parts))

    def matches(self, step: Step) -> bool:
        """Tell whether a step is one that is asked for.

        A step by itself tells only its parent: `under` is then answered by the children alone. `select` knows more.
        """
        return _answers(self, step, None)

    def select(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Return the steps that are asked for, one by one, out of steps in their order (parents before children).

        Nothing is held but, with `under`, the ids of the steps of those subtrees.
        """
        return (step for _, step in self.select_placed(steps))

    def select_placed(self, steps: Iterable[Step]) -> Iterator[tuple[int, Step]]:
        """Return what `select` gives, each with its place in the row, counted from 0."""
        subtrees: dict[str, set[str]] = {root: {root} for root in _list_roots(self)}
        for place, step in enumerate(steps):
            for ids in subtrees.values():
                if step.parent_step_id in ids:
                    ids.add(step.id)
            if _answers(self, step, subtrees):
                yield place, step


def where(
    *,
    type: StepType | str | None = None,  # noqa: A002 - the public name
    importance: Importance | str | None = None,
    min_importance: Importance | str | None = None,
    text: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    min_duration_ms: float | None = None,
    max_duration_ms: float | None = None,
    after: datetime | None = None,
    before: datetime | None = None,
    has_error: bool | None = None,
    under: str | None = None,
) -> StepQuery:
    """Ask for steps to which all of this applies; without anything, for all steps. Bounds include their ends.

    `text` stands somewhere in the content, the metadata or the context. `metadata` maps a path, keys joined by dots,
    to the value that must be there. `under` is the id of a step whose children and their children are meant.

    Raises:
        ValueError: a value that is not allowed; the message names the argument and what is.
    """
    bounds = {"min_duration_ms": min_duration_ms, "max_duration_ms": max_duration_ms}
    asked: list[tuple[str, str, str, Any]] = [
        ("type", "type", "=", type),
        ("importance", "importance", "=", importance),
        ("min_importance", "importance", ">=", min_importance),
        ("text", "text", "~", text),
        *((name, "duration_ms", ">=" if name.startswith("min") else "<=", value) for name, value in bounds.items()),
        ("after", "timestamp", ">=", after),
        ("before", "timestamp", "<=", before),
        ("has_error", "error", "=", has_error),
        ("under", "under", "=", under),
    ]
    terms = [make_term(field, operator, value, name) for name, field, operator, value in asked if value is not None]
    if has_error is not None and not isinstance(has_error, bool):
        raise ValueError(f"has_error must be True or False, not {has_error!r}")
    terms += [make_term("metadata", "=", value, "metadata", path) for path, value in (metadata or {}).items()]
    parts = tuple(StepQuery(term) for term in terms)
    return parts[0] if len(parts) == 1 else StepQuery(parts=parts)


def join(joint: Joint, parts: Iterable[StepQuery]) -> StepQuery:
    """Join questions; those that are joined in the same way already become one row."""
    flat: list[StepQuery] = []
    for part in parts:
        flat.extend(part.parts if part.term is None and part.joint == joint else (part,))
    return flat[0] if len(flat) == 1 else StepQuery(joint=joint, parts=tuple(flat))


def _in_brackets(part: StepQuery) -> str:
    is_single = part.term is not None or (part.joint == "not")
    return str(part) if is_single else f"({part})"


def _answers(query: StepQuery, step: Step, subtrees: Mapping[str, set[str]] | None) -> bool:
    if query.term is not None:
        return query.term.matches(step, subtrees)
    if query.joint == "not":
        return not _answers(query.parts[0], step, subtrees)
    is_enough = query.joint == "or"
    for part in query.parts:
        if _answers(part, step, subtrees) is is_enough:
            return is_enough
    return not is_enough


def _list_roots(query: StepQuery) -> set[str]:
    if query.term is not None:
        return {query.term.value} if query.term.field == "under" else set()
    return {root for part in query.parts for root in _list_roots(part)}
