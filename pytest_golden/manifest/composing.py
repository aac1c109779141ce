"""YAML text to plain values with the place of each, and without what a manifest must not use.

Composed from the parser's events, one after another: PyYAML's own composer takes five times as long, and has no limit
for the nesting, no check for doubled keys and no budget for aliases. The meaning of the values is not read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_golden.manifest.kinds import UNREADABLE, Step
from pytest_golden.manifest.units import Unquoted, read_unquoted, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 50
_COLUMN_BITS = 24
# Values that aliases repeat. A manifest of 10,000 projects that all merge one block stays far below.
_MOST_REPEATED = 500_000
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Stands as the key of a mapping for the plain word <<.
_MERGE = object()
_TOO_DEEP = f"nested more than {_DEEPEST} levels deep; a manifest needs no more than six"
_HINTS = {
    # libyaml has a limit of its own since 0.2.6, and looks ahead.
    "maximum nesting depth": _TOO_DEEP,
    "mapping values are not allowed": 'quote a text that contains ": "',
    "cannot start any token": "indent with blanks, not tabs, and quote a text that begins with %, @ or `",
    "while parsing a flow": "close the open bracket or brace, and put commas between its items",
    "did not find expected key": "check the indentation and the quotes above",
    "expected <block end>": "check the indentation and the quotes above",
    "while scanning an a": "quote a text that begins with * or &",
    "while scanning a simple key": "a colon and a blank are missing, or a quote is",
}


class Spot(NamedTuple):
    """A line and a column, counted from 1."""

    line: int
    column: int


class Mistake(NamedTuple):
    """Something wrong, and where."""

    spot: Spot
    message: str


class UnusableTextError(ValueError):
    """The text cannot be used; `mistakes` are all that were found."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("; ".join(mistake.message for mistake in self.mistakes))


