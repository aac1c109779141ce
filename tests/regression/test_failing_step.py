from __future__ import annotations

from pytest_golden.regression.failing_step import find_failing_step


def test_last_failing_step_counts_and_observations_do_not() -> None:
    steps = (
        {"type": "action", "content": "one", "metadata": {"error": "x"}},
        {"type": "action", "content": "two", "metadata": {}},
        {"type": "observation", "content": "three", "metadata": {"error": "x"}},
    )
    assert find_failing_step(steps) is steps[0]
    assert find_failing_step(steps[1:]) is None
