from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.building import build_trajectory, merge_trajectories
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import where
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from pytest_golden.trajectory.step import Step
from pytest_golden.trajectory.vocabulary import Importance, StepType

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
END = START + timedelta(seconds=10)


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _build(*readings: StepReading, outcome: str = "success", error: str | None = None) -> Trajectory:
    return build_trajectory(
        readings, started_at=START, completed_at=END, outcome=outcome, error=error, metadata={"run": 1}
    )


def test_readings_are_merged_by_time_and_each_keeps_its_order() -> None:
    first = StepReading((StepDraft("a", timestamp=_at(1)), StepDraft("b"), StepDraft("c", timestamp=_at(5))))
    second = StepReading((StepDraft("d", timestamp=_at(3)), StepDraft("e", timestamp=_at(2))))
    trajectory = _build(first, second)
    assert [step.content for step in trajectory.steps] == ["a", "b", "d", "e", "c"]
    assert (trajectory.duration_ms, trajectory.outcome, trajectory.metadata) == (10_000.0, "success", {"run": 1})


def test_times_are_clamped_to_the_run() -> None:
    reading = StepReading((StepDraft("a", timestamp=_at(-100)), StepDraft("b", timestamp=_at(100)), StepDraft("c")))
    assert [step.timestamp for step in _build(reading).steps] == [START, END, END]
    backwards = build_trajectory([], started_at=START, completed_at=START - timedelta(1), outcome="success")
    assert (backwards.completed_at, backwards.duration_ms) == (START, 0.0)


def test_parents_are_found_also_when_told_of_afterwards() -> None:
    drafts = (
        StepDraft("child", parent_step_id="p", timestamp=_at(1)),
        StepDraft("grandchild", id="g", parent_step_id="c"),
        StepDraft("parent", id="p", timestamp=_at(0.5)),
        StepDraft("late child", id="c", parent_step_id="p"),
    )
    steps = {step.content: step for step in _build(StepReading(drafts)).steps}
    assert list(steps) == ["parent", "child", "late child", "grandchild"]
    assert steps["child"].parent_step_id == steps["late child"].parent_step_id == "p"
    assert steps["grandchild"].parent_step_id == "c"


def test_unknown_and_circular_parents_are_dropped_with_a_warning() -> None:
    drafts = (
        StepDraft("a", id="a", parent_step_id="b"),
        StepDraft("b", id="b", parent_step_id="a"),
        StepDraft("own", id="own", parent_step_id="own"),
        StepDraft("orphan", parent_step_id="nobody"),
    )
    trajectory = _build(StepReading(drafts, lost_count=2, warnings=("w",)))
    assert sum(step.parent_step_id is None for step in trajectory.steps) == 3
    assert trajectory.metadata["lost_steps"] == 2
    assert trajectory.metadata["step_warnings"][0] == "w"
    assert trajectory.metadata["step_warnings"][1].startswith("3 steps name a parent")


def test_ids_of_two_readings_do_not_meet() -> None:
    reading = StepReading((StepDraft("p", id="1"), StepDraft("c", parent_step_id="1"), StepDraft("twin", id="1")))
    steps = _build(reading, reading).steps
    assert len({step.id for step in steps}) == 6
    parents = [step.parent_step_id for step in steps if step.content == "c"]
    assert parents == [step.id for step in steps if step.content == "p"]


def test_a_run_without_steps_that_failed_leaves_a_critical_observation() -> None:
    trajectory = _build(outcome="error", error="command not found: dbt")
    (step,) = trajectory.steps
    assert (step.type, step.importance, step.content) == ("observation", "critical", "command not found: dbt")
    assert step.has_error
    assert (trajectory.outcome, trajectory.error) == ("error", "command not found: dbt")
    assert "outcome timeout" in _build(outcome="timeout").steps[0].content
    assert _build().steps == ()


def test_finished_steps_of_a_plugged_in_reader_are_taken_as_well() -> None:
    step = Step("s", StepType.TOOL_CALL, "x", _at(1), 5, {"a": 1}, "c", Importance.HIGH)
    (built,) = _build(StepReading((step,))).steps  # type: ignore[arg-type]
    assert built == step


@given(
    st.lists(
        st.tuples(st.none() | st.integers(0, 8), st.none() | st.integers(0, 9), st.none() | st.integers(-5, 20)),
        max_size=12,
    )
)
def test_any_drafts_become_a_trajectory_with_all_of_them(
    facts: list[tuple[int | None, int | None, int | None]],
) -> None:
    drafts = tuple(
        StepDraft(
            number,
            id=None if own is None else str(own),
            parent_step_id=None if parent is None else str(parent),
            timestamp=None if at is None else _at(at),
        )
        for number, (own, parent, at) in enumerate(facts)
    )
    trajectory = _build(StepReading(drafts), StepReading(drafts))
    assert sorted(step.content for step in trajectory.steps) == sorted([*range(len(facts))] * 2)
    assert Trajectory.from_dict(trajectory.to_dict()) == trajectory


def a_trajectory(name: str, *contents: str) -> Trajectory:
    grown = Trajectory.new(id=name)
    for content in contents:
        grown = grown.add_step("action", content)
    return grown


def test_of_several_with_one_id_the_first_is_kept() -> None:
    first, second = a_trajectory("a", "x").complete(), a_trajectory("b", "x", "y").complete("failure")
    batch = merge_trajectories(iter([first, second, a_trajectory("a", "z"), a_trajectory("c", "y")]))
    assert (len(batch), batch.trajectories[:2], list(batch)[:2]) == (3, (first, second), [first, second])
    assert [(name, step.content) for name, step in batch.query('content="y"')] == [("b", "y"), ("c", "y")]
    assert batch.query(where(text="x")) == (("a", first.steps[0]), ("b", second.steps[0]))
    found = batch.statistics()
    assert (found.total_trajectories, found.total_steps) == (3, 4)
    assert found.outcomes == {"success": 1, "failure": 1}
    assert found.to_dict() == {
        "total_trajectories": 3,
        "total_steps": 4,
        "outcomes": {"success": 1, "failure": 1},
    }


def test_nothing_is_a_batch_too() -> None:
    batch = merge_trajectories([])
    assert (len(batch), batch.query(where()), batch.statistics().outcomes) == (0, (), {})


def test_what_is_no_trajectory_is_refused() -> None:
    with pytest.raises(ValueError, match="must hold Trajectory values, not 5"):
        merge_trajectories([5])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="column 1"):
        merge_trajectories([]).query("x=1")
