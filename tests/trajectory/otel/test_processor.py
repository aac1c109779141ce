from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden import Trajectory, TrajectorySpanProcessor
from pytest_golden.trajectory.otel import processor as processor_module
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("opentelemetry.sdk")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider


@pytest.fixture
def got() -> list[Trajectory]:
    return []


@pytest.fixture
def open_tracer() -> Callable[[Callable[[Trajectory], object]], tuple[Any, Any]]:
    def make(on_complete: Callable[[Trajectory], object]) -> tuple[Any, Any]:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(TrajectorySpanProcessor(on_complete))
        return provider, provider.get_tracer("agent")

    return make


def test_each_root_span_gives_one_trajectory_with_its_children(got: list[Trajectory], open_tracer: Any) -> None:
    _, tracer = open_tracer(got.append)
    for name in ("first", "second"):
        with tracer.start_as_current_span(name):
            with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat", "tags": ("a", "b")}):
                pass
            with tracer.start_as_current_span("tool", attributes={"gen_ai.operation.name": "execute_tool"}):
                pass
    assert [[step.content for step in one.steps] for one in got] == [[n, "chat", "tool"] for n in ("first", "second")]
    root, chat, tool = got[0].steps
    assert (chat.type, tool.type) == ("reasoning", "tool_call")
    assert {chat.parent_step_id, tool.parent_step_id} == {root.id}
    assert chat.metadata["tags"] == ["a", "b"]
    assert got[0].outcome is TrajectoryOutcome.SUCCESS


def test_an_error_is_critical_and_makes_the_run_a_failure(got: list[Trajectory], open_tracer: Any) -> None:
    _, tracer = open_tracer(got.append)
    with pytest.raises(ValueError, match="boom"), tracer.start_as_current_span("root"):
        raise ValueError("boom")
    assert got[0].outcome is TrajectoryOutcome.FAILURE
    assert got[0].steps[0].importance == "critical"
    assert got[0].steps[0].metadata["error"] == "ValueError: boom"


def test_a_child_that_ends_after_its_root_is_waited_for(got: list[Trajectory], open_tracer: Any) -> None:
    _, tracer = open_tracer(got.append)
    root = tracer.start_span("root")
    child = tracer.start_span("child", context=trace.set_span_in_context(root))
    root.end()
    assert got == []
    child.end()
    assert [step.content for step in got[0].steps] == ["root", "child"]


def test_a_flush_gives_what_has_ended_and_says_what_has_not(got: list[Trajectory], open_tracer: Any) -> None:
    provider, tracer = open_tracer(got.append)
    root = tracer.start_span("root")
    child = tracer.start_span("child", context=trace.set_span_in_context(root))
    assert provider.force_flush()
    assert got == []
    root.end()
    assert provider.force_flush()
    assert (got[0].outcome, len(got[0].steps)) == (TrajectoryOutcome.PARTIAL, 1)
    assert got[0].metadata["lost_steps"] == 1
    child.end()
    assert len(got) == 1


def test_shutdown_gives_what_is_left(got: list[Trajectory], open_tracer: Any) -> None:
    provider, tracer = open_tracer(got.append)
    root = tracer.start_span("root")
    tracer.start_span("child", context=trace.set_span_in_context(root)).end()
    provider.shutdown()
    assert [(one.outcome, len(one.steps)) for one in got] == [(TrajectoryOutcome.PARTIAL, 1)]


def test_a_callback_that_raises_harms_no_instrumented_code(
    got: list[Trajectory], open_tracer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(trajectory: Trajectory) -> None:
        got.append(trajectory)
        raise ZeroDivisionError

    _, tracer = open_tracer(broken)
    for name in ("first", "second"):
        with tracer.start_as_current_span(name):
            pass
    assert [one.steps[0].content for one in got] == ["first", "second"]
    assert caplog.messages == ["a trajectory of spans was lost"] * 2


def test_a_span_that_garbage_collection_ends_meanwhile_holds_nothing_up(
    got: list[Trajectory], open_tracer: Any
) -> None:
    _, tracer = open_tracer(got.append)
    abandoned = [tracer.start_span("abandoned") for _ in range(20)]

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            abandoned.pop().end()

    class Telling(str):
        __slots__ = ()

        def __hash__(self) -> int:
            # Wherever the name of this attribute is looked at, also under the processor's lock.
            Garbage()
            gc.collect()
            return super().__hash__()

    def work() -> None:
        span = tracer.start_span("busy")
        span._attributes._dict[Telling("key")] = 1
        span.end()

    gc.disable()
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
    finally:
        gc.enable()
    assert not thread.is_alive()
    assert [step.content for one in got for step in one.steps].count("busy") == 1
    assert len(abandoned) < 20


def test_memory_is_bounded(got: list[Trajectory], open_tracer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_module, "_MOST_WAITING", 3)
    monkeypatch.setattr(processor_module, "MAX_SPANS", 2)
    _, tracer = open_tracer(got.append)
    with tracer.start_as_current_span("root"):
        for _ in range(5):
            tracer.start_span("child").end()
    assert (len(got[0].steps), got[0].metadata["lost_steps"]) == (2, 4)
    for number in range(5):
        root = tracer.start_span(f"open {number}")
        tracer.start_span("child", context=trace.set_span_in_context(root)).end()
    assert len(got) == 3
