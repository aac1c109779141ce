from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import GoldenError
from pytest_golden.trajectory.jsonlines import iter_steps, read_outline, read_trajectory, write_trajectory
from pytest_golden.trajectory.keeping import StepIds
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.recorder import TrajectoryRecorder, current_recorder, recording

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator


@pytest.fixture(params=["memory", "file"])
def recorder(request: pytest.FixtureRequest, tmp_path: Path) -> TrajectoryRecorder:
    return TrajectoryRecorder(
        tmp_path / "t.jsonl" if request.param == "file" else None, metadata={"agent": "a"}, id="t"
    )


def contents(trajectory: Trajectory) -> list[Any]:
    return [step.content for step in trajectory.steps]


def test_what_is_recorded_is_a_trajectory(recorder: TrajectoryRecorder) -> None:
    first = recorder.step("action", "load", importance="high", metadata={"rows": 3}, duration_ms=5, context={"n": [1]})
    second = recorder.step("observation", {"rows": [1, None]}, parent_step_id=first)
    recorder.snapshot({"n": 1}, reason="half", step_id=second, metadata={"m": 1})
    assert not recorder.trajectory.is_completed
    recorder.complete("failure", ValueError("boom"))
    done = recorder.trajectory
    assert (done.id, done.metadata, done.outcome, done.error) == ("t", {"agent": "a"}, "failure", "ValueError: boom")
    assert [(step.id, step.type, step.parent_step_id) for step in done.steps] == [
        (first, "action", None),
        (second, "observation", first),
    ]
    load = done.steps[0]
    assert (load.importance, load.metadata, load.duration_ms, load.context) == ("high", {"rows": 3}, 5.0, {"n": [1]})
    kept = done.state_snapshots[0]
    assert (kept.state, kept.reason, kept.step_id, kept.metadata) == ({"n": 1}, "half", second, {"m": 1})
    assert done.duration_ms is not None
    assert done.duration_ms >= 0
    assert Trajectory.from_dict(done.to_dict()) == done


