"""JSON text to values: by the standard library where that can, by a parser without recursion where it nests too deep."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import DecimalException
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from pytest_golden.regression.baselines.json_documents.values import (
    Json,
    make_constant,
    make_int,
    make_number,
    make_object,
)

DEEPEST = 100_000
_DECODER_HOOKS: dict[str, Any] = {
    "object_pairs_hook": make_object,
    "parse_int": make_int,
    "parse_float": make_number,
    "parse_constant": make_constant,
}
_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:(?P<sign>[\[\]{},:])|(?P<text>")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    |(?P<word>true|false|null)|(?P<constant>NaN|-?Infinity)|(?P<end>\Z))""",
    re.VERBOSE,
)
_CLOSING = re.compile(r"[ \t\n\r]*[\]}]")
_WORDS = {"true": True, "false": False, "null": None}


def parse_json(raw: bytes) -> Json:
    """Read a document.

    Raises:
        ValueError: it is none; the message says why and where.
    """
    try:
        text = raw.decode(json.detect_encoding(raw), "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start:,} is no {error.encoding}") from None
    try:
        return _parse(text)
    except JSONDecodeError as error:
        raise ValueError(_describe(error, text)) from None
    except DecimalException:
        raise ValueError("a number in it has an exponent beyond all bounds") from None


def _parse(text: str) -> Json:
    try:
        return json.loads(text, **_DECODER_HOOKS)
    except RecursionError:
        return _DeepParser(text).parse()


def _describe(error: JSONDecodeError, text: str) -> str:
    message = f"line {error.lineno:,} column {error.colno:,}: {error.msg}"
    if error.msg == "Extra data" and error.pos < len(text):
        return f"{message} after the document; JSON Lines are compared with `compare: table`"
    return message


@dataclass(slots=True)
class _Open:
    """A container whose end has not come yet."""

    is_object: bool
    items: list[Any] = field(default_factory=list)
    key: str | None = None

    def add(self, value: Json) -> None:
        self.items.append((self.key, value) if self.is_object else value)
        self.key = None

    def close(self) -> Json:
        return make_object(self.items) if self.is_object else self.items


class _DeepParser:
    """Reads a document with a stack of its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._stack: list[_Open] = []
        self._root: list[Json] = []

    def parse(self) -> Json:
        while not self._root:
            kind, token = self._next()
            if kind == "sign":
                self._take_sign(token)
            elif kind == "end":
                raise self._wrong("Expecting value")
            else:
                self._take(self._read(kind, token))
        if self._next()[0] != "end":
            raise self._wrong("Extra data")
        return self._root[0]

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            raise self._wrong("Expecting value")
        self._place = match.end()
        return str(match.lastgroup), match[str(match.lastgroup)]

    def _read(self, kind: str, token: str) -> Json:
        if kind == "text":
            value, self._place = scanstring(self._text, self._place, True)
            return value
        if kind == "number":
            return make_number(token)
        return _WORDS[token] if kind == "word" else make_constant(token)

    def _take_sign(self, sign: str) -> None:
        if sign in "[{":
            self._begin(sign)
        elif sign in "]}" and self._stack and not self._stack[-1].items and self._stack[-1].key is None:
            self._take(self._close(sign))
        else:
            raise self._wrong("Expecting value")

    def _begin(self, sign: str) -> None:
        if self._stack and self._stack[-1].is_object and self._stack[-1].key is None:
            raise self._wrong("Expecting property name enclosed in double quotes")
        if len(self._stack) == DEEPEST:
            raise self._wrong(f"nested deeper than {DEEPEST:,} levels")
        self._stack.append(_Open(sign == "{"))

    def _close(self, sign: str) -> Json:
        closed = self._stack.pop()
        if closed.is_object != (sign == "}"):
            raise self._wrong("Expecting ',' delimiter")
        return closed.close()

    def _take(self, value: Json) -> None:
        """Put a value where it belongs, and close all that ends behind it."""
        while self._stack:
            top = self._stack[-1]
            if top.is_object and top.key is None:
                self._take_key(top, value)
                return
            top.add(value)
            kind, token = self._next()
            if kind != "sign" or token not in ",]}":
                raise self._wrong("Expecting ',' delimiter")
            if token == ",":
                self._check_comma()
                return
            value = self._close(token)
        self._root.append(value)

    def _check_comma(self) -> None:
        if _CLOSING.match(self._text, self._place):
            raise self._wrong("Illegal trailing comma before the end")

    def _take_key(self, top: _Open, value: Json) -> None:
        if not isinstance(value, str):
            raise self._wrong("Expecting property name enclosed in double quotes")
        if self._next() != ("sign", ":"):
            raise self._wrong("Expecting ':' delimiter")
        top.key = value

    def _wrong(self, message: str) -> JSONDecodeError:
        return JSONDecodeError(message, self._text, self._place)
