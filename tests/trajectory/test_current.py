from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.trajectory.jsonlines import read_trajectory
from pytest_golden.trajectory.recorder import TrajectoryRecorder, current_recorder, recording

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from pytest_golden.trajectory.model import Trajectory


def say(content: Any) -> None:
    recorder = current_recorder()
    assert recorder is not None
    recorder.step("action", content)


def contents(trajectory: Trajectory) -> list[Any]:
    return [step.content for step in trajectory.steps]


def test_block_gives_the_recorder_and_ends_with_success(tmp_path: Path) -> None:
    kept: list[Trajectory] = []
    with recording(tmp_path / "t.jsonl", metadata={"a": 1}, on_complete=kept.append) as recorder:
        assert current_recorder() is recorder
        recorder.step("action", "load")
    assert current_recorder() is None
    assert kept == [recorder.trajectory] == [read_trajectory(tmp_path / "t.jsonl")]
    assert (kept[0].outcome, kept[0].error, kept[0].metadata, contents(kept[0])) == (
        "success",
        None,
        {"a": 1},
        ["load"],
    )


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ValueError("boom"), "error"),
        (TimeoutError("slow"), "timeout"),
        (KeyboardInterrupt(), "partial"),
        (SystemExit(3), "partial"),
        (asyncio.CancelledError(), "partial"),
    ],
)
def test_exception_leaves_a_critical_observation_and_goes_on(error: BaseException, outcome: str) -> None:
    with pytest.raises(type(error)), recording() as recorder, recorder.span("action", "load"):
        raise error
    load, last = recorder.trajectory.steps
    assert (last.type, last.importance, last.has_error, last.parent_step_id) == ("observation", "critical", True, None)
    assert last.content.startswith(type(error).__name__)
    assert (recorder.trajectory.outcome, recorder.trajectory.error) == (outcome, last.content)
    assert load.metadata["error"] == last.content


def test_leaving_on_purpose_is_no_error() -> None:
    with pytest.raises(SystemExit), recording() as recorder:
        raise SystemExit(0)
    assert (recorder.trajectory.outcome, contents(recorder.trajectory)) == ("success", [])


def test_what_the_block_has_completed_stays_as_it_is() -> None:
    kept: list[Trajectory] = []
    whole = recording(on_complete=kept.append)
    whole.__enter__().complete("partial", "enough")
    whole.__exit__(ValueError, ValueError("late"), None)
    assert (kept[0].outcome, kept[0].error, contents(kept[0])) == ("partial", "enough", [])


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_exception_that_cannot_be_told_is_named() -> None:
    with pytest.raises(UnspeakableError), recording() as recorder, recorder.span("action", 1):
        raise UnspeakableError
    assert [step.metadata["error"] for step in recorder.trajectory.steps] == ["UnspeakableError", "UnspeakableError"]


def test_on_complete_raises_unless_the_work_has(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: Trajectory) -> None:
        raise LookupError("no room")

    with pytest.raises(LookupError), recording(on_complete=refuse):
        pass
    with pytest.raises(ValueError, match="boom"), recording(on_complete=refuse):
        raise ValueError("boom")
    assert caplog.messages[-1].endswith("failed: LookupError: no room")


def test_file_that_is_gone_costs_the_delivery_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept: list[Trajectory] = []
    for spoil in (Path.unlink, lambda path: TrajectoryRecorder(path).complete()):
        with recording(tmp_path / "t.jsonl", on_complete=kept.append):
            spoil(tmp_path / "t.jsonl")
    assert kept == []
    assert ["cannot be given to on_complete" in message for message in caplog.messages] == [True, True]


def test_function_gets_a_recorder_for_each_call() -> None:
    kept: list[Trajectory] = []

    @recording(on_complete=kept.append)
    def add(one: int, *, other: int = 1) -> int:
        """Add."""
        say(one)
        if one > 5:
            raise ValueError("too much")
        return one + other if one else add(3)

    assert (add.__name__, add.__doc__) == ("add", "Add.")
    assert add(1, other=2) == 3
    assert add(0) == 4
    with pytest.raises(ValueError, match="too much"):
        add(6)
    assert [contents(one) for one in kept] == [[1], [3], [0], [6, "ValueError: too much"]]
    assert len({one.id for one in kept}) == 4
    assert current_recorder() is None


