"""Define a span, whether it came in protobuf, in JSON or from this process's own tracer. Nothing is judged here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Origin(NamedTuple):
    """The service of a span, and the library that made it."""

    service: str = ""
    scope: str = ""


_UNKNOWN = Origin()


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Ids are hexadecimal, empty when absent; times are nanoseconds since the epoch, 0 when unknown."""

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
    origin: Origin = _UNKNOWN

    def __post_init__(self) -> None:
        if not self.name and not self.span_id:
            raise ValueError("a span has neither a name nor an id")
        if max(map(len, (self.trace_id, self.span_id, self.parent_id))) > LONGEST_ID:
            raise ValueError("a span's id is too long")
        if not (0 <= self.start_ns < MOST_NANOSECONDS and 0 <= self.end_ns < MOST_NANOSECONDS):
            raise ValueError("a span's time is not a number of nanoseconds since 1970")
