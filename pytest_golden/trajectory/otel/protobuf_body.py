"""The body of an OTLP export request in protobuf, read by hand: a pipeline's interpreter need not have the library.

Only the few messages that hold spans are known; other fields are skipped.

Source: https://github.com/open-telemetry/opentelemetry-proto (collector/trace/v1, trace/v1, common/v1, resource/v1)
and https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.otel.model import STATUS_ERROR, Origin, Span, SpanEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT_BITS = 63
_DEEPEST = 32
_DOUBLE = struct.Struct("<d")
Field = tuple[int, int | bytes]


def parse_protobuf(body: bytes) -> Iterator[Span | None]:
    """Return the spans of a body in their order, None for each that cannot be read.

    Raises:
        ValueError: the body is torn or no protobuf; what was given before is good.
    """
    for number, resource_spans in _messages(body):
        if number == 1:
            yield from _read_resource_spans(resource_spans)


def count_protobuf(body: bytes) -> int:
    """Count the spans of a body without reading them; `ValueError` as above."""
    return sum(
        field == 2
        for number, resource_spans in _messages(body)
        if number == 1
        for inner, scope_spans in _messages(resource_spans)
        if inner == 2
        for field, _ in _messages(scope_spans)
    )


def _read_resource_spans(message: bytes) -> Iterator[Span | None]:
    fields = list(_messages(message))
    service = ""
    for number, value in fields:
        if number == 1:
            attributes = _read_attributes(inner for field, inner in _messages(value) if field == 1)
            service = str(attributes.get("service.name", ""))
    for number, value in fields:
        if number == 2:
            yield from _read_scope_spans(value, service)


def _read_scope_spans(message: bytes, service: str) -> Iterator[Span | None]:
    fields = list(_messages(message))
    scopes = (
        _text(inner) for number, value in fields if number == 1 for field, inner in _messages(value) if field == 1
    )
    origin = Origin(service, next(scopes, ""))
    for number, value in fields:
        if number == 2:
            try:
                yield _read_span(value, origin)
            except ValueError:
                yield None


def _read_span(message: bytes, origin: Origin) -> Span:
    plain: dict[int, Any] = {}
    attributes, events = [], []
    for number, value in read_fields(message):
        if number == 9:
            attributes.append(_as_bytes(value))
        elif number == 11:
            events.append(_read_event(_as_bytes(value)))
        else:
            plain[number] = value
    status = dict(read_fields(_as_bytes(plain.get(15, b""))))
    return Span(
        name=_text(plain.get(5, b"")),
        trace_id=_as_bytes(plain.get(1, b"")).hex(),
        span_id=_as_bytes(plain.get(2, b"")).hex(),
        parent_id=_as_bytes(plain.get(4, b"")).hex(),
        start_ns=_fixed(plain.get(7, b"")),
        end_ns=_fixed(plain.get(8, b"")),
        kind=_number(plain.get(6, 0)),
        attributes=_read_attributes(attributes),
        dropped_attributes=_number(plain.get(10, 0)),
        events=tuple(events),
        is_error=status.get(3) == STATUS_ERROR,
        message=_text(status.get(2, b"")),
        origin=origin,
    )


def _read_event(message: bytes) -> SpanEvent:
    fields = list(read_fields(message))
    name = next((_text(value) for number, value in fields if number == 2), "")
    return SpanEvent(name, _read_attributes(_as_bytes(value) for number, value in fields if number == 3))


def _read_attributes(messages: Iterable[bytes]) -> dict[str, Any]:
    return dict(_read_key_value(message, 0) for message in messages)


def _read_key_value(message: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, inner in read_fields(message):
        if number == 1:
            key = _text(inner)
        elif number == 2:
            value = _read_value(_as_bytes(inner), depth)
    return key, value


def _read_value(message: bytes, depth: int) -> Any:
    """Read an `AnyValue`; of several members the last one counts."""
    if depth > _DEEPEST:
        raise ValueError("a value is nested too deeply")
    value: Any = None
    for number, inner in read_fields(message):
        if number == 1:
            value = _text(inner)
        elif number == 2:
            value = bool(_number(inner))
        elif number == 3:
            value = _signed(_number(inner))
        elif number == 4:
            value = _DOUBLE.unpack(_exactly_8(inner))[0]
        elif number in {5, 6, 7}:
            value = _read_container(number, _as_bytes(inner), depth + 1)
    return value


def _read_container(number: int, message: bytes, depth: int) -> Any:
    if number == 7:
        return message
    inside = [inner for field, inner in _messages(message) if field == 1]
    if number == 5:
        return [_read_value(inner, depth) for inner in inside]
    return dict(_read_key_value(inner, depth) for inner in inside)


def _messages(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the fields that may hold a message; others are skipped."""
    for number, value in read_fields(message):
        if isinstance(value, bytes):
            yield number, value


def read_fields(message: bytes) -> Iterator[Field]:
    """Return number and raw value of each field of a message: an integer for a varint, else bytes.

    Raises:
        ValueError: the message is torn, or no protobuf.
    """
    position, end = 0, len(message)
    while position < end:
        tag = message[position]
        position += 1
        if tag >= 0x80:
            tag, position = _read_varint(message, position - 1)
        wire = tag & 7
        if wire == _BYTES:
            if position < end and message[position] < 0x80:
                size = message[position]
                position += 1
            else:
                size, position = _read_varint(message, position)
        elif wire == _VARINT:
            value, position = _read_varint(message, position)
            yield tag >> 3, value
            continue
        else:
            size = _fixed_size(wire)
        start, position = position, position + size
        if position > end:
            raise ValueError("it is torn")
        yield tag >> 3, message[start:position]


def _fixed_size(wire: int) -> int:
    if wire == _FIXED64:
        return 8
    if wire == _FIXED32:
        return 4
    raise ValueError(f"it has a field of the unknown wire type {wire}")


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > _MOST_VARINT_BITS:
            raise ValueError("it has a number of more than 64 bits")
    raise ValueError("it is torn")


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("a field has a number where bytes belong")


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value
    raise ValueError("a field has bytes where a number belongs")


def _text(value: Any) -> str:
    return _as_bytes(value).decode("utf-8", "replace")


def _fixed(value: Any) -> int:
    return int.from_bytes(_exactly_8(value), "little") if value != b"" else 0


def _exactly_8(value: Any) -> bytes:
    if isinstance(value, bytes) and len(value) == 8:
        return value
    raise ValueError("a field has no eight bytes where they belong")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
