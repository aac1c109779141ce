"""Read posts of spans into a reading of steps: unpack, parse, leave out doubles, keep within limits. Pure; never raises for what a post holds.

A step gets the span's name, times, parent and error, and what GenAI's conventions say about it.
Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans
"""

from __future__ import annotations

import importlib.util
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.otel.spans import KINDS, MAX_ATTRIBUTES, MAX_EVENTS, count_json, parse_json
from pytest_golden.trajectory.readers.model import StepDraft, StepReading, order_by_start
from pytest_golden.trajectory.vocabulary import Importance, StepType, cut_content

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pytest_golden.trajectory.otel.spans import Span

    Parse = Callable[[bytes], Iterator[Span | None]]
    Count = Callable[[bytes], int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATION = "gen_ai.operation.name"
_TYPES = {
    "chat": StepType.REASONING,
    "text_completion": StepType.REASONING,
    "generate_content": StepType.REASONING,
    "execute_tool": StepType.TOOL_CALL,
}
# A stack differs with every change of the code, and may quote data.
_STACK = "exception.stacktrace"
_UNNAMED = "unknown_service"
_PLAIN = frozenset({bool, int, float, type(None)})


def draft_steps(spans: Collection[Span]) -> tuple[StepDraft, ...]:
    """Return one draft a span, in the order in which they began."""
    ids = _name_spans(spans)
    return tuple(_draft(span, ids) for span in order_by_start(spans, lambda span: span.start_ns, 0))


def moment(nanoseconds: int) -> datetime:
    """Return a time of a span as a datetime, to the microsecond."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _name_spans(spans: Iterable[Span]) -> dict[tuple[str, str], str]:
    """Return each span's id; where two traces use the same, the later one's with its trace before it."""
    ids: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for span in spans:
        if not span.span_id:
            continue
        name = f"{span.trace_id}-{span.span_id}" if span.span_id in taken else span.span_id
        taken.add(name)
        ids[span.trace_id, span.span_id] = name
    return ids


def _draft(span: Span, ids: Mapping[tuple[str, str], str]) -> StepDraft:
    content, left_out = cut_content(span.name)
    metadata, cut = _describe(span)
    if left_out + cut:
        metadata["truncated_bytes"] = left_out + cut
    parent = span.parent_id if span.parent_id.strip("0") else ""
    return StepDraft(
        content=content,
        type=_TYPES.get(str(span.attributes.get(_OPERATION)), StepType.ACTION),
        importance=Importance.CRITICAL if span.is_error else Importance.MEDIUM,
        duration_ms=(span.end_ns - span.start_ns) / 1e6 if 0 < span.start_ns <= span.end_ns else None,
        timestamp=moment(span.start_ns) if span.start_ns else None,
        id=ids.get((span.trace_id, span.span_id)),
        parent_step_id=ids.get((span.trace_id, parent), parent) if parent else None,
        metadata=metadata,
        context=_surroundings(span),
    )


def _surroundings(span: Span) -> dict[str, str] | None:
    kind = KINDS[span.kind] if 0 <= span.kind < len(KINDS) else ""
    service = "" if span.service.startswith(_UNNAMED) else span.service
    known = {"kind": kind, "scope": span.scope, "service": service}
    return {name: text for name, text in known.items() if text} or None


def _describe(span: Span) -> tuple[dict[str, Any], int]:
    """Return the metadata of a span, and how many bytes of it were cut."""
    metadata: dict[str, Any] = {}
    told = [event for event in span.events if event.name != "exception"]
    if told:
        metadata["events"] = [{"name": event.name, **event.attributes} for event in told[:MAX_EVENTS]]
    dropped = span.dropped_attributes + max(0, len(span.attributes) - MAX_ATTRIBUTES)
    if dropped:
        metadata["dropped_attributes"] = dropped
    metadata.update(islice(span.attributes.items(), MAX_ATTRIBUTES))
    metadata.pop(_STACK, None)
    if span.is_error:
        metadata.update(_explain(span))
    cut = 0
    for key, value in metadata.items():
        if type(value) not in _PLAIN:
            metadata[key], left_out = cut_content(value)
            cut += left_out
    return metadata, cut


def _explain(span: Span) -> dict[str, Any]:
    """Say why a span failed: by its status, else by its last exception, else by its attributes."""
    raised: Mapping[str, Any] = next(
        (event.attributes for event in reversed(span.events) if event.name == "exception"), {}
    )
    kind = raised.get("exception.type") or span.attributes.get("error.type")
    words = [str(word) for word in (kind, raised.get("exception.message")) if word]
    error = span.message or ": ".join(words) or "the span's status is ERROR"
    return {"error": error, **({"error_type": str(kind)} if kind else {})}


#: Of one post, packed or unpacked.
MAX_BODY_BYTES = 16 << 20
MAX_SPANS = 100_000
# Unpacked bytes that are parsed, and that are at least counted.
_MAX_PARSED_BYTES, _MAX_COUNTED_BYTES = 64 << 20, 256 << 20
PROTOBUF_MISSING = "to read protobuf, install the extra otel: pip install 'pytest-golden-projects[otel]'"
_GZIP = 31
_LONGEST_REASON = 200


class Post(NamedTuple):
    """The body of one post, as the client sent it."""

    body: bytes
    is_json: bool = False
    is_gzip: bool = False


def can_read_protobuf() -> bool:
    """Tell whether `opentelemetry-proto` is installed, without importing it."""
    try:
        return importlib.util.find_spec("opentelemetry.proto.trace.v1.trace_pb2") is not None
    except ModuleNotFoundError:
        return False


def read_posts(posts: Iterable[Post], refused: Mapping[str, int] | None = None) -> StepReading:
    """Return the steps of all spans, sorted by start; a span that was sent twice counts once.

    At most 100,000 spans are read, and nothing behind 64 MiB: the rest is counted. `lost_count` is the number of spans that are not kept,
    plus the number of posts that could not be read or were refused; `refused` holds those by reason.
    """
    gathered = _Gathered(Counter(refused or {}))
    for post in posts:
        gathered.add(post)
    return StepReading(
        draft_steps(gathered.spans.values()), gathered.lost + gathered.unread.total(), tuple(gathered.warnings())
    )


def check_json(post: Post) -> None:
    """Check the structure of a JSON post before it is acknowledged. Spans that cannot be read are counted later.

    Raises:
        ValueError: it is not JSON, or not an export request.
    """
    count_json(unpack(post.body) if post.is_gzip else post.body)


def unpack(body: bytes, limit_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Unpack gzip, of a body that may be a bomb.

    Raises:
        ValueError: it is torn, no gzip, or larger than allowed.
    """
    member = zlib.decompressobj(_GZIP)
    try:
        unpacked = member.decompress(body, limit_bytes + 1)
    except zlib.error as error:
        raise ValueError("it is not gzip") from error
    if len(unpacked) > limit_bytes:
        raise ValueError(f"it is larger than {limit_bytes} bytes when it is unpacked")
    if not member.eof or member.unused_data:
        raise ValueError("its gzip has several members" if member.eof else "its gzip is torn")
    return unpacked


def describe_refusal(error: ValueError) -> str:
    """Return the reason under which refused posts are counted."""
    return str(error)[:_LONGEST_REASON]


def _choose_reader(post: Post) -> tuple[Parse, Count]:
    if post.is_json:
        return parse_json, count_json
    try:
        from pytest_golden.trajectory.otel.protobuf_body import count_protobuf, parse_protobuf
    except ImportError:
        raise ValueError(PROTOBUF_MISSING) from None
    return parse_protobuf, count_protobuf


class _Gathered:
    def __init__(self, unread: Counter[str]) -> None:
        self.spans: dict[tuple[str, str], Span] = {}
        self.lost = 0
        self.unread = unread
        self._left_out = 0
        self._looked_at = 0
        self._bytes = 0

    def add(self, post: Post) -> None:
        if self._bytes > _MAX_COUNTED_BYTES:
            self.unread["there are too many"] += 1
            return
        try:
            self._read(unpack(post.body) if post.is_gzip else post.body, *_choose_reader(post))
        except ValueError as error:
            self.unread[describe_refusal(error)] += 1

    def _read(self, body: bytes, parse: Parse, count: Count) -> None:
        self._bytes += len(body)
        room = 0 if self._bytes > _MAX_PARSED_BYTES else MAX_SPANS - self._looked_at
        before = self._looked_at
        if room:
            for span in islice(parse(body), room):
                self._looked_at += 1
                self._take(span)
        if self._looked_at - before == room:
            left_out = count(body) - room
            self.lost += left_out
            self._left_out += left_out

    def _take(self, span: Span | None) -> None:
        if span is None:
            self.lost += 1
        else:
            self.spans.setdefault((span.trace_id, span.span_id or f"#{len(self.spans)}"), span)

    def warnings(self) -> Iterable[str]:
        if self._left_out:
            limits = f"{MAX_SPANS:,} spans and {_MAX_PARSED_BYTES >> 20} MiB of them are kept"
            yield f"{self._left_out:,} OpenTelemetry spans were left out: no more than {limits}"
        if unreadable := self.lost - self._left_out:
            yield f"{unreadable:,} OpenTelemetry spans could not be read"
        for reason, count in self.unread.most_common(5):
            yield f"{count:,} {'post' if count == 1 else 'posts'} of OpenTelemetry spans could not be read: {reason}"
