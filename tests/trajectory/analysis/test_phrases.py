from __future__ import annotations

import pytest

from pytest_golden.trajectory.insight.reasoning import (
    find_broken_thoughts,
    find_hasty_conclusions,
    find_ignored_errors,
    find_surrender,
)
from pytest_golden.trajectory.model import Trajectory
from tests.trajectory.analysis.runs import START, run, thoughts

FAILED = ("tool_call", "pytest", {"error": "2 failed"})


def hasty(trajectory: Trajectory) -> list[str]:
    return [issue.type for issue in find_hasty_conclusions(trajectory)]


def test_conclusion_before_anything_it_could_follow_from_is_unsupported() -> None:
    trajectory = thoughts("Therefore X is true", outcome="failure")
    (issue,) = find_hasty_conclusions(trajectory)
    assert (issue.type, issue.severity, issue.evidence) == ("unsupported_conclusion", "medium", "'Therefore X is true'")
    assert issue.step_ids == (trajectory.steps[0].id,)


@pytest.mark.parametrize(
    "text",
    [
        "Therefore, based on the log, X is true",
        "Thus far nothing is known because of X",
        "There fore X",
        "So X is true",
    ],
)
def test_reasoned_conclusion_is_supported(text: str) -> None:
    assert hasty(thoughts(text)) == []


def test_conclusion_after_something_is_supported() -> None:
    assert hasty(thoughts("The log ends at line 3.", "Therefore the run was cut.")) == []
    assert hasty(run(("tool_call", "read"), ("reasoning", "Therefore it works. It is definitely done."))) == []


@pytest.mark.parametrize(
    "text",
    [
        "The bug is definitely in the parser.",
        "Let me see. I am sure that the join is wrong.",
        "It's obviously the cache.",
        "There is no doubt about the cause",
        "I'm 100% certain the key is lost",
    ],
)
def test_certainty_before_anything_was_looked_at_is_unsupported(text: str) -> None:
    assert hasty(thoughts("Let me think about it.", text)) == ["unsupported_certainty"]


@pytest.mark.parametrize(
    "text",
    [
        "I am not sure that the join is wrong.",
        "It isn't obviously the cache.",
        "Is it definitely the cache?",
        "It is definitely the cache, since the log says so.",
        "Make sure that the cache is empty.",
        "Certain rows are missing.",
    ],
)
def test_doubt_and_reasons_are_no_unsupported_certainty(text: str) -> None:
    assert hasty(thoughts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "I give up.",
        "I tried it all. I'm unable to solve this.",
        "I cannot complete the task.",
        "There's nothing more I can do.",
        "I am giving up here",
    ],
)
def test_giving_up_is_found_when_nothing_was_tried_after_it(text: str) -> None:
    trajectory = run(FAILED, ("reasoning", text), ("observation", "bye"), outcome="failure")
    (issue,) = find_surrender(trajectory)
    assert (issue.type, issue.severity, issue.step_ids) == ("gave_up", "high", (trajectory.steps[1].id,))


@pytest.mark.parametrize(
    "text",
    ["I will not give up.", "Before I give up, I look at the log.", "I never give up", "I can't complete the table"],
)
def test_refusing_to_give_up_is_not_giving_up(text: str) -> None:
    assert list(find_surrender(thoughts(text, outcome="failure"))) == []


def test_giving_up_and_going_on_is_not_giving_up() -> None:
    trajectory = run(("reasoning", "I give up."), ("tool_call", "try the mirror"), outcome="failure")
    assert list(find_surrender(trajectory)) == []
    assert list(find_surrender(thoughts("I give up."))) == []


@pytest.mark.parametrize("text", ["So", "then...", "It fails because", "The key is lost, and", "Therefore,"])
def test_thought_that_breaks_off_is_incomplete(text: str) -> None:
    (issue,) = find_broken_thoughts(thoughts(text).steps)
    assert (issue.type, issue.severity) == ("incomplete_logic", "low")


@pytest.mark.parametrize("text", ["X", "I think so", "Working...", "This is it, then", "band", "Check the operand"])
def test_short_thought_is_not_incomplete(text: str) -> None:
    assert list(find_broken_thoughts(thoughts(text).steps)) == []


def test_cut_thought_does_not_break_off_by_itself() -> None:
    trajectory = Trajectory.new(started_at=START).add_step("reasoning", "so and", metadata={"truncated_bytes": 9})
    assert list(find_broken_thoughts(trajectory.steps)) == []


@pytest.mark.parametrize("text", ["All tests passed.", "It worked, we are done", "No errors, everything is fine"])
def test_calling_a_failure_a_success_ignores_the_error(text: str) -> None:
    trajectory = run(FAILED, ("observation", "2 failed, 3 passed"), ("reasoning", text))
    (issue,) = find_ignored_errors(trajectory.steps)
    assert (issue.type, issue.severity) == ("ignored_error", "high")
    assert issue.step_ids == (trajectory.steps[0].id, trajectory.steps[2].id)


@pytest.mark.parametrize(
    "text",
    [
        "3 tests passed but 2 failed.",
        "The first part worked.",
        "It has not worked.",
        "I check whether it worked.",
        "Two tests are red.",
        "The load worked; the join did not.",
    ],
)
def test_mentioning_what_worked_ignores_nothing(text: str) -> None:
    assert list(find_ignored_errors(run(FAILED, ("reasoning", text)).steps)) == []


def test_success_after_a_second_try_ignores_nothing() -> None:
    trajectory = run(FAILED, ("tool_call", "pytest"), ("reasoning", "All tests passed."))
    assert list(find_ignored_errors(trajectory.steps)) == []
    assert list(find_ignored_errors(run(FAILED, ("reasoning", "Hm."), ("reasoning", "It worked.")).steps)) == []
