from __future__ import annotations

import json
import math
import statistics
import sys
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.figures import (
    ConfidenceInterval,
    MetricStatistics,
    check_level,
    describe_sample,
    estimate_mean,
    flakiness,
    flakiness_of_groups,
    limits_of,
    mean_of,
    measure_spread,
    normal_quantile,
    student_t_quantile,
    t_interval,
    wilson_interval,
)

LARGEST, SMALLEST = sys.float_info.max, 5e-324
any_floats = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
usual_floats = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=50)


def describe(*values: float) -> MetricStatistics:
    described = describe_sample(values)
    assert described is not None
    return described


def test_figures_of_a_known_sample() -> None:
    assert describe(5.0, 1.0, 3.0, 2.0, 4.0).to_dict() == {
        "mean": 3.0,
        "median": 3.0,
        "variance": 2.5,
        "std_dev": math.sqrt(2.5),
        "min": 1.0,
        "max": 5.0,
        "p50": 3.0,
        "p95": pytest.approx(4.8),
        "count": 5,
    }


def test_no_values_have_no_figures() -> None:
    assert describe_sample(()) is None


def test_a_single_value_has_no_spread() -> None:
    assert describe(3.0) == MetricStatistics(3.0, 3.0, None, None, 3.0, 3.0, 3.0, 3.0, 1)


def test_equal_values_have_a_spread_of_zero_and_exactly_their_mean() -> None:
    described = describe(*[0.1] * 7)
    assert (described.mean, described.variance, described.std_dev, described.p95) == (0.1, 0.0, 0.0, 0.1)


def test_sums_are_exact() -> None:
    assert mean_of([1e300, -1e300, 3e-300]) == 1e-300
    assert mean_of([0.1] * 10) == 0.1


def test_the_largest_floats_do_not_overflow() -> None:
    described = describe(LARGEST, LARGEST, LARGEST)
    assert (described.mean, described.p95, described.variance) == (LARGEST, LARGEST, 0.0)
    described = describe(-LARGEST, LARGEST)
    assert (described.mean, described.median, described.variance, described.std_dev) == (0.0, 0.0, None, None)
    assert described.p95 == pytest.approx(0.9 * LARGEST)


def test_values_of_1e300_keep_their_standard_deviation() -> None:
    described = describe(1e300, 2e300, 3e300)
    assert described.mean == pytest.approx(2e300)
    assert described.std_dev == pytest.approx(1e300)
    assert described.variance is None


def test_denormal_values_keep_their_standard_deviation() -> None:
    described = describe(1e-310, 2e-310, 3e-310)
    assert described.mean == pytest.approx(2e-310)
    assert described.std_dev == pytest.approx(1e-310)
    assert describe(0.0, SMALLEST * 4).std_dev == SMALLEST * 3


def test_a_small_spread_around_a_large_value_is_kept() -> None:
    described = describe(1e15, 1e15 + 1, 1e15 + 2)
    assert described.variance == 1.0


@given(usual_floats)
def test_figures_are_those_of_numpy(values: list[float]) -> None:
    described = describe(*values)
    array = np.array(values)
    assert described.median == pytest.approx(float(np.median(array)), rel=1e-12, abs=1e-300)
    assert described.p50 == described.median
    assert described.p95 == pytest.approx(float(np.percentile(array, 95)), rel=1e-12, abs=1e-300)


@given(usual_floats)
def test_variance_is_the_exact_one_but_for_rounding(values: list[float]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = float(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))
    assert measure_spread(values)[0] == pytest.approx(variance, rel=1e-9, abs=sys.float_info.min)


@given(any_floats)
def test_figures_lie_between_the_ends_and_are_json(values: list[float]) -> None:
    described = describe(*values)
    assert described.min == min(values)
    assert described.max == max(values)
    for figure in (described.mean, described.median, described.p95):
        assert described.min <= figure <= described.max
    assert described.p50 <= described.p95
    json.dumps(described.to_dict(), allow_nan=False)


@given(any_floats)
def test_mean_is_right_to_the_last_digits(values: list[float]) -> None:
    exact = float(sum(map(Fraction, values)) / len(values))
    assert mean_of(values) == pytest.approx(exact, rel=1e-15, abs=SMALLEST)


