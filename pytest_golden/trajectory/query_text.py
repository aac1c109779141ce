"""Questions as text: `type=tool_call importance>=high error~"timeout"`. Reads them; `str` of a query writes them.

query  = all { "or" all }
all    = one { ["and"] one }     neighbours mean and
one    = "not" one | "(" [query] ")" | field operator value
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.query import MAX_DEPTH, OPERATORS, StepQuery, join, make_term
from pytest_golden.values.checking import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_FIELDS = ", ".join([*(name for name in OPERATORS if name != "metadata"), "metadata.PATH"])
_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,4})?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}


class _Token(NamedTuple):
    """A piece of the text, what it is, and the column where it begins."""

    kind: str
    text: str
    column: int


def parse_query(text: str) -> StepQuery:
    """Read a query; blank text asks for all steps.

    Raises:
        ValueError: it cannot be read; the message tells the column, counted from 1, and what is allowed there.
    """
    if not isinstance(text, str):
        raise ValueError(f"a query must be text, not {text!r}")  # noqa: TRY004 - one kind of refusal
    if len(text) > MAX_TEXT:
        raise ValueError(f"column {MAX_TEXT + 1}: a query may have {MAX_TEXT} characters at most")
    return _Parser(text).parse()


def _split(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            _refuse_sign(text, at)
        elif found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found[0], at + 1)
        at = found.end() if found else len(text)
    yield _Token("end", "", len(text) + 1)


def _refuse_sign(text: str, at: int) -> None:
    if text[at] in "\"'":
        raise ValueError(f"column {at + 1}: the quote that begins here has no end")
    raise ValueError(f"column {at + 1}: {text[at]!r} alone means nothing; operators are {_ALL_OPERATORS}")


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
            raise ValueError(f"column {self._next.column}: this ) closes nothing")
        return query

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is_word(self, word: str) -> bool:
        return self._next.kind == "word" and self._next.text.lower() == word

    def _is_bracket(self, sign: str) -> bool:
        return self._next.kind == "bracket" and self._next.text == sign

    def _read_any(self) -> StepQuery:
        parts = [self._read_all()]
        while self._is_word("or"):
            self._take()
            parts.append(self._read_all())
        return join("or", parts)

    def _read_all(self) -> StepQuery:
        parts = [self._read_one()]
        while True:
            if self._is_word("and"):
                self._take()
            elif self._next.kind == "end" or self._is_word("or") or self._is_bracket(")"):
                return join("and", parts)
            parts.append(self._read_one())

    def _read_one(self) -> StepQuery:
        if not self._is_word("not") and not self._is_bracket("("):
            return self._read_term()
        opened = self._take()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"column {opened.column}: a query may be nested {MAX_DEPTH} deep at most")
        query = self._read_inside(opened) if opened.text == "(" else ~self._read_one()
        self._depth -= 1
        return query

    def _read_inside(self, opened: _Token) -> StepQuery:
        query = StepQuery() if self._is_bracket(")") else self._read_any()
        if not self._is_bracket(")"):
            raise ValueError(f"column {opened.column}: the ( that begins here has no )")
        self._take()
        return query

    def _read_term(self) -> StepQuery:
        named = self._take()
        field, path = self._read_field(named)
        allowed = " ".join(OPERATORS[field])
        compared = self._take()
        if compared.kind != "operator" or compared.text not in OPERATORS[field]:
            raise ValueError(f"column {compared.column}: after {field} comes one of {allowed}, not {_show(compared)}")
        given = self._take()
        if given.kind not in {"word", "quoted"}:
            raise ValueError(f"column {given.column}: after {compared.text} comes {_VALUES[field]}, not {_show(given)}")
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
            if token.kind != "word" or field not in OPERATORS or (field == "metadata") is not bool(path):
                raise ValueError(f"column {token.column}: a field comes here, one of {_FIELDS}, not {_show(token)}")
            if field != "metadata":
                return field, ""
        if not path.strip():
            raise ValueError(f"column {token.column}: the path after metadata. is blank")
        return "metadata", path


_VALUES = {
    "type": "a type of steps",
    "importance": "an importance",
    "content": "text, in quotes where it has blanks",
    "text": "text, in quotes where it has blanks",
    "error": "true, false, or text, in quotes where it has blanks",
    "duration_ms": "a number of milliseconds",
    "timestamp": "a time such as 2026-01-31T12:00:00Z",
    "under": "the id of a step",
    "metadata": "text, a number, true, false or null; text in quotes where it has blanks",
}


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
    return _WORDS[text] if text in _WORDS else _read_number(text) if _NUMBER.fullmatch(text) else text


def _read_number(text: str) -> int | float | str:
    if text.lstrip("+-").isdecimal():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else text


def _unquote(text: str) -> str:
    if text[0] == '"':
        try:
            return str(json.loads(text, strict=False))
        except ValueError:  # a backslash before something that JSON does not know
            pass
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _show(token: _Token) -> str:
    if token.kind == "end":
        return "the end"
    return repr(token.text if len(token.text) <= 40 else f"{token.text[:37]}...")
