from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.common_patterns import (
    binomial_tail,
    compare_trajectories,
    error_patterns,
    success_patterns,
)
from tests.trajectory.insight.runs import (
    failed_dbt_run,
    failed_odibi_run,
    looping_agent,
    passed_odibi_run,
    run,
    shell_timeout,
)

if TYPE_CHECKING:
    from pytest_golden.trajectory.model import Trajectory


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


RUNS = (failed_odibi_run(), passed_odibi_run(), failed_dbt_run(), looping_agent(), shell_timeout())


def test_categories_that_come_back_are_patterns() -> None:
    patterns = error_patterns(
        [*[failed_odibi_run()] * 3, *[shell_timeout()] * 5, looping_agent(), *[passed_odibi_run()] * 11]
    )
    assert [(p.category, p.count, p.total, p.rate) for p in patterns] == [
        ("timeout", 6, 20, 0.3),
        ("tool_failure", 4, 20, 0.2),
    ]
    for pattern in patterns:
        expected = stats.binomtest(pattern.count, pattern.total, 0.05, alternative="greater").pvalue
        assert pattern.p_value == pytest.approx(expected, rel=1e-9)


def test_trajectory_counts_once_however_often_it_fails() -> None:
    (pattern,) = error_patterns([looping_agent()], min_count=1)[1:]
    assert (pattern.category, pattern.count, pattern.total) == ("tool_failure", 1, 1)


def test_rare_categories_are_left_out() -> None:
    assert error_patterns([shell_timeout(), passed_odibi_run()]) == ()
    assert error_patterns([]) == ()
    assert len(error_patterns([shell_timeout()], min_count=1)) == 1


def test_expected_rate_decides_how_surprising_it_is() -> None:
    runs = [shell_timeout()] * 5 + [passed_odibi_run()] * 5
    low, high = (error_patterns(runs, expected_rate=rate)[0].p_value for rate in (0.01, 0.5))
    assert low < 1e-6 < 0.5 < high
    assert [error_patterns(runs, expected_rate=rate)[0].p_value for rate in (0, 1)] == [0.0, 1.0]


@pytest.mark.parametrize("min_count", [0, -1, 1.5, True, "2", None])
def test_wrong_count_is_refused(min_count: Any) -> None:
    with pytest.raises(ValueError, match="min_count must be a whole number, 1 or more"):
        error_patterns([], min_count=min_count)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
def test_wrong_rate_is_refused(rate: Any) -> None:
    with pytest.raises(ValueError, match="expected_rate must be a probability from 0 to 1"):
        error_patterns([], expected_rate=rate)


def test_ten_thousand_trajectories_are_no_trouble() -> None:
    (pattern,) = error_patterns((RUNS[4] if number % 18 == 0 else RUNS[1] for number in range(10_000)), min_count=2)
    assert (pattern.count, pattern.total) == (556, 10_000)
    assert pattern.p_value == pytest.approx(float(stats.binom.sf(555, 10_000, 0.05)), rel=1e-9)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(RUNS), max_size=12), st.randoms())
def test_order_does_not_matter(trajectories: list[Trajectory], random: Any) -> None:
    shuffled = random.sample(trajectories, len(trajectories))
    assert error_patterns(trajectories, min_count=1) == error_patterns(shuffled, min_count=1)
    assert success_patterns(trajectories) == success_patterns(shuffled)


def test_what_good_runs_share() -> None:
    slow = run(("action", "load"), seconds=60)
    patterns = success_patterns([passed_odibi_run(), passed_odibi_run(), slow, failed_odibi_run()])
    assert [(p.type, p.count, p.total) for p in patterns] == [("proper_tool_use", 3, 3), ("efficient_path", 2, 3)]
    assert patterns[1].rate == pytest.approx(2 / 3)
    assert json.loads(json.dumps(patterns[0].to_dict())) == {
        "type": "proper_tool_use",
        "count": 3,
        "total": 3,
        "rate": 1.0,
    }


def test_only_good_enough_runs_are_looked_at() -> None:
    recovered = run(("action", "load", {"error": "busy"}), ("action", "load"))
    assert [p.total for p in success_patterns([recovered, passed_odibi_run()], min_quality="excellent")] == [1, 1]
    assert success_patterns([failed_odibi_run()]) == ()
    with pytest.raises(ValueError, match="min_quality 'best' is unknown"):
        success_patterns([], min_quality="best")


def test_patterns_are_json_safe() -> None:
    (pattern, *_more) = error_patterns([shell_timeout()] * 2)
    assert set(json.loads(json.dumps(pattern.to_dict()))) == {"category", "count", "total", "rate", "p_value"}


RATES = (1e-9, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999999)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("trials", [1, 2, 7, 100, 1_000, 10_000])
def test_tail_is_that_of_scipy(trials: int, rate: float) -> None:
    mean = round(trials * rate)
    for count in {1, 2, mean - 3, mean, mean + 1, mean + 40, trials // 2, trials - 1, trials}:
        if 0 <= count <= trials:
            expected = float(stats.binom.sf(count - 1, trials, rate))
            assert math.isclose(binomial_tail(count, trials, rate), expected, rel_tol=1e-9, abs_tol=1e-300)


@given(st.integers(1, 40), st.integers(1, 99), st.data())
def test_tail_is_the_sum_of_exact_fractions(trials: int, percent: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, trials))
    rate = Fraction(percent / 100)
    exact = sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count, trials + 1))
    assert math.isclose(binomial_tail(count, trials, percent / 100), float(exact), rel_tol=1e-12)


def test_certain_and_impossible_counts() -> None:
    assert binomial_tail(0, 10, 0.05) == 1.0
    assert binomial_tail(11, 10, 0.05) == 0.0
    assert (binomial_tail(1, 10, 0.0), binomial_tail(1, 10, 1.0)) == (0.0, 1.0)
    assert binomial_tail(10_000, 10_000, 0.05) == 0.0
