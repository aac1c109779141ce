"""Ask for steps of a trajectory: queries as objects, made with `where`, and as text, parsed with `parse_query`."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_golden.clock import iso_utc
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration
from pytest_golden.values.checking import check_any_text, check_text, check_time, check_word, parse_time
from pytest_golden.values.json_form import json_form, list_scalars, readable_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_golden.trajectory.step import Step

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ABSENT = object()
_PLAIN_PATH = re.compile(r"[A-Za-z_][\w\-]*(\.[\w\-]+)*", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.:+\-/]+")
_MOST_PARTS, _MOST_DIGITS = 20, 9
_MOST_INTEGER = 10**300


class QueryTerm(NamedTuple):
    """A field, an operator and a value; made by `make_term`, which checks them. `path` is for `metadata` alone."""

    field: str
    operator: str
    value: Any
    path: str = ""

    def matches(self, step: Step, subtrees: Mapping[str, set[str]] | None) -> bool:
        """Tell whether the step matches; `subtrees` holds the ids below each root that the query names."""
        if self.operator == "!=":
            return not self._is_same(step, subtrees)
        if self.operator == "=":
            return self._is_same(step, subtrees)
        if self.operator == "~":
            return self._is_within(step)
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
            return step.has_error is self.value if isinstance(self.value, bool) else self.value in self._texts(step)
        if self.field == "content":
            return bool(readable_text(step.content) == self.value)
        if self.field == "text":
            return self._is_within(step)
        measured = self._measure(step)
        return _kind(measured) == _kind(self.value) and bool(measured == self.value)

    def _is_within(self, step: Step) -> bool:
        return any(self.value.casefold() in text.casefold() for text in self._texts(step))

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
            yield readable_text(step.content)
            if self.field == "text":
                yield from _list_texts(step.metadata)
                yield from _list_texts(() if step.context is None else step.context)


# Values of these fields may be of any kind, so text that looks like another kind is written in quotes.
_FREE = frozenset({"metadata", "error"})


def make_term(field: str, operator_: str, value: Any, name: str, path: str = "") -> QueryTerm:
    """Make a comparison.

    Raises:
        ValueError: the field cannot have this value; the message begins with `name`.
    """
    if field == "metadata":
        return QueryTerm(field, operator_, _check_free(name, operator_, value), check_text("metadata path", path))
    if field == "error" and isinstance(value, bool):
        return QueryTerm(field, operator_, value)
    return QueryTerm(field, operator_, _FIELDS[field].check(name, value))


class _Field(NamedTuple):
    """What a field may be compared by, what it may be compared with, and the check of that."""

    operators: tuple[str, ...]
    wanted: str
    check: Callable[[str, Any], Any]


_SAME = ("=", "!=")
_ORDERED = (*_SAME, "<", "<=", ">", ">=")
_TEXT = "text, in quotes where it has blanks"
_FIELDS: Mapping[str, _Field] = {
    "type": _Field(_SAME, "a type of steps", lambda name, value: check_word(name, value, StepType)),
    "importance": _Field(_ORDERED, "an importance", lambda name, value: check_word(name, value, Importance)),
    "content": _Field((*_SAME, "~"), _TEXT, check_any_text),
    "text": _Field((*_SAME, "~"), _TEXT, check_any_text),
    "error": _Field((*_SAME, "~"), f"true, false, or {_TEXT}", check_any_text),
    "duration_ms": _Field(_ORDERED, "a number of milliseconds", check_duration),
    "timestamp": _Field(_ORDERED, "a time such as 2026-01-31T12:00:00Z", check_time),
    "under": _Field(_SAME, "the id of a step", check_text),
    "metadata": _Field(
        (*_ORDERED, "~"), "text, a number, true, false or null; text in quotes where it has blanks", check_any_text
    ),
}
_NAMES = f"{', '.join(_FIELDS)}.PATH"


def _check_free(name: str, operator_: str, value: Any) -> Any:
    if operator_ == "~":
        return check_any_text(name, value)
    is_finite = not isinstance(value, (int, float)) or abs(value) < _MOST_INTEGER
    if (value is None or isinstance(value, (str, bool, int, float))) and is_finite:
        return value
    raise ValueError(f"{name} can be compared with text, a number up to 1e300, true, false or null, not {value!r}")


def find_path(value: Any, path: str, most: int = _MOST_PARTS) -> Any:
    """Find the value at a path of keys joined by dots; keys may contain dots, and a number is the index of a list."""
    if isinstance(value, Mapping):
        return _find_key(value, path, most)
    head, dot, rest = path.partition(".")
    if not isinstance(value, list) or not head.isdecimal() or len(head) > _MOST_DIGITS or int(head) >= len(value):
        return _ABSENT
    if not dot:
        return value[int(head)]
    return find_path(value[int(head)], rest, most - 1) if most else _ABSENT


def _find_key(value: Mapping[Any, Any], path: str, most: int) -> Any:
    if path in value:
        return value[path]
    # The shortest key that exists is followed, and no other: this never searches all combinations.
    at = path.find(".")
    while at >= 0 and most:
        if path[:at] in value:
            return find_path(value[path[:at]], path[at + 1 :], most - 1)
        at = path.find(".", at + 1)
    return _ABSENT


def _kind(value: Any) -> object:
    """Return the kind of a value; numbers and booleans, which Python compares as equal, differ."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float
    return str if isinstance(value, str) else type(value)


