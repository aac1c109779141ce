"""Define a span, and read the spans of an OTLP export request in JSON. Unknown keys are skipped; numbers may be text, as the mapping writes them.

Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The names of `SpanKind` by their numbers; 0 is unspecified.
KINDS = ("", "internal", "server", "client", "producer", "consumer")
STATUS_ERROR = 2
#: A step shows no more than these of a span.
MAX_ATTRIBUTES = MAX_EVENTS = 1_000
MOST_NANOSECONDS = 1 << 64
LONGEST_ID = 64


class SpanEvent(NamedTuple):
    """An event at one time of a span."""

    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Ids are hexadecimal, empty when absent; times are nanoseconds since the epoch, 0 when unknown.

    `scope` is the library that made it.
    """

    name: str
    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    start_ns: int = 0
    end_ns: int = 0
    kind: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dropped_attributes: int = 0
    events: tuple[SpanEvent, ...] = ()
    is_error: bool = False
    message: str = ""
    service: str = ""
    scope: str = ""

    def __post_init__(self) -> None:
        if not self.name and not self.span_id:
            raise ValueError("a span has neither a name nor an id")
        if max(map(len, (self.trace_id, self.span_id, self.parent_id))) > LONGEST_ID:
            raise ValueError("a span's id is too long")
        if not (0 <= self.start_ns < MOST_NANOSECONDS and 0 <= self.end_ns < MOST_NANOSECONDS):
            raise ValueError("a span's time is not a number of nanoseconds since 1970")


_DEEPEST = 32
_MOST_DIGITS = 20
_KIND_PREFIX = "SPAN_KIND_"


def parse_json(body: bytes) -> Iterator[Span | None]:
    """Return the spans of a body in their order, None for each that cannot be read.

    Raises:
        ValueError: the body is neither JSON nor an export request.
    """
    for given, service, scope in _list_spans(_load(body)):
        try:
            yield _read_span(given, service, scope)
        except (ValueError, TypeError, OverflowError):
            yield None


def count_json(body: bytes) -> int:
    """Count the spans of a body; `ValueError` as above."""
    return sum(1 for _ in _list_spans(_load(body)))


def _load(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body.decode("utf-8-sig", "replace"), parse_constant=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        # The parser's message names a position, but equal reasons must have equal texts to be counted together.
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one kind of refusal
    return document


def _list_spans(document: dict[str, Any]) -> Iterator[tuple[Any, str, str]]:
    if "resourceSpans" not in document and document:
        raise ValueError("it has no resourceSpans")
    for resource_spans in _objects(document, "resourceSpans"):
        service, resource = "", as_mapping(resource_spans.get("resource"))
        with suppress(ValueError, TypeError, OverflowError):
            service = str(_read_attributes(resource.get("attributes")).get("service.name", ""))
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            scope = str(as_mapping(scope_spans.get("scope")).get("name") or "")
            yield from ((given, service, scope) for given in _members(scope_spans, "spans"))


def _members(parent: dict[str, Any], key: str) -> list[Any]:
    """Return the list at a key. A missing or null one is empty, as in protobuf's JSON mapping."""
    found = parent.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError(f"its {key} is not a list")  # noqa: TRY004 - one kind of refusal
    return found


def _objects(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    members = _members(parent, key)
    if not all(isinstance(member, dict) for member in members):
        raise ValueError(f"its {key} holds something that is not an object")
    return members


def _read_span(given: Any, service: str, scope: str) -> Span:
    if not isinstance(given, dict):
        raise ValueError("a span is not an object")  # noqa: TRY004 - one kind of refusal
    status = as_mapping(given.get("status"))
    return Span(
        name=str(given.get("name") or ""),
        trace_id=_read_id(given.get("traceId")),
        span_id=_read_id(given.get("spanId")),
        parent_id=_read_id(given.get("parentSpanId")),
        start_ns=_integer(given.get("startTimeUnixNano") or 0),
        end_ns=_integer(given.get("endTimeUnixNano") or 0),
        kind=_read_kind(given.get("kind")),
        attributes=_read_attributes(given.get("attributes")),
        dropped_attributes=_integer(given.get("droppedAttributesCount") or 0),
        events=tuple(
            SpanEvent(str(event.get("name") or ""), _read_attributes(event.get("attributes")))
            for event in _dicts(given.get("events"))
        ),
        is_error=status.get("code") in {STATUS_ERROR, str(STATUS_ERROR), "STATUS_CODE_ERROR"},
        message=str(status.get("message") or ""),
        service=service,
        scope=scope,
    )


def _read_id(given: Any) -> str:
    return str(given or "").strip().lower()


def _read_kind(given: Any) -> int:
    if isinstance(given, str) and given.startswith(_KIND_PREFIX):
        name = given.removeprefix(_KIND_PREFIX).lower()
        return KINDS.index(name) if name in KINDS else 0
    return _integer(given or 0)


def _read_attributes(given: Any, depth: int = 0) -> dict[str, Any]:
    return {str(pair.get("key") or ""): _read_value(pair.get("value"), depth) for pair in _dicts(given)}


def _read_value(given: Any, depth: int) -> Any:
    """Read an `AnyValue`; accept a plain value too, as people write it by hand."""
    if depth > _DEEPEST:
        raise ValueError("a value is nested too deeply")
    if not isinstance(given, dict):
        return given
    for member, value in given.items():
        if member in {"stringValue", "boolValue"}:
            return value
        if member == "intValue":
            return _integer(value)
        if member == "doubleValue":
            return float(value)
        if member in {"arrayValue", "kvlistValue", "bytesValue"}:
            return _read_container(member, value, depth + 1)
    return None


def _read_container(member: str, value: Any, depth: int) -> Any:
    if member == "bytesValue":
        try:
            return base64.b64decode(value)
        except binascii.Error:
            return value
    values = value.get("values") if isinstance(value, dict) else None
    if member == "kvlistValue":
        return _read_attributes(values, depth)
    return [_read_value(inner, depth) for inner in values] if isinstance(values, list) else []


def _dicts(given: Any) -> list[dict[str, Any]]:
    return [member for member in given if isinstance(member, dict)] if isinstance(given, list) else []


def _integer(given: Any) -> int:
    if isinstance(given, str) and len(given) > _MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(given)
