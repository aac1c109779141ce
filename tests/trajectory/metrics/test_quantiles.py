from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from pytest_golden.trajectory.insight.figures import normal_quantile, student_t_quantile, two_sided

# In scipy the upper tail keeps the digits of a level near 1, the level itself those of one near 0.
HIGH_LEVELS = [0.5, 0.500001, 0.68, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53]
LOW_LEVELS = [5e-324, 1e-300, 1e-20, 1e-8, 0.9e-8, 1e-6, 0.001, 0.1, 0.3, 0.4999999]
DEGREES = [1, 2, 3, 4, 5, 7, 10, 29, 30, 99, 199, 200, 201, 1000, 9999, 50_000, 99_999, 100_000, 100_001, 10**6, 10**9]


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("level", HIGH_LEVELS)
def test_t_is_that_of_scipy(level: float, df: int) -> None:
    assert student_t_quantile(level, df) == pytest.approx(stats.t.isf((1 - level) / 2, df), rel=1e-12)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("level", LOW_LEVELS)
def test_t_of_a_low_level_gives_the_level_back(level: float, df: int) -> None:
    t = student_t_quantile(level, df)
    inside = special.betainc(0.5, df / 2, t * t / (df + t * t)) if t > 1e-100 else 2 * t * stats.t.pdf(0, df)
    assert inside == pytest.approx(level, rel=1e-10)


@pytest.mark.parametrize(
    ("df", "level", "printed"),
    [(1, 0.95, 12.706), (4, 0.95, 2.776), (9, 0.9, 1.833), (29, 0.99, 2.756), (120, 0.95, 1.980)],
)
def test_t_is_that_of_the_printed_tables(df: int, level: float, printed: float) -> None:
    assert round(student_t_quantile(level, df), 3) == printed


@given(st.floats(1e-6, 1 - 1e-9), st.integers(1, 3000))
def test_t_and_its_probability_are_inverse(level: float, df: int) -> None:
    tail, inside = two_sided(student_t_quantile(level, df), df)
    assert inside == pytest.approx(level, rel=1e-11)
    assert tail == pytest.approx(1 - level, rel=1e-11)


@given(st.floats(0.001, 0.999), st.integers(1, 2000))
def test_t_shrinks_to_the_normal_quantile_with_more_degrees_of_freedom(level: float, df: int) -> None:
    assert student_t_quantile(level, df) > student_t_quantile(level, df + 1) > normal_quantile(level)


@pytest.mark.parametrize("level", HIGH_LEVELS)
def test_normal_quantile_is_that_of_scipy(level: float) -> None:
    assert normal_quantile(level) == pytest.approx(stats.norm.isf((1 - level) / 2), rel=1e-14)


@pytest.mark.parametrize("level", LOW_LEVELS)
def test_normal_quantile_of_a_low_level_keeps_its_digits(level: float) -> None:
    expected = math.sqrt(2) * special.erfinv(level) if level > 1e-300 else level * math.sqrt(math.pi / 2)
    assert normal_quantile(level) == pytest.approx(expected, rel=1e-14)
