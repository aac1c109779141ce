from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_golden.trajectory.insight.common_patterns import binomial_tail

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
