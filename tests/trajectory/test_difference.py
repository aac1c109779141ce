from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.difference import StepChange, diff_trajectories, is_fleeting
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Step

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run_of(*contents: Any) -> Trajectory:
    trajectory = Trajectory.new()
    for content in contents:
        trajectory = trajectory.add_step("action", content)
    return trajectory


def with_metadata(**metadata: Any) -> Trajectory:
    return Trajectory.new().add_step("action", "load", metadata=metadata)


def test_ids_times_and_durations_do_not_count() -> None:
    left, right = Trajectory.new(), Trajectory.new(started_at=NOON)
    for number in range(3):
        parent: dict[str, Any] = {"parent_step_id": left.steps[0].id} if number else {}
        left = left.add_step("action", number, duration_ms=1.0, metadata={"invocation_id": "a", "took_ms": 1}, **parent)
        parent = {"parent_step_id": right.steps[0].id} if number else {}
        moment = NOON + timedelta(hours=number)
        about = {"invocation_id": "b", "took_ms": 2, "started_at": "x"}
        right = right.add_step("action", number, duration_ms=9.0, timestamp=moment, metadata=about, **parent)
    difference = diff_trajectories(left.complete(), right.complete(completed_at=NOON + timedelta(days=1)))
    assert difference.identical
    assert (difference.index, difference.left_step_id, difference.right_step_id) == (None, None, None)
    assert difference.changes == ()
    assert str(difference) == "the trajectories are identical"


def test_first_step_that_differs_is_named_with_both_ids_and_what_differs() -> None:
    left, right = run_of("extract", "load", "publish"), run_of("extract", "lod", "publish")
    difference = diff_trajectories(left, right)
    assert not difference.identical
    assert difference.index == 1
    assert (difference.left_step_id, difference.right_step_id) == (left.steps[1].id, right.steps[1].id)
    assert difference.changes == (("content", "load", "lod"),)
    assert str(difference) == "they part at step 2, 'load': content 'load' -> 'lod'"


@pytest.mark.parametrize("swap", [False, True])
def test_longer_one_parts_at_the_first_missing_step(swap: bool) -> None:
    long, short = run_of("a", "b", "c"), run_of("a")
    difference = diff_trajectories(short, long) if swap else diff_trajectories(long, short)
    assert difference.index == 1
    ids = (difference.left_step_id, difference.right_step_id)
    assert ids == ((None, long.steps[1].id) if swap else (long.steps[1].id, None))
    assert difference.changes == (("content", None, "b") if swap else ("content", "b", None),)
    told = "the left ends, the right goes on with 'b'" if swap else "the left goes on with 'b', the right ends"
    assert str(difference) == f"they part at step 2: {told}"


def test_every_field_that_differs_is_told() -> None:
    left = run_of("root").add_step("action", "a", metadata={"rows": {"in": 5, "out": 4}, "old": 1}, context="x")
    right = run_of("root")
    right = right.add_step(
        "tool_call",
        "a",
        metadata={"rows": {"in": 5, "out": 3}, "error": "boom"},
        context="y",
        importance="critical",
        parent_step_id=right.steps[0].id,
    )
    difference = diff_trajectories(left, right)
    assert difference.changes == (
        ("type", "action", "tool_call"),
        ("metadata.rows.out", 4, 3),
        ("metadata.old", 1, None),
        ("metadata.error", None, "boom"),
        ("context", "x", "y"),
        ("importance", "medium", "critical"),
        ("parent_step_id", None, right.steps[0].id),
    )
    assert str(difference).endswith(
        "type 'action' -> 'tool_call', metadata.rows.out 4 -> 3, metadata.old 1 -> none and 4 more"
    )


def test_same_steps_can_end_in_another_way() -> None:
    left, right = run_of("a").complete(), run_of("a").complete("failure", "disk full")
    difference = diff_trajectories(left, right)
    assert (difference.identical, difference.index) == (False, None)
    assert difference.changes == (("outcome", "success", "failure"), ("error", None, "disk full"))
    assert str(difference) == "the steps are the same; outcome 'success' -> 'failure', error none -> 'disk full'"
    assert diff_trajectories(left, left.reopen()).changes == (("outcome", "success", None),)