def test_decorator_needs_no_brackets() -> None:
    @recording
    def work() -> bool:
        return current_recorder() is not None

    assert work()


def test_coroutines_that_run_together_keep_apart() -> None:
    kept: list[Trajectory] = []

    @recording(on_complete=kept.append)
    async def work(name: str) -> str:
        for number in range(3):
            say(f"{name}{number}")
            await asyncio.sleep(0)
        return name

    async def both() -> list[str]:
        return list(await asyncio.gather(work("a"), work("b")))

    assert asyncio.run(both()) == ["a", "b"]
    assert sorted(map(contents, kept)) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def test_generators_that_are_read_in_turns_keep_apart() -> None:
    kept: list[Trajectory] = []

    @recording(on_complete=kept.append)
    def count(name: str) -> Generator[str, str, str]:
        recorder = current_recorder()
        assert recorder is not None
        with recorder.span("action", name):
            answer = yield f"{name}0"
            say(answer)
            try:
                yield f"{name}1"
            except KeyError:
                say("mended")
            return name

    one, two = count("a"), count("b")
    assert [next(one), next(two)] == ["a0", "b0"]
    assert current_recorder() is None
    assert [one.send("x"), two.send("y")] == ["a1", "b1"]
    with pytest.raises(StopIteration) as ended:
        one.throw(KeyError("k"))
    assert ended.value.value == "a"
    two.close()
    assert [(contents(each), each.outcome) for each in kept] == [
        (["a", "x", "mended"], "success"),
        (["b", "y"], "partial"),
    ]
    assert [{step.parent_step_id for step in each.steps[1:]} for each in kept] == [{each.steps[0].id} for each in kept]
    assert not kept[1].steps[0].has_error


def test_generator_that_raises_is_an_error() -> None:
    kept: list[Trajectory] = []

    @recording(on_complete=kept.append)
    def work() -> Generator[int, None, None]:
        yield 1
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        list(work())
    assert (kept[0].outcome, contents(kept[0])) == ("error", ["ValueError: boom"])


def test_asynchronous_generator_is_refused() -> None:
    async def work() -> AsyncGenerator[int, None]:
        yield 1

    with pytest.raises(TypeError, match="with-block inside it"):
        recording()(work)


def test_one_recording_may_stand_inside_itself() -> None:
    kept: list[Trajectory] = []
    whole = recording(on_complete=kept.append)
    with whole as outer:
        outer.step("action", "outer")
        with whole as inner:
            assert current_recorder() is inner
            say("inner")
        assert current_recorder() is outer
    assert [contents(one) for one in kept] == [["inner"], ["outer"]]


def test_block_in_a_generator_ends_in_whatever_context_it_is_closed() -> None:
    kept: list[Trajectory] = []

    def work() -> Generator[int, None, None]:
        with recording(on_complete=kept.append) as recorder, recorder.span("action", 1):
            yield 1

    async def begin(generator: Generator[int, None, None]) -> int:
        return next(generator)

    generator = work()
    assert asyncio.run(begin(generator)) == 1
    generator.close()
    assert [one.outcome for one in kept] == ["partial"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_that_leaves_the_block_delivers_nothing(tmp_path: Path) -> None:
    delivered = tmp_path / "delivered"

    def deliver(_: Trajectory) -> None:
        with delivered.open("a") as file:
            file.write("once\n")

    child = 1
    try:
        with recording(tmp_path / "t.jsonl", on_complete=deliver) as recorder:
            recorder.step("action", "load")
            child = os.fork()
            if child == 0:
                raise SystemExit(0)
            os.waitpid(child, 0)
    finally:
        if child == 0:
            os._exit(0)
    assert delivered.read_text() == "once\n"
    assert contents(recorder.trajectory) == ["load"]