@given(st.permutations([0.1, 0.7, 1e10, -3.0, 1e-9, 2.5]))
def test_order_does_not_matter(values: list[float]) -> None:
    assert describe_sample(values) == describe(0.1, 0.7, 1e10, -3.0, 1e-9, 2.5)


def test_variance_is_that_of_a_sample() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert describe(*values).variance == statistics.variance(values)


ANY, SHARE, LATENCY = limits_of("cost"), limits_of("quality"), limits_of("latency")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999])
@pytest.mark.parametrize(
    "values", [(1.0, 2.0), (120.0, 80.5, 99.25, 101.0), tuple(float(n * n % 37) for n in range(200))]
)
def test_t_interval_is_that_of_scipy(values: tuple[float, ...], level: float) -> None:
    interval = t_interval(values, level)
    assert interval is not None
    expected = stats.t.interval(level, len(values) - 1, loc=interval.mean, scale=stats.sem(values))
    assert (interval.lower, interval.upper) == pytest.approx(expected, rel=1e-10)
    assert interval.margin_of_error == pytest.approx((expected[1] - expected[0]) / 2, rel=1e-10)
    assert (interval.confidence, interval.sample_size) == (level, len(values))


@given(st.integers(1, 500), st.data(), st.floats(0.01, 0.9999))
def test_wilson_interval_is_that_of_scipy(trials: int, data: st.DataObject, level: float) -> None:
    successes = data.draw(st.integers(0, trials))
    interval = wilson_interval(successes, trials, level)
    expected = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    assert interval.lower == pytest.approx(expected.low, rel=1e-9, abs=1e-12)
    assert interval.upper == pytest.approx(expected.high, rel=1e-9, abs=1e-12)
    assert 0.0 <= interval.lower <= interval.mean <= interval.upper <= 1.0
    assert interval.margin_of_error == pytest.approx((interval.upper - interval.lower) / 2)


def test_wilson_interval_reaches_the_ends_exactly_and_never_collapses() -> None:
    none, all_of_them = wilson_interval(0, 10, 0.95), wilson_interval(10, 10, 0.95)
    assert none.lower == 0.0
    assert none.upper == pytest.approx(0.277533, abs=1e-6)
    assert all_of_them.upper == 1.0
    assert all_of_them.lower == pytest.approx(1 - none.upper)


@pytest.mark.parametrize("values", [(), (1.0,)])
@pytest.mark.parametrize("limits", [ANY, SHARE, LATENCY])
def test_fewer_than_two_values_have_no_interval(values: tuple[float, ...], limits: object) -> None:
    assert estimate_mean(values, 0.95, limits) is None  # type: ignore[arg-type]


def test_zeros_and_ones_of_a_bounded_metric_get_wilson() -> None:
    assert estimate_mean((1.0, 0.0, 1.0), 0.95, SHARE) == wilson_interval(2, 3, 0.95)
    assert estimate_mean((-0.0, 0.0), 0.95, SHARE) == wilson_interval(0, 2, 0.95)


def test_zeros_and_ones_of_any_other_metric_get_t() -> None:
    assert estimate_mean((1.0, 0.0, 1.0), 0.95, ANY) == t_interval((1.0, 0.0, 1.0), 0.95)


def test_t_is_clamped_for_a_bounded_metric_only() -> None:
    values = (0.2, 0.95)
    free, clamped = t_interval(values, 0.95), estimate_mean(values, 0.95, SHARE)
    assert free is not None
    assert clamped == ConfidenceInterval(0.0, 1.0, free.mean, free.margin_of_error, 0.95, 2)
    assert estimate_mean(values, 0.95, LATENCY) == estimate_mean(values, 0.95, ANY) == free
    assert free.lower < 0.0
    assert free.upper > 1.0


def test_equal_values_have_an_interval_without_width() -> None:
    assert estimate_mean((5.0, 5.0, 5.0), 0.95, ANY) == ConfidenceInterval(5.0, 5.0, 5.0, 0.0, 0.95, 3)


def test_large_values_have_an_interval() -> None:
    interval = estimate_mean((1e300, 2e300, 3e300), 0.95, ANY)
    assert interval is not None
    assert interval.margin_of_error == pytest.approx(2.484137711e300)


