from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.trajectory.insight.reasoning import find_reasoning_issues
from tests.trajectory.analysis.runs import run

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
