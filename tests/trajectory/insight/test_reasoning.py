from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.reasoning import (
    find_broken_thoughts,
    find_contradictions,
    find_hasty_conclusions,
    find_ignored_errors,
    find_loops,
    find_reasoning_issues,
    find_surrender,
    list_statements,
    split_sentences,
    takes_back,
    words_of,
)
from pytest_golden.trajectory.model import Trajectory
from tests.trajectory.insight.runs import START, looping_agent, run, thoughts

if TYPE_CHECKING:
    from pytest_golden.trajectory.insight.model import ReasoningIssue

R, T, S, A = "reasoning", "tool_call", "observation", "action"
SOUND: dict[str, list[tuple[Any, ...]]] = {
    "fixing a test": [
        (R, "Let me start by exploring the repository to understand what we are working with."),
        (T, "bash", {"cmd": "ls"}),
        (S, "a.py b.py"),
        (R, "I see two files. Now let me look at a.py."),
        (T, "bash", {"cmd": "cat a.py"}),
        (S, "def f(): ..."),
        (R, "The function f doesn't handle None. I'll add a check."),
        (A, "edit a.py"),
        (R, "Now let me run the tests."),
        (T, "bash", {"cmd": "pytest"}),
        (S, "1 failed"),
        (R, "The test failed because the fixture isn't there. Let me fix it."),
        (A, "edit conftest.py"),
        (R, "Now let me run the tests."),
        (T, "bash", {"cmd": "pytest"}),
        (S, "ok"),
        (R, "All tests pass now."),
    ],
    "looking at keys": [
        (R, "I know the schema now: orders has an id, customers does not."),
        (R, "I need to know whether the join key is unique. If it is not unique, rows multiply."),
        (T, "sql", {"query": "select count(*)"}),
        (R, "The key is unique, so the join is safe."),
        (R, "However, null keys may exist. Nulls are not joined."),
        (T, "sql", {"query": "select null"}),
        (R, "There are no null keys. Therefore the join is safe."),
    ],
    "retrying": [
        (R, "Obviously the first thing to do is to read the docs, since the API changed."),
        (T, "fetch", {"url": "x", "error": "timeout"}),
        (R, "The fetch timed out. I will retry with a longer timeout."),
        (T, "fetch", {"url": "x", "timeout": 30}),
        (R, "That worked. The page says v2 is required."),
    ],
    "several tests": [
        (R, "Test 1 passed."),
        (R, "Test 2 failed."),
        (R, "Test 3 passed."),
        (T, "bash", {"cmd": "pytest -k 2"}),
    ],
    "two places": [(R, "In staging the job runs."), (R, "In production the job does not run.")],
    "two people": [(R, "Alice can read the table."), (R, "Bob cannot read the table.")],
    "two sources": [(R, "The docs say the flag is supported."), (R, "The error says the flag is not supported.")],
    "two times": [(R, "Before: the table is empty."), (R, "After: the table is not empty.")],
    "two passes": [(R, "First pass: the config looks fine."), (R, "Second pass: the config does not look fine.")],
    "a hypothesis": [(R, "Hypothesis: the cache is stale."), (R, "Evidence: the cache is not stale.")],
    "a question": [(R, "Should I drop the column? Is it used?"), (R, "It is not used. I can drop it."), (A, "drop")],
    "progress": [(R, f"Processing file {number} of 3...") for number in range(1, 4)],
    "placeholders": [(R, "thinking..."), (S, "x")] * 4,
}


@pytest.mark.parametrize("outcome", ["success", "failure"])
@pytest.mark.parametrize("steps", SOUND.values(), ids=SOUND)
def test_sound_reasoning_raises_no_alarm(steps: list[tuple[Any, ...]], outcome: str) -> None:
    assert find_reasoning_issues(run(*steps, outcome=outcome)) == ()


def test_issues_are_in_the_order_of_their_steps() -> None:
    trajectory = run(
        (R, "Therefore X is true"),
        (R, "The key is lost, and"),
        (R, "X is not true"),
        (T, "query", {"error": "no such table"}),
        (R, "The query succeeded."),
        (R, "I give up."),
        outcome="failure",
    )
    assert [issue.type for issue in find_reasoning_issues(trajectory)] == [
        "unsupported_conclusion",
        "contradiction",
        "incomplete_logic",
        "ignored_error",
        "gave_up",
    ]


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("The value is positive.", "The value is not positive."),
        ("The value is positive", "So the value isn't positive!"),
        ("The table has duplicates", "The table does not have any duplicates"),
        ("The load failed", "The load did not fail"),
        ("The file passes the check", "The file doesn't pass the check"),
        ("We can use the cache", "We cannot use the cache"),
        ("There are errors in the log", "There are no errors in the log"),
        ("The schema is valid", "The schema is invalid"),
        ("The job never fails", "The job fails"),
        ("The load succeeded", "The load failed"),
        ("The check did not pass", "The check did not fail"),
        ("The API won\u2019t answer", "The API will answer"),
    ],
)
def test_statement_and_its_negation_have_the_same_words(said: str, denied: str) -> None:
    (one,), (other,) = list_statements(said), list_statements(denied)
    assert one.words == other.words
    assert one.is_denied != other.is_denied


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I know the schema", "I now see the schema"),
        ("The job failed", "The job does not fail"),
        ("Orders are empty", "Customers are not empty"),
        ("The test was not green", "The test is green"),
        ("The value is 4", "The value is not 5"),
        ("The schema is valid", "The schema is not invalid"),
    ],
)
def test_these_do_not_deny_each_other(one: str, other: str) -> None:
    said = {(statement.words, statement.is_denied) for statement in list_statements(one)}
    denied = {(statement.words, not statement.is_denied) for statement in list_statements(other)}
    assert said.isdisjoint(denied)


@pytest.mark.parametrize(
    "text",
    [
        "Is the value positive?",
        "If the value is positive",
        "The value may be positive",
        "The table is now empty",
        "The table is no longer empty",
        "It is empty",
        "Not X",
        "",
        "...",
    ],
)
def test_questions_suppositions_changes_and_pronouns_state_nothing(text: str) -> None:
    assert list(list_statements(text)) == []


def test_clauses_are_statements_of_their_own() -> None:
    said = [statement.said for statement in list_statements("The load works, but the join fails. Rows are lost")]
    assert said == ["The load works", "the join fails.", "Rows are lost"]


@pytest.mark.parametrize("text", ["Wait, that is off.", "Actually the value is 3", "No, it is not", "I was wrong"])
def test_words_that_take_back_are_known(text: str) -> None:
    assert takes_back(text)


@pytest.mark.parametrize("text", ["There is no row", "We know it", "awaiting the answer", "He waited"])
def test_words_that_only_look_so_take_nothing_back(text: str) -> None:
    assert not takes_back(text)


def test_words_are_whole_and_contractions_written_out() -> None:
    assert words_of("I can't know, it's 1.5 o'clock; n't") == [
        "i",
        "can",
        "not",
        "know",
        "it",
        "is",
        "1.5",
        "o'clock",
        "n't",
    ]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(len(statement.words) > 1 for statement in list_statements(text))
    assert all(sentence.strip() for sentence in split_sentences(text))


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