def test_what_was_given_is_frozen(recorder: TrajectoryRecorder) -> None:
    given_content, about = {"rows": [1]}, {"n": 1}
    recorder.step("action", given_content, metadata=about)
    given_content["rows"].append(2)
    about["n"] = 2
    assert (recorder.trajectory.steps[0].content, recorder.trajectory.steps[0].metadata) == ({"rows": [1]}, {"n": 1})


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({}, "type is missing"),
        ({"type": "act", "content": 1}, "type 'act' is unknown: give one of reasoning"),
        ({"type": ["act"], "content": 1}, "is unknown"),
        ({"type": "action"}, "content is missing"),
        ({"type": "action", "content": 1, "importance": "urgent"}, "importance 'urgent'"),
        ({"type": "action", "content": 1, "importance": 3}, "importance 3"),
        ({"type": "action", "content": 1, "metadata": 3}, "metadata must be a mapping"),
        ({"type": "action", "content": 1, "duration_ms": -1}, "duration_ms"),
        ({"type": "action", "content": 1, "parent_step_id": "step_x"}, "parent_step_id 'step_x' is not a step"),
        ({"type": "action", "content": 1, "parent_step_id": 5}, "parent_step_id 5 is not a step"),
        ({"type": "action", "content": 1, "timestamp": datetime(2026, 1, 1)}, "aware"),  # noqa: DTZ001
    ],
)
def test_what_is_not_allowed_is_refused_and_leaves_nothing(
    recorder: TrajectoryRecorder, said: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        recorder.step(**said)
    assert recorder.trajectory.steps == ()


def test_parent_of_another_recorder_is_unknown(recorder: TrajectoryRecorder) -> None:
    foreign = TrajectoryRecorder().step("action", 1)
    with pytest.raises(ValueError, match="parent_step_id"):
        recorder.step("action", 1, parent_step_id=foreign)
    with pytest.raises(ValueError, match="step_id"):
        recorder.snapshot(1, step_id=foreign)
    with pytest.raises(ValueError, match="state is missing"):
        recorder.snapshot()


def test_times_given_may_not_go_back(recorder: TrajectoryRecorder) -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(hours=1)
    recorder.step("action", 1, timestamp=early)
    recorder.step("action", 2, timestamp=late)
    with pytest.raises(ValueError, match="times never go back"):
        recorder.step("action", 3, timestamp=early)
    recorder.step("action", 4)
    recorder.complete()
    assert [step.timestamp for step in recorder.trajectory.steps] == [early, late, late]
    assert recorder.trajectory.completed_at == late


def test_completed_means_completed(recorder: TrajectoryRecorder) -> None:
    with recorder.span("action", "open") as span:
        with pytest.raises(ValueError, match="outcome 'won'"):
            recorder.complete("won")
        recorder.complete()
    assert recorder.is_completed
    for refused in (
        lambda: recorder.step("action", 1),
        lambda: recorder.snapshot(1),
        recorder.complete,
        lambda: recorder.span("action", 1).__enter__(),
    ):
        with pytest.raises(ValueError, match="is completed"):
            refused()
    assert [(step.id, step.duration_ms) for step in recorder.trajectory.steps] == [(span.id, None)]


def test_span_has_duration_children_notes_and_error(recorder: TrajectoryRecorder) -> None:
    with recorder.span("action", "outer", metadata={"a": 1}) as outer:
        inner = recorder.step("reasoning", "inner")
        outer.note(rows=3)
        with pytest.raises(ZeroDivisionError), recorder.span("tool_call", "bad", importance="low") as bad:
            _ = 1 / 0
        recorder.step("action", "top", parent_step_id=bad.id)
    last = recorder.step("action", "last")
    steps = {step.id: step for step in recorder.trajectory.steps}
    assert steps[outer.id].metadata == {"a": 1, "rows": 3}
    assert (steps[outer.id].importance, steps[outer.id].has_error) == ("medium", False)
    assert steps[bad.id].metadata == {"error": "ZeroDivisionError: division by zero"}
    assert steps[bad.id].importance == "critical"
    assert all(steps[one.id].duration_ms is not None for one in (outer, bad))
    assert [steps[one].parent_step_id for one in (inner, bad.id, last)] == [outer.id, outer.id, None]
    roots = recorder.trajectory.tree()
    assert [[(depth, node.step.content) for depth, node in root.walk()] for root in roots] == [
        [(0, "outer"), (1, "inner"), (1, "bad"), (2, "top")],
        [(0, "last")],
    ]


def test_span_of_another_recorder_is_no_parent(recorder: TrajectoryRecorder) -> None:
    other = TrajectoryRecorder()
    with recorder.span("action", "mine") as mine, other.span("action", "other"):
        inside = recorder.step("action", "inside")
        other.step("action", "its own")
    assert recorder.trajectory.steps[1].parent_step_id == mine.id
    assert recorder.trajectory.steps[1].id == inside
    assert other.trajectory.steps[1].parent_step_id == other.trajectory.steps[0].id


def test_tasks_nest_under_their_own_spans(recorder: TrajectoryRecorder) -> None:
    async def work(name: str) -> None:
        with recorder.span("action", name):
            await asyncio.sleep(0)
            recorder.step("action", f"in {name}")
            await asyncio.sleep(0)

    async def both() -> None:
        with recorder.span("action", "all"):
            await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    (root,) = recorder.trajectory.tree()
    assert [(node.step.content, [one.step.content for one in node.children]) for node in root.children] == [
        ("a", ["in a"]),
        ("b", ["in b"]),
    ]


def test_threads_lose_nothing_and_nest_under_their_own_spans(recorder: TrajectoryRecorder) -> None:
    def work(name: str) -> None:
        for number in range(200):
            with recorder.span("action", name):
                recorder.step("action", f"{name} {number}")

    with recorder.span("action", "main"):
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    done = recorder.trajectory
    assert len(done.steps) == 1 + 4 * 400
    assert Trajectory.from_dict(done.to_dict()) == done
    roots = done.tree()
    assert len(roots) == 801
    assert all(
        root.step.content == "main" or root.children[0].step.content.startswith(root.step.content) for root in roots
    )


def test_signal_in_the_middle_of_a_step_does_not_hang(recorder: TrajectoryRecorder) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: recorder.step("observation", "signal") and None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for number in range(3000):
            recorder.step("action", number)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [one for one in contents(recorder.trajectory) if one != "signal"] == list(range(3000))


def test_large_metadata_context_and_state_are_cut_and_marked(recorder: TrajectoryRecorder) -> None:
    large = "x" * (3 * 1024 * 1024)
    told = recorder.step("action", "load", metadata={"rows": 5, "sql": large})
    recorder.step("action", "load", context={"sql": large})
    recorder.snapshot({"rows": [large]}, step_id=told, metadata={"sql": large})
    recorder.snapshot({"rows": [1]}, metadata={"n": 1})
    first, second = recorder.trajectory.steps
    assert (first.metadata["rows"], len(first.metadata["sql"])) == (5, 1024 * 1024)
    assert first.metadata["truncated_bytes"] == 2 * 1024 * 1024
    assert len(second.context) == 1024 * 1024
    assert second.metadata["truncated_bytes"] > 2 * 1024 * 1024
    cut, whole = recorder.trajectory.state_snapshots
    assert (len(cut.state), len(cut.metadata["sql"]), cut.step_id) == (1024 * 1024, 1024 * 1024, told)
    assert cut.metadata["truncated_bytes"] > 4 * 1024 * 1024
    assert (whole.state, whole.metadata) == ({"rows": [1]}, {"n": 1})


def test_most_that_is_kept_of_a_step_can_be_read_back(tmp_path: Path) -> None:
    recorder = TrajectoryRecorder(tmp_path / "t.jsonl")
    worst = "\x01" * (2 << 20)
    recorder.step(
        "action", worst, metadata={"a": worst, "b": [worst], **{str(n): worst for n in range(5)}}, context=worst
    )
    recorder.snapshot({"state": worst})
    recorder.complete()
    read = read_trajectory(tmp_path / "t.jsonl")
    assert (len(read.steps), len(read.state_snapshots)) == (1, 1)


def test_large_content_is_cut_and_marked(recorder: TrajectoryRecorder) -> None:
    recorder.step("action", "x" * (3 * 1024 * 1024), metadata={"a": 1})
    recorder.step("action", {"rows": ["é" * 1024 * 1024]})
    recorder.step("action", b"y" * (1024 * 1024 + 1))
    text, rows, data = recorder.trajectory.steps
    assert (len(text.content), text.metadata) == (1024 * 1024, {"a": 1, "truncated_bytes": 2 * 1024 * 1024})
    assert rows.content.startswith('{"rows": ["é')
    assert rows.metadata["truncated_bytes"] > 1024 * 1024
    assert data.metadata["truncated_bytes"] == 1


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no")


ANY_CONTENT: list[Any] = [
    *(None, True, 5, 10**5000, 1.5, float("nan"), float("inf"), "é\ud800\x00", b"\xff", {1: 2}, {"a": {"b": (1, {2})}}),
    *([1, "a", None, False, 2.5], [float("nan")], [10**400], (1, 2), {3}, Odd(), ValueError("x"), {"é": "\n"}),
]


@pytest.mark.parametrize("place", range(len(ANY_CONTENT)))
def test_content_of_any_kind_is_one_line_that_says_what_to_dict_says(tmp_path: Path, place: int) -> None:
    content = ANY_CONTENT[place]
    path = tmp_path / "t.jsonl"
    ours, memory = TrajectoryRecorder(path), TrajectoryRecorder()
    for recorder in (ours, memory):
        recorder.step("action", content, metadata={"key": content}, context=content)
    (line,) = path.read_bytes().splitlines()[1:]
    said = json.loads(line)
    for key in ("content", "metadata", "context"):
        assert said[key] == memory.trajectory.steps[0].to_dict()[key]
    assert len(read_trajectory(path).steps) == 1


def test_content_that_holds_itself_is_recorded(recorder: TrajectoryRecorder) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    recorder.step("action", cycle)
    assert json.dumps(recorder.trajectory.to_dict())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(st.tuples(JSON_VALUES, st.dictionaries(st.text(), JSON_VALUES, max_size=3)), max_size=5))
