from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.metrics import MetricComparison, compare_task_means

LARGEST = sys.float_info.max
batches = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1e3, 1e3))


def compare(before: list[float], after: list[float], level: float = 0.95) -> MetricComparison:
    names = [f"task-{number}" for number in range(len(before))]
    comparison = compare_task_means(dict(zip(names, before, strict=True)), dict(zip(names, after, strict=True)), level)
    assert comparison is not None
    return comparison


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_paired_comparison_is_that_of_scipy(level: float) -> None:
    before, after = [0.5, 0.6, 0.4, 0.7, 0.55], [0.6, 0.65, 0.55, 0.7, 0.7]
    comparison = compare(before, after, level)
    expected = stats.ttest_rel(after, before).confidence_interval(level)
    assert (comparison.lower, comparison.upper) == pytest.approx((expected.low, expected.high), rel=1e-10)
    differences = [second - first for first, second in zip(before, after, strict=True)]
    assert comparison.mean_difference == pytest.approx(0.09)
    assert comparison.effect_size == pytest.approx(0.09 / float(stats.tstd(differences)), rel=1e-10)
    assert comparison.pairs == 5


def test_only_tasks_that_both_have_are_compared() -> None:
    comparison = compare_task_means({"a": 1.0, "b": 2.0, "c": 9.0}, {"b": 4.0, "a": 2.0, "d": 0.0}, 0.95)
    assert comparison is not None
    assert (comparison.mean_difference, comparison.pairs) == (1.5, 2)


@pytest.mark.parametrize("after", [{}, {"a": 1.0}, {"c": 1.0, "d": 2.0}])
def test_fewer_than_two_common_tasks_are_not_compared(after: dict[str, float]) -> None:
    assert compare_task_means({"a": 1.0, "b": 2.0}, after, 0.95) is None


def test_no_difference_has_no_effect() -> None:
    assert compare([0.1, 0.7, 0.3], [0.1, 0.7, 0.3]) == MetricComparison(0.0, 0.0, 0.0, 0.0, 3)


def test_the_same_difference_everywhere_has_no_finite_effect_size() -> None:
    # .2 - .1 and .3 - .2 are not the same float.
    comparison = compare([0.1, 0.2, 0.6], [0.2, 0.3, 0.7])
    assert comparison.mean_difference == pytest.approx(0.1)
    assert comparison.lower == comparison.upper == comparison.mean_difference
    assert comparison.effect_size is None


def test_differences_that_no_float_can_hold_are_not_compared() -> None:
    assert compare_task_means({"a": -LARGEST, "b": 0.0}, {"a": LARGEST, "b": 1.0}, 0.95) is None
    assert compare_task_means({"a": 0.0, "b": 0.0}, {"a": LARGEST, "b": -LARGEST}, 0.95) is None
    assert compare_task_means({"a": 0.0, "b": 0.0}, {"a": LARGEST, "b": LARGEST / 2}, 0.95) is None


def test_large_and_small_differences_keep_their_effect_size() -> None:
    plain = compare([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).effect_size
    assert compare([0.0, 0.0, 0.0], [1e300, 2e300, 3e300]).effect_size == pytest.approx(plain)
    assert compare([0.0, 0.0, 0.0], [1e-310, 2e-310, 3e-310]).effect_size == pytest.approx(plain)


@given(batches, batches)
def test_comparing_the_other_way_round_turns_the_sign(before: dict[str, float], after: dict[str, float]) -> None:
    there, back = compare_task_means(before, after, 0.9), compare_task_means(after, before, 0.9)
    if there is None or back is None:
        assert there is back is None
        return
    assert there.mean_difference == -back.mean_difference
    assert (there.lower, there.upper) == (-back.upper, -back.lower)
    assert (there.effect_size is None) == (back.effect_size is None)
    json.dumps(there.to_dict(), allow_nan=False)
