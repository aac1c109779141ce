"""Read the spans of an OTLP export request in protobuf, by `opentelemetry-proto`. Importing this module needs the extra `otel`.

Spans are unpacked one at a time: one that cannot be read costs only itself, and the objects of a hostile body are never in memory all at once.

Source: https://github.com/open-telemetry/opentelemetry-proto (collector/trace/v1, trace/v1, common/v1, resource/v1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from pytest_golden.trajectory.otel.spans import MAX_EVENTS, STATUS_ERROR, Span, SpanEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_MOST_PARTS = 100_000


def parse_protobuf(body: bytes) -> Iterator[Span | None]:
    """Return the spans of a body in their order, None for each that cannot be read.

    Raises:
        ValueError: the body is not protobuf, or has more than 100,000 resources and scopes.
    """
    for service, of_scope in _list_scopes(body):
        scope = next((_unpack(InstrumentationScope, one).name for one in of_scope.first), "")
        for span in of_scope.second:
            try:
                yield _read_span(_unpack(SpanMessage, span), service, scope)
            except ValueError:
                yield None


def count_protobuf(body: bytes) -> int:
    """Count the spans of a body without reading them; `ValueError` as above."""
    return sum(len(of_scope.second) for _, of_scope in _list_scopes(body))


def _list_scopes(body: bytes) -> Iterator[tuple[str, Any]]:
    """Return the name of the service and the envelope of each `ScopeSpans`."""
    resources = _unpack(_Envelope, body).first
    parts = len(resources)
    for resource_spans in resources if parts <= _MOST_PARTS else ():
        of_resource = _unpack(_Envelope, resource_spans)
        parts += len(of_resource.second)
        if parts > _MOST_PARTS:
            break
        attributes: dict[str, Any] = next(
            (_read_attributes(_unpack(Resource, one).attributes) for one in of_resource.first), {}
        )
        for scope_spans in of_resource.second:
            yield str(attributes.get("service.name", "")), _unpack(_Envelope, scope_spans)
    if parts > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS:,} resources and scopes")


def _define_envelope() -> Any:
    """Return a message that leaves its first two fields packed.

    The request, `ResourceSpans` and `ScopeSpans` fit it: their other fields are skipped.
    """
    file = descriptor_pb2.FileDescriptorProto(name="pytest_golden/envelope.proto", syntax="proto3")
    message = file.message_type.add(name="Envelope")
    for number, name in enumerate(("first", "second"), 1):
        message.field.add(name=name, number=number, type="TYPE_BYTES", label="LABEL_REPEATED")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Envelope"))


_Envelope = _define_envelope()


def _unpack(message: Any, packed: bytes) -> Any:
    try:
        return message.FromString(packed)
    except DecodeError:
        raise ValueError("it is not protobuf") from None


def _read_span(span: Any, service: str, scope: str) -> Span:
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        kind=span.kind,
        attributes=_read_attributes(span.attributes),
        dropped_attributes=span.dropped_attributes_count,
        events=tuple(SpanEvent(event.name, _read_attributes(event.attributes)) for event in _limit(span.events)),
        is_error=span.status.code == STATUS_ERROR,
        message=span.status.message,
        service=service,
        scope=scope,
    )


def _limit(events: Any) -> Any:
    """Return the events that a step may show: the first ones, and the last ones, which say why a span failed."""
    return events if len(events) <= 2 * MAX_EVENTS else [*events[:MAX_EVENTS], *events[-MAX_EVENTS:]]


def _read_attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: _read_value(pair.value) for pair in pairs}


def _read_value(value: Any) -> Any:
    """Read an `AnyValue`. The library refuses one that is nested more than 100 messages deep."""
    member = value.WhichOneof("value")
    if member is None:
        return None
    if member == "array_value":
        return [_read_value(inner) for inner in value.array_value.values]
    if member == "kvlist_value":
        return _read_attributes(value.kvlist_value.values)
    return getattr(value, member)
