"""Reads a JSON document and makes it ready to be compared: ignored parts are taken out, and texts are masked, in place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import DecimalException
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.documents.document_values import (
    Json,
    Repeated,
    Thinned,
    make_constant,
    make_int,
    make_number,
    make_object,
)
from pytest_golden.manifest.units import JsonStep, JsonStepKind, parse_json_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.compare.text_patterns import PatternProcess

    Progress = tuple[tuple[tuple[JsonStep, ...], int], ...]


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
_BATCH_CHARACTERS = 256 << 10


def parse_json(raw: bytes) -> Json:
    """Read a document, nested up to 100,000 levels deep.

    The standard library reads it where it can, and a parser without recursion where it nests too deep.

    Raises:
        ValueError: it is not JSON; the message says why and where.
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
class _OpenContainer:
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
        self._stack: list[_OpenContainer] = []
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
        self._stack.append(_OpenContainer(sign == "{"))

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

    def _take_key(self, top: _OpenContainer, value: Json) -> None:
        if not isinstance(value, str):
            raise self._wrong("Expecting property name enclosed in double quotes")
        if self._next() != ("sign", ":"):
            raise self._wrong("Expecting ':' delimiter")
        top.key = value

    def _wrong(self, message: str) -> JSONDecodeError:
        return JSONDecodeError(message, self._text, self._place)


def take_out(document: Json, paths: Iterable[str]) -> Json:
    """Take out what the paths name; an item's position in its array stays known."""
    start = tuple((parse_json_path(path), 0) for path in paths)
    if not start:
        return document
    root = [document]
    todo: list[tuple[Json, Json, Progress]] = [(root, 0, start)]
    while todo:
        holder, place, progress = todo.pop()
        value = holder[place]
        if isinstance(value, dict):
            todo.extend(_thin_object(value, progress))
        elif isinstance(value, Repeated):
            todo.extend((value, index, progress) for index in range(len(value)))
        elif isinstance(value, list):
            holder[place], further = _thin_array(value, progress)
            todo.extend(further)
    return root[0]


def mask_document(document: Json, patterns: PatternProcess) -> Json:
    """Mask all texts of a document but the keys of its objects.

    Raises:
        PatternTimedOutError: a pattern backtracks without end.
    """
    root = [document]
    places: list[tuple[Json, Json]] = []
    letters = 0
    for holder, place in _find_texts(root):
        places.append((holder, place))
        letters += len(holder[place])
        if letters > _BATCH_CHARACTERS:
            _mask_places(places, patterns)
            places, letters = [], 0
    _mask_places(places, patterns)
    return root[0]


def _thin_object(value: dict[str, Json], progress: Progress) -> Iterator[tuple[Json, Json, Progress]]:
    for key in tuple(value):
        further = _advance(progress, key, None)
        if further is None:
            del value[key]
        elif further:
            yield value, key, further


def _thin_array(value: list[Json], progress: Progress) -> tuple[Json, list[tuple[Json, Json, Progress]]]:
    kept, positions, ways = [], [], []
    for position, item in enumerate(value):
        further = _advance(progress, None, position)
        if further is not None:
            kept.append(item)
            positions.append(position)
            ways.append(further)
    thinned = value if len(kept) == len(value) else Thinned(kept, positions)
    return thinned, [(thinned, index, further) for index, further in enumerate(ways) if further]


def _advance(progress: Progress, key: str | None, position: int | None) -> Progress | None:
    """Return how far the paths have come at a member or item; None when one of them names it."""
    further = []
    for steps, behind in progress:
        step = steps[behind]
        if step.kind is JsonStepKind.ANYWHERE:
            further.append((steps, behind))
        if _fits(step, key, position):
            if behind + 1 == len(steps):
                return None
            further.append((steps, behind + 1))
    return tuple(further)


def _fits(step: JsonStep, key: str | None, position: int | None) -> bool:
    if step.kind is JsonStepKind.EVERY:
        return True
    if step.kind is JsonStepKind.INDEX:
        return position == step.position
    return key == step.name


def _find_texts(root: list[Json]) -> Iterator[tuple[Json, Json]]:
    todo: list[Json] = [root]
    while todo:
        holder = todo.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place, value in pairs:
            if isinstance(value, str):
                yield holder, place
            elif isinstance(value, dict | list):
                todo.append(value)


def _mask_places(places: Sequence[tuple[Json, Json]], patterns: PatternProcess) -> None:
    masked = patterns.mask_texts([holder[place] for holder, place in places])
    for (holder, place), text in zip(places, masked, strict=True):
        holder[place] = text