def _list_texts(value: Any) -> Iterator[str]:
    """Return all texts in a value, keys too; scalars as JSON writes them."""
    for one in list_scalars(value if isinstance(value, str) else json_form(value)):
        yield one if isinstance(one, str) else json.dumps(one)


def _show_value(value: Any, *, is_free: bool) -> str:
    if isinstance(value, (StepType, Importance)):
        return str(value)
    if isinstance(value, datetime):
        return iso_utc(value)
    is_bare = isinstance(value, str) and not is_free and _PLAIN_WORD.fullmatch(value) and value[0].isalpha()
    return value if is_bare else json.dumps(value, ensure_ascii=False)


#: The deepest nesting of conditions.
MAX_DEPTH = 50
Joint = Literal["and", "or", "not"]


@dataclass(frozen=True, slots=True)
class StepQuery:
    """One condition, or several that are joined; make it with `where` or `parse_query`. `str` gives text that parses to the same query.

    `parts` are joined by `joint`; without any, "and" matches every step. A single condition is a `term`.

    Raises:
        ValueError: the parts are nested deeper than 50.
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
        """Tell whether a step matches.

        A single step names only its parent, so here `under` matches children alone; `select` matches the whole subtree.
        """
        return _answers(self, step, None)

    def select(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps that match, from steps in their order (parents before children).

        Memory holds nothing but, with `under`, the ids of the steps of those subtrees.
        """
        return (step for _, step in self.select_placed(steps))

    def select_placed(self, steps: Iterable[Step]) -> Iterator[tuple[int, Step]]:
        """Yield the steps of `select`, each with its index, counted from 0."""
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
    """Return the query for steps that meet all conditions; without any, for all steps. Bounds include their ends.

    `text` occurs in the content, the metadata or the context. `metadata` maps a path, keys joined by dots, to the value
    that must be there. `under` is the id of a step; all steps below it match.

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
    """Join queries; parts that are joined in the same way are flattened."""
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


MAX_TEXT = 10_000
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<bracket>[()])
    |(?P<operator>!=|<=|>=|[=<>~])
    |(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<path>metadata\."(?:[^"\\]|\\.)*")
    |(?P<word>[^\s()=!<>~"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ALL_OPERATORS = "= != < <= > >= ~"
_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,4})?", re.ASCII)
_READ_WORDS = {"true": True, "false": False, "null": None}


class _Token(NamedTuple):
    """A piece of the text, what it is, and the column where it begins."""

    kind: str
    text: str
    column: int


def parse_query(text: str) -> StepQuery:
    """Parse a query; blank text matches all steps.

    Raises:
        ValueError: it cannot be read; the message names the column, counted from 1, and what is allowed there.
    """
    check_any_text("a query", text)
    if len(text) > MAX_TEXT:
        raise ValueError(f"column {MAX_TEXT + 1}: a query may have {MAX_TEXT} characters at most")
    return _Parser(text).parse()


def _split(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None and text[at] in "\"'":
            raise ValueError(f"column {at + 1}: this quote is not closed")
        if found is None:
            raise ValueError(f"column {at + 1}: {text[at]!r} is not an operator; operators are {_ALL_OPERATORS}")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found[0], at + 1)
        at = found.end()
    yield _Token("end", "", len(text) + 1)


class _Parser:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_split(text))
        self._at = 0
        self._depth = 0

    def parse(self) -> StepQuery:
        if self._next.kind == "end":
            return StepQuery()
        query = self._read_any()
        if self._next.kind != "end":
            raise ValueError(f"column {self._next.column}: this ) has no matching (")
        return query

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, kind: str, text: str) -> bool:
        return self._next.kind == kind and self._next.text.lower() == text

    def _read_any(self) -> StepQuery:
        parts = [self._read_all()]
        while self._is("word", "or"):
            self._take()
            parts.append(self._read_all())
        return join("or", parts)

    def _read_all(self) -> StepQuery:
        parts = [self._read_one()]
        while True:
            if self._is("word", "and"):
                self._take()
            elif self._next.kind == "end" or self._is("word", "or") or self._is("bracket", ")"):
                return join("and", parts)
            parts.append(self._read_one())

    def _read_one(self) -> StepQuery:
        if not self._is("word", "not") and not self._is("bracket", "("):
            return self._read_term()
        opened = self._take()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"column {opened.column}: a query may be nested {MAX_DEPTH} deep at most")
        query = self._read_inside(opened) if opened.text == "(" else ~self._read_one()
        self._depth -= 1
        return query

    def _read_inside(self, opened: _Token) -> StepQuery:
        query = StepQuery() if self._is("bracket", ")") else self._read_any()
        if not self._is("bracket", ")"):
            raise ValueError(f"column {opened.column}: this ( is not closed")
        self._take()
        return query

    def _read_term(self) -> StepQuery:
        named = self._take()
        field, path = self._read_field(named)
        allowed = " ".join(_FIELDS[field].operators)
        compared = self._take()
        if compared.kind != "operator" or compared.text not in _FIELDS[field].operators:
            raise ValueError(f"column {compared.column}: after {field} comes one of {allowed}, not {_show(compared)}")
        given = self._take()
        if given.kind not in {"word", "quoted"}:
            raise ValueError(
                f"column {given.column}: after {compared.text} comes {_FIELDS[field].wanted}, not {_show(given)}"
            )
        try:
            value = _read_value(field, compared.text, given)
            return StepQuery(make_term(field, compared.text, value, field, path))
        except ValueError as error:
            raise ValueError(f"column {given.column}: {error}") from None

    def _read_field(self, token: _Token) -> tuple[str, str]:
        if token.kind == "path":
            path = _unquote(token.text.removeprefix("metadata."))
        else:
            field, _, path = token.text.partition(".")
            if token.kind != "word" or field not in _FIELDS or (field == "metadata") is not bool(path):
                raise ValueError(f"column {token.column}: a field comes here, one of {_NAMES}, not {_show(token)}")
            if field != "metadata":
                return field, ""
        if not path.strip():
            raise ValueError(f"column {token.column}: the path after metadata. is blank")
        return "metadata", path


def _read_value(field: str, operator: str, token: _Token) -> Any:
    is_quoted = token.kind == "quoted"
    text = _unquote(token.text) if is_quoted else token.text
    if field == "timestamp":
        return parse_time(field, text)
    if field == "duration_ms":
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"duration_ms is compared with a number of milliseconds, not {text!r}")
        return _read_number(text)
    if field == "error" and not is_quoted and operator != "~" and text in {"true", "false"}:
        return text == "true"
    if field != "metadata" or is_quoted or operator == "~":
        return text
    return _READ_WORDS[text] if text in _READ_WORDS else _read_number(text) if _NUMBER.fullmatch(text) else text


def _read_number(text: str) -> int | float | str:
    if text.lstrip("+-").isdecimal():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else text


def _unquote(text: str) -> str:
    if text[0] == '"':
        try:
            return str(json.loads(text, strict=False))
        except ValueError:  # a backslash before a character that JSON does not escape
            pass
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _show(token: _Token) -> str:
    if token.kind == "end":
        return "the end"
    return repr(token.text if len(token.text) <= 40 else f"{token.text[:37]}...")
