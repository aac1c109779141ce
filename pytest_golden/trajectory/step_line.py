"""A step as its line of JSON, in a fraction of the time that `Step.to_dict` and `json.dumps` take; they say the same.

A line may end in room for a number, to be written later in place: where in the file the step's end is told.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.frozen import FrozenDict, FrozenList
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from pytest_golden.trajectory.vocabulary import Importance, StepType

END_DIGITS = 16
#: Where the number begins, counted from the end of the line.
END_PLACE = END_DIGITS + 2
_ROOM_FOR_END = f', "end_offset": {0:{END_DIGITS}}'
_CONTAINERS = frozenset({dict, list, FrozenDict, FrozenList})
_TEXT = frozenset({str})
# Longer ones are written as `json_form` does.
_MOST_BITS = 1000


class StepFields(NamedTuple):
    """What a step consists of, checked and frozen, but for its time."""

    id: str
    type: StepType
    content: Any
    duration_ms: float | None
    metadata: FrozenDict
    context: Any
    importance: Importance
    parent_step_id: str | None


def make_step(fields: StepFields, moment: datetime) -> Step:
    """Give the step at that moment."""
    step_id, kind, content, duration_ms, metadata, context, importance, parent = fields
    return Step(step_id, kind, content, moment, duration_ms, metadata, context, importance, parent)


def json_text(value: Any) -> str:
    """Give the JSON of a value as `json_form` has it, in ASCII."""
    flat = _flat_text(value)
    return json.dumps(json_form(value), allow_nan=False) if flat is None else flat


def _flat_text(value: Any) -> str | None:
    """Write a scalar, or a container of nothing else; None for all that needs more care."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if type(value) not in _CONTAINERS:
        return None
    is_dict = isinstance(value, dict)
    if is_dict and not _TEXT.issuperset(map(type, value)):
        return None
    told = []
    for item in value.values() if is_dict else value:
        write = _WRITERS.get(type(item))
        text = None if write is None else write(item)
        if text is None:
            return None
        told.append(text)
    if is_dict:
        return f"{{{', '.join([f'{encode_basestring_ascii(key)}: {text}' for key, text in zip(value, told, strict=True)])}}}"
    return f"[{', '.join(told)}]"


def _float_text(value: float) -> str | None:
    return repr(value) if isfinite(value) else None


def _integer_text(value: int) -> str | None:
    return repr(value) if value.bit_length() < _MOST_BITS else None


_WRITERS: Mapping[type, Callable[[Any], str | None]] = {
    str: encode_basestring_ascii,
    int: _integer_text,
    float: _float_text,
    bool: {True: "true", False: "false"}.get,
    type(None): {None: "null"}.get,
}


class LineParts(NamedTuple):
    """The parts of a line that take time to write; they are made before the lock is taken."""

    content: str
    metadata: str
    context: str

    @classmethod
    def of(cls, content: Any, metadata: Any, context: Any) -> LineParts:
        """Write the three values."""
        return cls(
            json_text(content),
            json_text(metadata) if metadata else "{}",
            "null" if context is None else json_text(context),
        )


def step_line(fields: StepFields, moment: datetime, parts: LineParts, *, has_end: bool = False) -> bytes:
    """Give the line, with room for the place of the step's end when one is to follow."""
    step_id, kind, _, duration_ms, _, _, importance, parent = fields
    # As `iso_utc` writes it, which would ask for the time zone again.
    when = moment.isoformat(timespec="microseconds")[:-6]
    took = "null" if duration_ms is None else repr(duration_ms)
    above = "null" if parent is None else f'"{parent}"'
    return (
        f'{{"record": "step", "id": "{step_id}", "type": "{kind}", "content": {parts.content}, "timestamp": "{when}Z", '
        f'"duration_ms": {took}, "metadata": {parts.metadata}, "context": {parts.context}, '
        f'"importance": "{importance}", "parent_step_id": {above}{_ROOM_FOR_END if has_end else ""}}}\n'
    ).encode("ascii")


def end_line(step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> bytes:
    """Give the line that tells what is known only at a step's end; None leaves the importance as it is."""
    weight = "null" if importance is None else f'"{importance}"'
    return (
        f'{{"record": "step_end", "id": "{step_id}", "duration_ms": {duration_ms!r}, '
        f'"metadata": {json_text(metadata)}, "importance": {weight}}}\n'
    ).encode("ascii")