def test_an_interval_that_no_float_can_hold_is_none() -> None:
    largest = sys.float_info.max
    assert estimate_mean((-largest, largest), 0.95, ANY) is None
    assert estimate_mean((largest / 2, largest / 4), 0.95, ANY) is None


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=30), st.floats(0.01, 0.99), st.floats(0.001, 0.009))
def test_more_confidence_is_never_narrower(values: list[float], level: float, more: float) -> None:
    narrow, wide = estimate_mean(values, level, SHARE), estimate_mean(values, level + more, SHARE)
    assert narrow is not None
    assert wide is not None
    assert 0.0 <= wide.lower <= narrow.lower <= narrow.mean <= narrow.upper <= wide.upper <= 1.0


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.5, 95, float("nan"), float("inf"), "0.95", None, True, 10**400])
def test_a_level_that_is_none_is_refused(level: object) -> None:
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        check_level(level)


def test_any_real_number_is_a_level() -> None:
    assert check_level(Fraction(9, 10)) == 0.9
    with pytest.raises(ValueError, match="level"):
        check_level(Decimal("0.9"))


def test_interval_is_json() -> None:
    assert wilson_interval(1, 2, 0.95).to_dict().keys() == {
        "lower",
        "upper",
        "mean",
        "margin_of_error",
        "confidence",
        "sample_size",
    }


LEVELS = [0.001, 0.1, 0.3, 0.5, 0.68, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 1 - 1e-6]
DEGREES = [1, 2, 3, 4, 5, 7, 10, 29, 30, 99, 199, 200, 201, 998, 999, 1000, 1001, 9999, 10**6, 10**9]


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("level", LEVELS)
def test_t_is_that_of_scipy(level: float, df: int) -> None:
    assert student_t_quantile(level, df) == pytest.approx(stats.t.isf((1 - level) / 2, df), rel=1e-9)


@pytest.mark.parametrize(
    ("df", "level", "printed"),
    [(1, 0.95, 12.706), (4, 0.95, 2.776), (9, 0.9, 1.833), (29, 0.99, 2.756), (120, 0.95, 1.980)],
)
def test_t_is_that_of_the_printed_tables(df: int, level: float, printed: float) -> None:
    assert round(student_t_quantile(level, df), 3) == printed


@given(st.floats(0.001, 0.999), st.integers(1, 2000))
def test_t_shrinks_to_the_normal_quantile_with_more_degrees_of_freedom(level: float, df: int) -> None:
    assert student_t_quantile(level, df) > student_t_quantile(level, df + 1) > normal_quantile(level)


@pytest.mark.parametrize("level", LEVELS)
def test_normal_quantile_is_that_of_scipy(level: float) -> None:
    assert normal_quantile(level) == pytest.approx(stats.norm.isf((1 - level) / 2), rel=1e-12)


class Run(NamedTuple):
    status: str
    seconds: float


@pytest.mark.parametrize(
    ("results", "share"),
    [
        ([], None),
        (["PASSED"], None),
        (["PASSED", "PASSED"], 0.0),
        (["PASSED", "FAILED", "PASSED"], 1.0),
        ([True, True, False, False], 1 / 3),
        ([1, 0, None], 1.0),
    ],
)
def test_flakiness_is_the_share_of_neighbours_that_differ(results: list[object], share: float | None) -> None:
    assert flakiness(results) == share
    assert flakiness(iter(results)) == share


def test_of_a_result_only_the_status_counts() -> None:
    assert flakiness([Run("PASSED", 1.0), Run("PASSED", 2.0), Run("FAILED", 2.0)]) == 0.5


def test_groups_are_not_neighbours() -> None:
    assert flakiness_of_groups(["PP", "FF"]) == 0.0
    assert flakiness_of_groups(["PF", "F", "", "FF"]) == 0.5
    assert flakiness_of_groups(["P", "F"]) is None


@given(st.lists(st.booleans(), min_size=2))
def test_flakiness_is_the_same_backwards_and_never_outside_0_and_1(results: list[bool]) -> None:
    share = flakiness(results)
    assert share is not None
    assert 0.0 <= share <= 1.0
    assert flakiness(results[::-1]) == share