def test_snapshots_are_compared_after_the_steps() -> None:
    plain = run_of("a", "b")
    left = plain.add_snapshot({"rows": 1}, step_id=plain.steps[0].id).add_snapshot({"rows": 2})
    other = run_of("a", "b")
    same = other.add_snapshot({"rows": 1}, step_id=other.steps[0].id).add_snapshot({"rows": 2})
    assert diff_trajectories(left, same).identical
    elsewhere = other.add_snapshot({"rows": 9}, step_id=other.steps[1].id, reason="end", metadata={"by": "me"})
    assert [change.field for change in diff_trajectories(left, elsewhere).changes] == [
        "state_snapshots[0].state",
        "state_snapshots[0].reason",
        "state_snapshots[0].metadata.by",
        "state_snapshots[0].step_id",
    ]
    assert diff_trajectories(left, plain).changes == (("state_snapshots[0].state", {"rows": 1}, None),)
    assert diff_trajectories(plain, left).changes == (("state_snapshots[0].state", None, {"rows": 1}),)


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise ArithmeticError

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("content", [float("nan"), (1, [2, b"\xff"]), {3, 1}, {"x": (float("inf"), None)}, NOON])
def test_what_was_written_and_read_back_is_the_same(content: Any) -> None:
    trajectory = Trajectory.new().add_step("action", content, metadata={"kept": content}).complete()
    read_back = Trajectory.from_dict(json.loads(json.dumps(trajectory.to_dict())))
    assert diff_trajectories(trajectory, read_back).identical
    assert diff_trajectories(read_back, trajectory).identical


def test_content_of_any_kind_can_be_compared_and_shown() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for content in (cycle, deep, Hostile()):
        assert diff_trajectories(run_of(content), run_of("x")).index == 0
        assert str(diff_trajectories(run_of(content), run_of("x")))
        assert json.dumps(diff_trajectories(run_of(content), run_of("x")).to_dict())
    assert diff_trajectories(run_of(cycle), run_of(cycle)).identical
    assert "'a b c'" in str(diff_trajectories(run_of("a\n b \tc"), run_of("x")))
    assert len(str(diff_trajectories(run_of("x" * 1_000_000), run_of("y" * 1_000_000)))) < 400


def test_deeply_nested_metadata_is_compared_as_a_whole_at_last() -> None:
    def nested(value: int) -> dict[str, Any]:
        found: dict[str, Any] = {"x": value}
        for _ in range(50):
            found = {"x": found}
        return found

    (change,) = diff_trajectories(with_metadata(**nested(1)), with_metadata(**nested(2))).changes
    assert change.field == "metadata" + ".x" * 21


def test_a_key_with_none_differs_from_no_key() -> None:
    assert diff_trajectories(with_metadata(rows=None), with_metadata()).changes == (("metadata.rows", None, None),)


@pytest.mark.parametrize(
    "key",
    [
        "duration",
        "duration_ms",
        "started_at",
        "timestamp",
        "elapsed",
        "executionTime",
        "run_id",
        "id",
        "pid",
        "traceId",
        "thread.id",
        "thread.name",
        "process.pid",
        "gen_ai.response.id",
        "gen_ai.tool.call.id",
    ],
)
def test_keys_that_differ_every_time_do_not_count(key: str) -> None:
    assert is_fleeting(key)
    assert diff_trajectories(with_metadata(**{key: 1}), with_metadata(**{key: 2})).identical


@pytest.mark.parametrize(
    "key", ["rows", "customer_id", "status", "format", "timeout", "paid", "", "-", "ms_teams", "call_id", "port"]
)
def test_other_keys_count(key: str) -> None:
    assert not is_fleeting(key)
    assert not diff_trajectories(with_metadata(**{key: 1}), with_metadata(**{key: 2})).identical


@pytest.mark.parametrize(
    ("left", "right", "identical"),
    [(40001, 40002, True), (5432, 40002, False), (5432, 5433, False), (40001, None, False), ("40001", 40002, False)],
)
def test_free_ports_do_not_count_and_chosen_ones_do(left: Any, right: Any, identical: bool) -> None:
    about = [with_metadata(**{"network.peer.port": port}) for port in (left, right)]
    assert diff_trajectories(*about).identical is identical


def test_dict_form_is_json() -> None:
    plain = diff_trajectories(run_of("a", {1, 2}), run_of("a", b"\xff")).to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["changes"] == [{"field": "content", "left": [1, 2], "right": "\\xff"}]
    assert (plain["identical"], plain["index"]) == (False, 1)


def test_long_trajectories_with_a_parent_chain_are_compared_whole() -> None:
    steps = [
        Step(f"s{n}", "action", f"step {n}", NOON, metadata={"rows": n}, parent_step_id=f"s{n - 1}" if n else None)  # type: ignore[arg-type]
        for n in range(10_000)
    ]
    long = Trajectory.from_dict({**Trajectory.new().to_dict(), "steps": [step.to_dict() for step in steps]})
    assert diff_trajectories(long, long).identical


contents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(contents, max_size=5), st.lists(contents, max_size=5))
def test_both_directions_agree(left: list[Any], right: list[Any]) -> None:
    there, back = diff_trajectories(run_of(*left), run_of(*right)), diff_trajectories(run_of(*right), run_of(*left))
    assert (there.identical, there.index) == (back.identical, back.index)
    assert [change.field for change in there.changes] == [change.field for change in back.changes]
    if there.index is not None:
        assert there.index <= min(len(left), len(right))
    assert isinstance(str(there), str)


def test_changes_are_plain_triples() -> None:
    assert StepChange("content", 1, 2) == ("content", 1, 2)
    assert str(StepChange("content", 1.5, None)) == "content 1.5 -> none"
