"""Turn the spans of this process into trajectories: a span processor for the OpenTelemetry SDK, one trajectory a root span.

It has the methods that the SDK calls and imports nothing of it, so it exists without the SDK.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.building import build_trajectory
from pytest_golden.trajectory.otel.posts import draft_steps, moment
from pytest_golden.trajectory.otel.spans import STATUS_ERROR, Span, SpanEvent
from pytest_golden.trajectory.readers.model import StepReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.trajectory.model import Trajectory

_LOG = logging.getLogger(__name__)

MAX_SPANS = 100_000
_MOST_WAITING = 1_000


@dataclass(slots=True)
class _Tree:
    """What is known of one root span and those below it."""

    root: tuple[int, int]
    open: set[tuple[int, int]] = field(default_factory=set)
    ended: list[Span] = field(default_factory=list)
    known: list[tuple[int, int]] = field(default_factory=list)
    lost: int = 0
    has_ended: bool = False


class TrajectorySpanProcessor:
    """Pass it to `TracerProvider.add_span_processor`; `on_complete` receives one trajectory for each root span.

    A root span is one without a parent in this process. Its trajectory is complete when it and all spans below it have ended, or at
    `force_flush()` and `shutdown()` with the spans that have ended by then. It keeps at most 100,000 spans. Safe
    between threads; what `on_complete` raises is logged and reaches no instrumented code.
    """

    def __init__(self, on_complete: Callable[[Trajectory], object]) -> None:
        self._on_complete = on_complete
        # Reentrant: while it is held, the garbage collector may end an abandoned generator and its span.
        self._lock = threading.RLock()
        self._trees: dict[tuple[int, int], _Tree] = {}
        self._tree_of: dict[tuple[int, int], _Tree] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002 - the SDK's arguments
        """Note that a span has begun, and its root."""
        key = _key(span.get_span_context())
        parent = _key(span.parent)
        with self._lock:
            tree = None if parent is None or span.parent.is_remote else self._tree_of.get(parent)
            if key is None:
                return
            crowded = None
            if tree is None:
                tree = self._trees[key] = _Tree(key)
                if len(self._trees) > _MOST_WAITING:
                    crowded = next(iter(self._trees.values()))
                    self._forget(crowded)
            if len(tree.known) < MAX_SPANS:
                tree.known.append(key)
                tree.open.add(key)
                self._tree_of[key] = tree
            else:
                tree.lost += 1
        self._complete(crowded)

    def on_end(self, span: Any) -> None:
        """Take a span that has ended; the last one of a tree completes it."""
        key = _key(span.get_span_context())
        with self._lock:
            tree = None if key is None else self._tree_of.get(key)
            if tree is None or key not in tree.open:
                return
            tree.open.discard(key)
            tree.has_ended = tree.has_ended or key == tree.root
            try:
                tree.ended.append(_read_span(span))
            except (ValueError, TypeError, AttributeError, KeyError):
                tree.lost += 1
            done = tree if tree.has_ended and not tree.open else None
            if done is not None:
                self._forget(done)
        self._complete(done)

    def _on_ending(self, span: Any) -> None:
        """Do nothing: the SDK announces the end of a span to all processors."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the SDK's arguments
        """Complete the trees whose root has ended, without what is still open below it."""
        with self._lock:
            waiting = [tree for tree in self._trees.values() if tree.has_ended]
            for tree in waiting:
                self._forget(tree)
        for tree in waiting:
            self._complete(tree)
        return True

    def shutdown(self) -> None:
        """Complete all trees that have anything in them, the ones whose root is still open too."""
        with self._lock:
            waiting = [tree for tree in self._trees.values() if tree.ended]
            self._trees.clear()
            self._tree_of.clear()
        for tree in waiting:
            self._complete(tree)

    def _forget(self, tree: _Tree) -> None:
        self._trees.pop(tree.root, None)
        for key in tree.known:
            self._tree_of.pop(key, None)

    def _complete(self, tree: _Tree | None) -> None:
        if tree is None or not tree.ended:
            return
        try:
            self._on_complete(_build(tree))
        except Exception as error:  # the caller's function may raise anything, and this runs inside instrumented code
            _LOG.warning("a trajectory of spans was lost", extra={"error": repr(error)})


def _build(tree: _Tree) -> Trajectory:
    root_id = f"{tree.root[1]:016x}"
    root = next((span for span in tree.ended if span.span_id == root_id), None)
    outcome, error = "partial", None
    if root is not None:
        outcome = "failure" if root.is_error else "partial" if tree.open else "success"
        error = root.message or None if root.is_error else None
    lost = tree.lost + len(tree.open)
    warnings = (f"{len(tree.open)} spans had not ended",) if tree.open else ()
    return build_trajectory(
        [StepReading(draft_steps(tree.ended), lost, warnings)],
        started_at=moment(min(span.start_ns for span in tree.ended)),
        completed_at=moment(max(span.end_ns for span in tree.ended)),
        outcome=outcome,
        error=error,
        metadata={"trace_id": f"{tree.root[0]:032x}"},
    )


def _key(context: Any) -> tuple[int, int] | None:
    return None if context is None else (context.trace_id, context.span_id)


def _read_span(span: Any) -> Span:
    context, parent, status = span.get_span_context(), span.parent, span.status
    scope, resource = span.instrumentation_scope, span.resource
    return Span(
        name=span.name,
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id="" if parent is None or parent.is_remote else f"{parent.span_id:016x}",
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        kind=span.kind.value + 1,
        attributes=_plain(span.attributes),
        dropped_attributes=span.dropped_attributes,
        events=tuple(SpanEvent(event.name, _plain(event.attributes)) for event in span.events),
        is_error=status.status_code.value == STATUS_ERROR,
        message=status.description or "",
        service=str(resource.attributes.get("service.name", "")) if resource else "",
        scope=scope.name if scope else "",
    )


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    pairs = (attributes or {}).items()
    return {key: list(value) if isinstance(value, tuple) else value for key, value in pairs}
