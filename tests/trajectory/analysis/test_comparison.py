from __future__ import annotations

import json

from pytest_golden.trajectory.insight.common_patterns import compare_trajectories
from tests.trajectory.analysis.runs import failed_odibi_run, looping_agent, passed_odibi_run, run


def test_failed_run_against_the_last_good_one() -> None:
    good, bad = passed_odibi_run(), failed_odibi_run()
    comparison = compare_trajectories(good, bad)
    assert {aspect: (mine, theirs) for aspect, mine, theirs in comparison.differences} == {
        "outcome": ("success", "failure"),
        "quality": ("excellent", "poor"),
        "error_count": (0, 1),
    }
    assert (comparison.divergence.index, comparison.divergence.right_step_id) == (2, bad.steps[2].id)
    assert "they part at step 3, 'join_orders'" in comparison.key_insights[0]
    assert comparison.key_insights[1] == "the worst failure: join_orders failed: KeyError: 'customer_id'"
    assert [said.split(":")[0] for said in comparison.success_advantages] == ["efficient_path", "proper_tool_use"]
    assert comparison.failure_disadvantages == ("tool_failure: join_orders failed: KeyError: 'customer_id'",)


def test_steps_that_only_one_has_are_named() -> None:
    good = run(*(("action", f"step {number}") for number in range(9)))
    bad = run(("action", "step 0"), ("tool_call", "panic"), outcome="failure", seconds=5)
    comparison = compare_trajectories(good, bad)
    figures = {difference.aspect: difference[1:] for difference in comparison.differences}
    assert (figures["step_count"], figures["tool_usage"], figures["duration_ms"]) == (
        (9, 2),
        (9, 2),
        (1_000.0, 5_000.0),
    )
    assert (
        "the failure never came to 'step 1', 'step 2', 'step 3', 'step 4', 'step 5' and 3 more"
        in comparison.key_insights
    )
    assert "only the failure did 'panic'" in comparison.key_insights
    assert comparison.failure_disadvantages[-1] == "1 step that the success lacks: 'panic'"


def test_small_differences_of_duration_are_none() -> None:
    one, other = run(("action", "a"), seconds=1), run(("action", "a"), seconds=1.4)
    assert compare_trajectories(one, other).differences == ()
    assert compare_trajectories(one, run(("action", "a"), outcome=None)).differences[0].aspect == "outcome"


def test_identical_runs_teach_nothing() -> None:
    comparison = compare_trajectories(passed_odibi_run(), passed_odibi_run())
    assert (comparison.differences, comparison.key_insights, comparison.failure_disadvantages) == ((), (), ())
    assert comparison.divergence.identical


def test_comparison_is_json_safe_and_bounded() -> None:
    huge = run(
        *(("action", "x" * 100_000 + str(number), {"error": "y" * 10_000}) for number in range(60)), outcome="error"
    )
    for good, bad in ((passed_odibi_run(), huge), (huge, looping_agent())):
        text = json.dumps(compare_trajectories(good, bad).to_dict(), allow_nan=False)
        assert len(compare_trajectories(good, bad).failure_disadvantages) <= 10
        assert all(len(said) <= 600 for said in compare_trajectories(good, bad).key_insights)
        assert "divergence" in json.loads(text)
