from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.model import Trajectory, grow_tree


def test_steps_stand_below_their_parents_in_order() -> None:
    grown = Trajectory.new().add_step("action", "a").add_step("action", "b")
    first, second = (step.id for step in grown.steps)
    grown = grown.add_step("action", "a1", parent_step_id=first).add_step("action", "b1", parent_step_id=second)
    grown = grown.add_step("action", "a2", parent_step_id=first)
    drawn = [[(depth, node.step.content) for depth, node in root.walk()] for root in grown.tree()]
    assert drawn == [[(0, "a"), (1, "a1"), (1, "a2")], [(0, "b"), (1, "b1")]]
    assert Trajectory.new().tree() == ()


def test_very_deep_trees_are_grown_and_walked() -> None:
    grown = Trajectory.new().add_step("action", 0)
    for number in range(1, 5000):
        grown = grown.add_step("action", number, parent_step_id=grown.steps[-1].id)
    (root,) = grown.tree()
    assert [(depth, node.step.content) for depth, node in root.walk()] == [(one, one) for one in range(5000)]


def test_child_whose_parent_is_not_there_is_a_root() -> None:
    grown = Trajectory.new().add_step("action", "a")
    grown = grown.add_step("action", "b", parent_step_id=grown.steps[0].id)
    assert [root.step.content for root in grow_tree(grown.steps[1:])] == ["b"]


@given(st.lists(st.integers(-1, 30), max_size=30))
def test_every_step_is_in_the_tree_once(parents: list[int]) -> None:
    grown = Trajectory.new()
    for number, parent in enumerate(parents):
        above = grown.steps[parent % number].id if number and parent >= 0 else None
        grown = grown.add_step("action", number, parent_step_id=above)
    nodes = [node for root in grown.tree() for _, node in root.walk()]
    assert sorted(node.step.content for node in nodes) == list(range(len(parents)))
    assert all(child.step.parent_step_id == node.step.id for node in nodes for child in node.children)
