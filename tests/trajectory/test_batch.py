from __future__ import annotations

import pytest

from pytest_golden.trajectory.building import merge_trajectories
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import where


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