def test_file_reads_back_as_what_memory_gives(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    path = tmp_path_factory.mktemp("law") / "t.jsonl"
    ours, memory = TrajectoryRecorder(path, id="t"), TrajectoryRecorder(id="t")
    for recorder in (ours, memory):
        for content, metadata in steps:
            recorder.step("action", content, metadata=metadata)
        recorder.complete()
    pairs = zip(ours.trajectory.steps, memory.trajectory.steps, strict=True)
    assert all((one.content, one.metadata) == (other.content, other.metadata) for one, other in pairs)
    write_trajectory(path.parent / "again", ours.trajectory)
    assert read_trajectory(path.parent / "again") == ours.trajectory


def test_killed_process_leaves_every_step(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    script = (
        "import os, signal, sys\n"
        "from pytest_golden.trajectory.recorder import TrajectoryRecorder\n"
        "r = TrajectoryRecorder(sys.argv[1])\n"
        "with r.span('action', 'all'):\n"
        "    for n in range(50): r.step('action', n)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == -signal.SIGKILL
    left = read_trajectory(path)
    assert contents(left) == ["all", *range(50)]
    assert not left.is_completed
    assert tuple(iter_steps(path)) == left.steps


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_writes_nothing_into_its_parents_file(tmp_path: Path) -> None:
    recorder = TrajectoryRecorder(tmp_path / "t.jsonl")
    recorder.step("action", "before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            recorder.step("action", "child")
            recorder.complete()
            code = 0 if recorder.is_forked and recorder.lost_count == 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    recorder.step("action", "after")
    recorder.complete()
    assert not recorder.is_forked
    assert contents(recorder.trajectory) == ["before", "after"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_goes_on_in_its_own_memory_while_another_thread_holds_the_lock() -> None:
    recorder = TrajectoryRecorder()
    first = recorder.step("action", "before")
    reading, writing = os.pipe()
    with recorder._lock:
        thread = threading.Thread(target=lambda: recorder.step("action", "waits"))
        thread.start()
        child = os.fork()
        if child == 0:
            made = recorder.step("action", "child", parent_step_id=first)
            os.write(writing, f"{made} {contents(recorder.trajectory)}".encode())
            os._exit(0)
    thread.join()
    os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    os.close(writing)
    assert said.endswith(" ['before', 'child']")
    assert said.split()[0] not in {step.id for step in recorder.trajectory.steps}


def test_full_disk_costs_steps_with_one_warning_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    recorder = TrajectoryRecorder("/dev/full")
    with recorder.span("action", "all"):
        for number in range(3):
            recorder.step("action", number)
    recorder.snapshot(1)
    assert recorder.lost_count == 5
    recorder.complete()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "/dev/full: No space left on device" in caplog.messages[0]
    assert caplog.messages[1].startswith("5 steps of trajectory")
    assert recorder.trajectory.steps == ()
    assert recorder.trajectory.outcome == "success"


def test_disk_that_was_full_for_a_while_leaves_whole_lines(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\n"
        "from pytest_golden.trajectory.recorder import TrajectoryRecorder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "r = TrajectoryRecorder(sys.argv[1])\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "r.step('action', 'first')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))\n"
        "for n in range(20): r.step('action', n)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "r.step('action', 'last')\n"
        "r.complete()\n"
        "print(r.lost_count)\n"
    )
    path = tmp_path / "t.jsonl"
    done = subprocess.run([sys.executable, "-c", script, path], check=True, capture_output=True, text=True)
    left = read_trajectory(path)
    kept = contents(left)
    assert (kept[0], kept[-1]) == ("first", "last")
    assert len(kept) == 22 - int(done.stdout)
    assert left.metadata["lost_steps"] == int(done.stdout) > 0
    assert all(json.loads(line) for line in path.read_bytes().splitlines())
    assert done.stderr.count("steps cannot be written and are lost") == 1


@pytest.mark.parametrize("name", ["no such folder/t.jsonl", "file/t.jsonl"])
def test_file_that_cannot_be_made_costs_the_steps_alone(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    recorder = TrajectoryRecorder(tmp_path / name)
    recorder.step("action", 1)
    recorder.complete()
    assert recorder.lost_count == 1
    assert "steps cannot be written" in caplog.messages[0]
    assert recorder.trajectory.outcome == "success"


def test_pipe_that_nobody_reads_does_not_hold_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    recorder = TrajectoryRecorder(tmp_path / "pipe")
    for _ in range(30):
        recorder.step("action", "x" * 5000)
    assert recorder.lost_count > 0
    assert os.read(reading, 100_000).startswith(b'{"record": "trajectory"')
    recorder.step("action", "y")
    with recorder.span("action", "z"):
        pass
    lines = os.read(reading, 100_000).splitlines()
    os.close(reading)
    recorder.complete()
    assert [json.loads(line).get("content") for line in lines[-3:]] == ["y", "z", None]


def test_interrupt_in_the_middle_of_a_write_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = TrajectoryRecorder(tmp_path / "t.jsonl")
    recorder.step("action", 1)
    write = os.write

    def interrupt(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:20])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            recorder.step("action", 2)
    recorder.step("action", 3)
    recorder.complete()
    assert contents(recorder.trajectory) == [1, 3]
    assert all(json.loads(line) for line in (tmp_path / "t.jsonl").read_bytes().splitlines())


def test_file_replaces_what_was_there_at_once_and_a_folder_gets_a_file_each(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("something else")
    first = TrajectoryRecorder(path)
    first.step("action", "first")
    second = TrajectoryRecorder(path)
    first.step("action", "goes nowhere")
    second.step("action", "second")
    assert contents(second.trajectory) == ["second"]
    with pytest.raises(GoldenError, match="by now"):
        _ = first.trajectory
    own = [TrajectoryRecorder(tmp_path).path for _ in range(2)]
    assert len(set(own)) == 2
    assert sorted(tmp_path.iterdir()) == sorted([path, *(one for one in own if one is not None)])


def test_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = TrajectoryRecorder("t.jsonl")
    monkeypatch.chdir("/")
    recorder.step("action", 1)
    assert recorder.path == tmp_path / "t.jsonl"
    assert contents(recorder.trajectory) == [1]


@pytest.mark.parametrize("place", [3, 10**30, -1, "x", 1])
def test_place_of_an_end_that_is_wrong_costs_the_end_alone(tmp_path: Path, place: Any) -> None:
    path = tmp_path / "t.jsonl"
    recorder = TrajectoryRecorder(path)
    with recorder.span("action", "all"):
        pass
    header, step, *rest = path.read_text().splitlines()
    path.write_text("\n".join([header, json.dumps({**json.loads(step), "end_offset": place}), *rest]))
    assert [(one.content, one.duration_ms) for one in read_trajectory(path).steps] == [("all", None)]


def test_outline_has_all_but_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    recorder = TrajectoryRecorder(path, metadata={"a": 1})
    recorder.step("action", 1)
    recorder.snapshot(1)
    assert read_outline(path)[0].outcome is None
    recorder.complete("partial")
    assert read_outline(path) == (recorder.trajectory.without_steps(), 1, 1)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[1] + b"\n")
    outline, total_steps, _ = read_outline(path)
    assert (total_steps, outline.outcome) == (2, None)


def test_ids_are_known_again_without_being_kept() -> None:
    ids, other = StepIds(), StepIds()
    made = [ids.make() for _ in range(2000)]
    assert sorted(made) == made
    assert len(set(made)) == 2000
    assert all(map(ids.knows, made))
    assert not any(map(other.knows, made))
    ids.renew()
    assert ids.knows(made[-1])
    assert ids.knows(ids.make())
    for wrong in (None, "", "step_", made[0][:-1], f"snap{made[0][4:]}"):
        assert not ids.knows(wrong)


def say(content: Any) -> None:
    recorder = current_recorder()
    assert recorder is not None
    recorder.step("action", content)


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
