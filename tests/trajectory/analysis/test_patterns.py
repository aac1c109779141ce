from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.common_patterns import error_patterns, success_patterns
from tests.trajectory.analysis.runs import (
    failed_dbt_run,
    failed_odibi_run,
    looping_agent,
    passed_odibi_run,
    run,
    shell_timeout,
)

if TYPE_CHECKING:
    from pytest_golden.trajectory.model import Trajectory

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
