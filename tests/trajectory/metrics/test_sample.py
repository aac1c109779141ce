from __future__ import annotations

import json
import math
import statistics
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.figures import MetricStatistics, describe_sample, mean_of, measure_spread

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
