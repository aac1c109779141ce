"""Spans to drafts of steps: names, times, parents, errors, and what GenAI's conventions make of them. Pure.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.cutting import cut_content
from pytest_golden.trajectory.otel.model import KINDS
from pytest_golden.trajectory.readers.model import StepDraft
from pytest_golden.trajectory.vocabulary import Importance, StepType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_golden.trajectory.otel.model import Span

MAX_ATTRIBUTES = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATION = "gen_ai.operation.name"
_TYPES = {
    "chat": StepType.REASONING,
    "text_completion": StepType.REASONING,
    "generate_content": StepType.REASONING,
    "execute_tool": StepType.TOOL_CALL,
}
# Where in the code it was raised differs with every change to it, and may quote the data.
_STACK = "exception.stacktrace"
_UNNAMED = "unknown_service"
_PLAIN = frozenset({bool, int, float, type(None)})


def order_spans(spans: Iterable[Span]) -> list[Span]:
    """Put spans in the order in which they began; one without a time stays behind the one before it."""
    starts: list[int] = []
    ordered = list(spans)
    for span in ordered:
        starts.append(span.start_ns or (starts[-1] if starts else 0))
    return [ordered[position] for position in sorted(range(len(ordered)), key=starts.__getitem__)]


def draft_steps(spans: Collection[Span]) -> tuple[StepDraft, ...]:
    """Give one draft a span, in the order in which they began."""
    ids = _name_spans(spans)
    return tuple(_draft(span, ids) for span in order_spans(spans))


def moment(nanoseconds: int) -> datetime:
    """Give a time of a span as a moment, to the microsecond."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _name_spans(spans: Iterable[Span]) -> dict[tuple[str, str], str]:
    """Give each span's id; where two traces use the same, the later one's with its trace before it."""
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
        type=_type_of(span),
        importance=Importance.CRITICAL if span.is_error else Importance.MEDIUM,
        duration_ms=(span.end_ns - span.start_ns) / 1e6 if 0 < span.start_ns <= span.end_ns else None,
        timestamp=moment(span.start_ns) if span.start_ns else None,
        id=ids.get((span.trace_id, span.span_id)),
        parent_step_id=ids.get((span.trace_id, parent), parent) if parent else None,
        metadata=metadata,
        context=_surroundings(span),
    )


def _type_of(span: Span) -> StepType:
    operation = span.attributes.get(_OPERATION)
    return _TYPES.get(operation, StepType.ACTION) if isinstance(operation, str) else StepType.ACTION


def _surroundings(span: Span) -> dict[str, str] | None:
    kind = KINDS[span.kind] if 0 <= span.kind < len(KINDS) else ""
    service = span.origin.service
    known = {
        "kind": kind,
        "scope": span.origin.scope,
        "service": "" if service.startswith(_UNNAMED) else service,
    }
    return {name: text for name, text in known.items() if text} or None


def _describe(span: Span) -> tuple[dict[str, Any], int]:
    """Give the metadata of a span, and how many bytes of it were cut."""
    metadata: dict[str, Any] = {}
    told = [event for event in span.events if event.name != "exception"]
    if told:
        metadata["events"] = [{"name": event.name, **event.attributes} for event in told[:MAX_ATTRIBUTES]]
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