@dataclass(frozen=True, slots=True)
class _Branch:
    """The place of a list or mapping, of its keys and of its parts. A value without parts has only an offset.

    Offsets are line and column packed into one integer: the garbage collector does not walk those, which halves the
    time for thousands of projects.
    """

    offset: int
    keys: dict[str, int]
    parts: Any


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document as plain values: dict, list, str, `Unquoted` and `UNREADABLE`. An empty one has the value None."""

    value: Any
    mistakes: tuple[Mistake, ...]
    _root: _Branch | int

    def find_spot(self, path: Sequence[Step], *, at_key: bool = False) -> Spot:
        """Return where the value at `path` begins, or its key; of what is not there, where the nearest whole begins."""
        place: Any = self._root
        for depth, step in enumerate(path, start=1):
            if not isinstance(place, _Branch):
                break
            if at_key and depth == len(path) and step in place.keys:
                return _spot(place.keys[step])
            try:
                place = place.parts[step]
            except (KeyError, IndexError):
                break
        return _spot(_offset_of(place))


def compose(text: str, *, parser: Any = _PARSER) -> Document:
    """Read a YAML text of one document with one of PyYAML's safe loaders, by default the fast one where it was built.

    Raises:
        UnusableTextError: no YAML, a forbidden character, too deep, or too much repeated by aliases.
    """
    found = _UNPRINTABLE.search(text)
    if found is not None:
        message = f"the character U+{ord(found[0]):04X} is not allowed in YAML; remove it, or write it as an escape in double quotes"
        raise UnusableTextError([Mistake(spot_of_offset(text, found.start()), message)])
    composer = _Composer(yaml.parse(text, Loader=parser))
    try:
        root = composer.compose()
    except yaml.YAMLError as error:
        composer.refuse(_place_broken(error, text), _say_broken(error))
        raise UnusableTextError(composer.mistakes) from None
    return Document(root.value, tuple(composer.mistakes), root.place)


def spot_of_offset(text: str, offset: int) -> Spot:
    """Return line and column of the character at an offset."""
    return Spot(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _pack(mark: Any) -> int:
    return int(mark.line << _COLUMN_BITS | mark.column)


def _spot(offset: int) -> Spot:
    return Spot((offset >> _COLUMN_BITS) + 1, (offset & (1 << _COLUMN_BITS) - 1) + 1)


def _offset_of(place: _Branch | int) -> int:
    return place.offset if isinstance(place, _Branch) else place


def _place_broken(error: yaml.YAMLError, text: str) -> int:
    marks = [getattr(error, "problem_mark", None), getattr(error, "context_mark", None)]
    offsets = [_pack(mark) for mark in marks if mark is not None]
    if offsets and _spot(offsets[0]) >= spot_of_offset(text, len(text.rstrip())):
        # What was never closed is found where it begins.
        offsets.reverse()
    return offsets[0] if offsets else 0


def _say_broken(error: yaml.YAMLError) -> str:
    parts = (getattr(error, "context", None), getattr(error, "problem", None))
    problem = " ".join(part for part in parts if part) or " ".join(str(error).split())
    hint = next((advice for sign, advice in _HINTS.items() if sign in problem), "check the quotes and the indentation")
    return f"this is not YAML: {problem}; {hint}"


class _Found(NamedTuple):
    """A value, its place, and how many values it holds: those that an alias repeats count each time."""

    value: Any
    place: Any
    size: int = 1


class _Composer:
    """Builds the values and places of one text from its events. It calls itself for each list and mapping."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.mistakes: list[Mistake] = []
        self._events = events
        self._anchors: dict[str, _Found] = {}
        self._repeated = 0

    def compose(self) -> _Found:
        """Take all events of the first document."""
        root, is_begun = _Found(None, 0), False
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                root = self._read(event, 0)
            elif isinstance(event, yaml.DocumentStartEvent):
                if is_begun:
                    message = "a second document begins here; a manifest is one document, remove the line ---"
                    self.refuse(_pack(event.start_mark), message)
                    break
                is_begun = True
        return root

    def refuse(self, offset: int, message: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(_spot(offset), message))

    def _give_up(self, offset: int, message: str) -> None:
        self.refuse(offset, message)
        raise UnusableTextError(self.mistakes)

    def _read(self, event: Any, depth: int) -> _Found:
        kind, offset = type(event), _pack(event.start_mark)
        if kind is yaml.AliasEvent:
            return self._read_alias(event.anchor, offset)
        if kind is not yaml.ScalarEvent and depth >= _DEEPEST:
            self._give_up(offset, _TOO_DEEP)
        if event.tag is not None:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")[:40]
            self.refuse(offset, f"YAML tags such as {shown} are not allowed here; remove it, or quote the text")
        if kind is yaml.ScalarEvent:
            found = _Found(event.value if event.style else read_unquoted(event.value), offset)
        else:
            read = self._read_list if kind is yaml.SequenceStartEvent else self._read_mapping
            found = read(offset, depth + 1)
        if event.tag is not None:
            found = found._replace(value=UNREADABLE)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _read_alias(self, anchor: str, offset: int) -> _Found:
        found = self._anchors.get(anchor)
        if found is None:
            shown = anchor[:40]
            message = f"the alias *{shown} has no anchor that ends before it; quote the text, or write &{shown} above"
            self.refuse(offset, message)
            found = _Found(UNREADABLE, offset)
        self._repeated += found.size
        if self._repeated > _MOST_REPEATED:
            self._give_up(offset, f"the aliases up to here repeat more than {_MOST_REPEATED} values; write them out")
        return found

    def _read_list(self, offset: int, depth: int) -> _Found:
        items: list[Any] = []
        places: list[Any] = []
        size = 1
        while type(event := next(self._events)) is not yaml.SequenceEndEvent:
            value, place, count = self._read(event, depth)
            items.append(value)
            places.append(place)
            size += count
        return _Found(items, _Branch(offset, {}, places), size)

    def _read_mapping(self, offset: int, depth: int) -> _Found:
        mapping: dict[str, Any] = {}
        branch = _Branch(offset, {}, {})
        merged: list[tuple[dict[str, Any], _Branch]] = []
        size = 1
        while type(event := next(self._events)) is not yaml.MappingEndEvent:
            name = self._read(event, depth)
            is_merge = name.value == "<<" and type(event) is yaml.ScalarEvent and not event.style
            key = None if is_merge else self._read_key(name.value, _pack(event.start_mark), branch.keys)
            value, place, count = self._read(next(self._events), depth)
            size += name.size + count
            if is_merge:
                merged += self._list_merged(value, place)
            elif key is not None:
                mapping[key], branch.parts[key] = value, place
        for more, its_place in merged:
            for key in [key for key in more if key not in mapping]:
                mapping[key], branch.parts[key] = more[key], its_place.parts[key]
                branch.keys.setdefault(key, its_place.keys[key])
        return _Found(mapping, branch, size)

    def _read_key(self, value: Any, offset: int, known: dict[str, int]) -> str | None:
        """Return the key's text, None for one that cannot be used."""
        key = value.text if isinstance(value, Unquoted) else value
        if not isinstance(key, str):
            if key is not UNREADABLE:
                self.refuse(offset, f"a key must be a text, not {show(value)}; quote what is in braces or brackets")
            return None
        if key in known:
            line = _spot(known[key]).line
            message = f"the key {show(key)} is a duplicate of the one in line {line}; remove one of the two"
            self.refuse(offset, message)
            return None
        known[key] = offset
        return key

    def _list_merged(self, value: Any, place: Any) -> Iterable[tuple[dict[str, Any], _Branch]]:
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return zip(value, place.parts, strict=True)
        if isinstance(value, dict):
            return [(value, place)]
        if value is not UNREADABLE:
            message = "<< merges a mapping or a list of mappings; give it an alias such as *common"
            self.refuse(_offset_of(place), message)
        return ()
