from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.figures import (
    ConfidenceInterval,
    check_level,
    estimate_mean,
    limits_of,
    t_interval,
    wilson_interval,
)

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
