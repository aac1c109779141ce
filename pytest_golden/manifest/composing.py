"""YAML text to plain values with the place of each, and without what a manifest must not use.

Composed from the parser's events, one after another: PyYAML's own composer takes five times as long, recurses with the
nesting, and has neither a check for doubled keys nor a budget for aliases. The meaning of the values is not read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_golden.manifest.kinds import UNREADABLE, Step
from pytest_golden.manifest.units import Unquoted, read_unquoted, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    "mapping values are not allowed": 'quote a text that holds ": "',
    "cannot start any token": "indent with blanks, not tabs, and quote a text that begins with %, @ or `",
    "while parsing a flow": "close the bracket or brace that is open, and put commas between what stands in it",
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
    composer = _Composer()
    try:
        composer.take(yaml.parse(text, Loader=parser))
    except yaml.YAMLError as error:
        composer.refuse(_place_broken(error, text), _say_broken(error))
        raise UnusableTextError(composer.mistakes) from None
    return Document(composer.value, tuple(composer.mistakes), composer.root)


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


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is still open. `key` waits for its value; `size` counts values, repeated ones each time."""

    value: Any
    branch: _Branch
    anchor: str | None
    readable: bool
    is_list: bool
    key: Any = None
    has_key: bool = False
    merged: list[tuple[Any, Any]] = field(default_factory=list)
    size: int = 1


class _Composer:
    """Takes the events of one text and builds its value and places."""

    def __init__(self) -> None:
        self.value: Any = None
        self.root: _Branch | int = 0
        self.mistakes: list[Mistake] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, Any, int]] = {}
        self._documents = 0
        self._repeated = 0
        self._takers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._take_scalar,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._take_alias,
        }

    def take(self, events: Iterator[Any]) -> None:
        """Take all events of the first document."""
        for event in events:
            taker = self._takers.get(type(event))
            if taker is not None:
                taker(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    self.refuse(
                        _pack(event.start_mark),
                        "a second document begins here; a manifest is one document, remove the line ---",
                    )
                    return

    def refuse(self, offset: int, message: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(_spot(offset), message))

    def _give_up(self, offset: int, message: str) -> None:
        self.refuse(offset, message)
        raise UnusableTextError(self.mistakes)

    def _take_scalar(self, event: Any) -> None:
        value: Any = event.value
        offset = _pack(event.start_mark)
        is_merge = False
        if event.tag is not None:
            self._refuse_tag(event)
            value = UNREADABLE
        elif event.style is None or not event.style:
            value = read_unquoted(value)
            is_merge = value == "<<"
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, offset, 1)
        self._add(value, offset, 1, is_merge=is_merge)

    def _refuse_tag(self, event: Any) -> None:
        shown = event.tag.replace("tag:yaml.org,2002:", "!!")[:40]
        self.refuse(
            _pack(event.start_mark), f"YAML tags such as {shown} are not allowed here; remove it, or quote the text"
        )

    def _open(self, event: Any) -> None:
        if len(self._frames) >= _DEEPEST:
            self._give_up(_pack(event.start_mark), _TOO_DEEP)
        if event.tag is not None:
            self._refuse_tag(event)
        is_list = type(event) is yaml.SequenceStartEvent
        branch = _Branch(_pack(event.start_mark), {}, [] if is_list else {})
        self._frames.append(_Frame([] if is_list else {}, branch, event.anchor, event.tag is None, is_list))

    def _close(self, _event: Any) -> None:
        frame = self._frames.pop()
        for value, place in frame.merged:
            self._merge(frame, value, place)
        value = frame.value if frame.readable else UNREADABLE
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (value, frame.branch, frame.size)
        self._add(value, frame.branch, frame.size)

    def _take_alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor)
        if known is None:
            shown = event.anchor[:40]
            message = f"the alias *{shown} has no anchor that ends before it; quote the text, or write &{shown} above"
            self.refuse(_pack(event.start_mark), message)
            known = (UNREADABLE, _pack(event.start_mark), 1)
        value, place, size = known
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            message = f"the aliases up to here repeat more than {_MOST_REPEATED} values; write them out"
            self._give_up(_pack(event.start_mark), message)
        self._add(value, place, size, key_offset=_pack(event.start_mark))

    def _add(self, value: Any, place: Any, size: int, *, key_offset: int | None = None, is_merge: bool = False) -> None:
        if not self._frames:
            self.value, self.root = value, place
            return
        frame = self._frames[-1]
        frame.size += size
        if frame.is_list:
            frame.value.append(value)
            frame.branch.parts.append(place)
        elif frame.has_key:
            self._add_value(frame, value, place)
        else:
            frame.has_key = True
            offset = _offset_of(place) if key_offset is None else key_offset
            frame.key = _MERGE if is_merge else self._read_key(frame, value, offset)

    def _read_key(self, frame: _Frame, value: Any, offset: int) -> str | None:
        """Return the key's text, None for one that cannot be used."""
        key = value.text if isinstance(value, Unquoted) else value
        if not isinstance(key, str):
            if key is not UNREADABLE:
                self.refuse(offset, f"a key must be a text, not {show(value)}; quote what stands in braces or brackets")
            return None
        if key in frame.branch.keys:
            line = _spot(frame.branch.keys[key]).line
            self.refuse(
                offset, f"the key {show(key)} is doubled, it stands in line {line} already; remove one of the two"
            )
            return None
        frame.branch.keys[key] = offset
        return key

    def _add_value(self, frame: _Frame, value: Any, place: Any) -> None:
        key, frame.key, frame.has_key = frame.key, None, False
        if key is _MERGE:
            if isinstance(value, list) and all(isinstance(item, dict) for item in value):
                frame.merged += zip(value, place.parts, strict=True)
            elif isinstance(value, dict):
                frame.merged.append((value, place))
            elif value is not UNREADABLE:
                self.refuse(
                    _offset_of(place), "<< merges a mapping or a list of mappings; give it an alias such as *common"
                )
        elif key is not None:
            frame.value[key] = value
            frame.branch.parts[key] = place

    def _merge(self, frame: _Frame, value: dict[str, Any], place: _Branch) -> None:
        for key, item in value.items():
            if key not in frame.value:
                frame.value[key] = item
                frame.branch.keys.setdefault(key, place.keys[key])
                frame.branch.parts[key] = place.parts[key]
