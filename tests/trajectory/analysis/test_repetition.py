from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.insight.reasoning import find_loops
from tests.trajectory.analysis.runs import looping_agent, run, thoughts

if TYPE_CHECKING:
    from pytest_golden.trajectory.insight.model import ReasoningIssue


def loops(*steps: tuple[Any, ...], outcome: str = "failure") -> list[ReasoningIssue]:
    return list(find_loops(run(*steps, outcome=outcome)))


def test_agent_that_never_leaves_its_loop_is_found_at_once() -> None:
    trajectory = looping_agent()
    (issue,) = find_loops(trajectory)
    assert (issue.type, issue.severity) == ("circular_reasoning", "high")
    assert issue.evidence.startswith("'I need to read config.yaml")
    assert issue.evidence.endswith("6 times, with nothing new in between")
    assert issue.step_ids == tuple(step.id for step in trajectory.steps)


def test_the_same_thought_three_times_is_circular_though_it_succeeds() -> None:
    trajectory = thoughts(
        "First we analyze the data", "First we analyze the data again", "First we analyze the data once more"
    )
    (issue,) = find_loops(trajectory)
    assert (issue.type, issue.severity) == ("circular_reasoning", "medium")


def test_numbered_thoughts_are_different_ones() -> None:
    assert list(find_loops(thoughts(*(f"Reasoning step {number}" for number in range(20))))) == []


def test_the_same_tests_after_different_changes_are_no_loop() -> None:
    turns = [
        (("tool_call", "edit", {"line": line}), ("tool_call", "pytest"), ("reasoning", "Run the tests."))
        for line in range(9)
    ]
    assert loops(*(step for turn in turns for step in turn)) == []


def test_tool_call_with_the_same_arguments_is_repeated() -> None:
    (issue,) = loops(
        *[("tool_call", "fetch", {"url": "u", "attempt": n, "started_at": n}) for n in range(4)], ("action", "go")
    )
    assert (issue.type, issue.severity) == ("repeated_action", "medium")
    assert "4 times" in issue.evidence
    assert loops(*[("tool_call", "fetch", {"page": n}) for n in range(4)]) == []


def test_polling_that_succeeded_hardly_matters() -> None:
    (issue,) = loops(*[("tool_call", "status")] * 5, ("observation", "done"), outcome="success")
    assert issue.severity == "low"


def test_batches_of_equal_actions_that_work_are_no_loop() -> None:
    assert loops(*[("action", "insert batch")] * 50) == []
    assert loops(*[("observation", "ok")] * 50) == []


def test_failing_action_that_is_tried_unchanged_is_repeated() -> None:
    (issue,) = loops(*[("action", "load", {"error": "locked"})] * 3)
    assert issue.type == "repeated_action"


def test_one_retry_is_no_loop() -> None:
    assert loops(*[("tool_call", "load", {"error": "locked"})] * 2, ("tool_call", "load")) == []


def test_each_stretch_is_an_issue_of_its_own() -> None:
    first, second = loops(*[("tool_call", "a")] * 3, ("action", "new"), *[("tool_call", "a")] * 2)
    assert first.severity == "medium"
    assert second.severity == "high"


def test_thoughts_of_fillers_alone_repeat_and_those_of_one_word_do_not() -> None:
    assert len(loops(*[("reasoning", "Let me try again.")] * 3)) == 1
    assert loops(*[("reasoning", "Let me try again."), ("reasoning", "So let us try")] * 1) == []
    assert loops(*[("reasoning", "Thinking...")] * 9, *[("reasoning", "???")] * 3) == []


def test_ids_of_a_very_long_loop_are_bounded() -> None:
    (issue,) = loops(*[("reasoning", "again and again")] * 500)
    assert len(issue.step_ids) == 50


def test_spans_of_the_same_name_are_no_loop() -> None:
    chat = ("reasoning", "chat gpt-4o", {"gen_ai.operation.name": "chat"})
    tool = ("tool_call", "execute_tool search", {"gen_ai.operation.name": "execute_tool"})
    assert loops(*[chat, tool] * 9) == []
    failing = ("tool_call", "execute_tool search", {"gen_ai.operation.name": "execute_tool", "error": "429"})
    assert [issue.type for issue in loops(*[chat, failing] * 3)] == ["repeated_action"]
