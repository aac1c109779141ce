from __future__ import annotations

from pytest_golden.trajectory.insight.reasoning import find_contradictions
from tests.trajectory.analysis.runs import run, thoughts


def test_thought_that_denies_an_earlier_one_is_a_contradiction() -> None:
    trajectory = thoughts("The value is positive", "Let me look at the code.", "The value is not positive")
    (issue,) = find_contradictions(trajectory.steps)
    assert (issue.type, issue.severity) == ("contradiction", "high")
    assert issue.evidence == "'The value is positive' against 'The value is not positive'"
    assert issue.step_ids == (trajectory.steps[0].id, trajectory.steps[2].id)


def test_know_and_now_are_no_negations() -> None:
    trajectory = thoughts("I see the answer", "I know the answer", "Now I see the answer", "Nothing is lost")
    assert list(find_contradictions(trajectory.steps)) == []


def test_what_was_done_in_between_may_have_changed_it() -> None:
    trajectory = run(
        ("reasoning", "The file does not exist"),
        ("tool_call", "create the file"),
        ("reasoning", "The file exists"),
    )
    assert list(find_contradictions(trajectory.steps)) == []


def test_correction_of_oneself_is_none() -> None:
    trajectory = thoughts("The value is positive", "Wait, the value is not positive", "The value is positive")
    (issue,) = find_contradictions(trajectory.steps)
    assert issue.step_ids == (trajectory.steps[1].id, trajectory.steps[2].id)


def test_both_sides_may_be_weighed_within_one_thought() -> None:
    trajectory = thoughts("The table is empty. The table is not empty.")
    assert list(find_contradictions(trajectory.steps)) == []


def test_saying_the_same_twice_is_none() -> None:
    trajectory = thoughts("The value is positive", "The value is positive", "The value isn't negative")
    assert list(find_contradictions(trajectory.steps)) == []


def test_thoughts_of_two_agents_at_once_are_held_apart() -> None:
    trajectory = run(("reasoning", "Look at orders"), ("reasoning", "Look at customers"))
    for parent, text in zip(trajectory.steps, ("The table is empty", "The table is not empty"), strict=True):
        trajectory = trajectory.reopen().add_step("reasoning", text, parent_step_id=parent.id)
    assert list(find_contradictions(trajectory.steps)) == []


def test_content_of_any_type_can_be_read() -> None:
    trajectory = run(
        ("reasoning", {"thought": "The value is positive"}),
        ("reasoning", ["The value", "is not positive", 3]),
        ("reasoning", None),
        ("reasoning", b"\xff"),
        ("reasoning", {"text": "The value is not positive"}),
    )
    (issue,) = find_contradictions(trajectory.steps)
    assert issue.step_ids == (trajectory.steps[0].id, trajectory.steps[4].id)
