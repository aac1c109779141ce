"""Quantiles of Student's t and of the normal distribution for two-sided intervals, to the last few digits of a float.

Only for whole degrees of freedom, which is what samples have.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_MOST_ROUNDS = 100
_TINY = 1e-300
# Below it the density is the same from 0 to t, to the last digit.
_SMALL = 1e-8
_LEVELLED = 4 * 2.0**-52
# From here on the series in 1 / df is as good as a float and costs nothing.
_MANY = 100_000
_BETA_SERIES_FROM = 100.0


def normal_quantile(level: float) -> float:
    """Give z with P(|Z| <= z) = level, for a standard normal Z."""
    z = -NormalDist().inv_cdf((1.0 - level) / 2.0)
    if level >= 0.5:
        return z
    # Near the middle the halved rest has lost digits of the level; one step of Newton's method brings them back.
    return z - (math.erf(z / math.sqrt(2)) - level) / (2 * NormalDist().pdf(z))


def student_t_quantile(level: float, degrees_of_freedom: int) -> float:
    """Give t with P(|T| <= t) = level, for Student's T and a level between 0 and 1."""
    df = degrees_of_freedom
    tail = 1.0 - level
    if df == 1:
        return math.tan(math.pi / 2 * level) if level < 0.5 else 1.0 / math.tan(math.pi / 2 * tail)
    if df == 2:
        return level * math.sqrt(2.0 / (tail * (2.0 - tail)))
    if level < _SMALL:
        return level / (2.0 * _density(0.0, df))
    guess = _expand(normal_quantile(level), df)
    return guess if df >= _MANY else _refine(guess, level, df)


def _expand(z: float, df: int) -> float:
    """Source: Abramowitz and Stegun 26.7.5, the asymptotic expansion of t in 1 / df."""
    square = z * z
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
    )
    return z * (1 + sum(term / float(df) ** power for power, term in enumerate(terms, 1)))


def _refine(guess: float, level: float, df: int) -> float:
    """Solve for t by Newton's method, in the logarithms of t and of the smaller of the two probabilities.

    The density of log |T| is log-concave, hence so are both probabilities as functions of log t: whichever the start,
    the steps do not swing after the first one.
    """
    in_tail = level >= 0.5
    wanted = 1.0 - level if in_tail else level
    log_t = math.log(guess)
    for _ in range(_MOST_ROUNDS):
        t = math.exp(log_t)
        tail, inside = two_sided(t, df)
        reached = tail if in_tail else inside
        slope = 2.0 * t * _density(t, df) / reached
        step = math.log(reached / wanted) / (slope if in_tail else -slope)
        log_t += step
        if abs(step) <= _LEVELLED:
            break
    return math.exp(log_t)


def two_sided(t: float, degrees_of_freedom: int) -> tuple[float, float]:
    """Give P(|T| > t) and P(|T| <= t) for a positive t; the smaller of the two keeps its digits."""
    half = degrees_of_freedom / 2.0
    square = t * t
    outer = degrees_of_freedom / (degrees_of_freedom + square)
    inner = square / (degrees_of_freedom + square)
    # x^a (1 - x)^b / B(a, b) of the incomplete beta function, with b = 1/2 and B(a, 1/2) = sqrt(pi) / ratio.
    front = math.exp(-half * math.log1p(square / degrees_of_freedom)) * math.sqrt(inner / math.pi) * _gamma_ratio(half)
    if outer < (half + 1.0) / (half + 2.5):
        tail = front / half * _beta_fraction(half, 0.5, outer)
        return tail, 1.0 - tail
    inside = front / 0.5 * _beta_fraction(0.5, half, inner)
    return 1.0 - inside, inside


def _density(t: float, df: int) -> float:
    shape = math.exp(-(df + 1) / 2.0 * math.log1p(t * t / df))
    return shape * _gamma_ratio(df / 2.0) / math.sqrt(df * math.pi)


def _gamma_ratio(a: float) -> float:
    """Give gamma(a + 1/2) / gamma(a). Source of the series: Tricomi and Erdelyi (1951)."""
    if a < _BETA_SERIES_FROM:
        return math.gamma(a + 0.5) / math.gamma(a)
    r = 1.0 / a
    series = 1 + r * (-1 / 8 + r * (1 / 128 + r * (5 / 1024 + r * (-21 / 32768 + r * (-399 / 262144)))))
    return math.sqrt(a) * series


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method; x < (a + 1) / (a + b + 2).

    Source: Press et al., Numerical Recipes, 6.4 and 5.2.
    """
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 200 + int(40 * math.sqrt(max(a, b)))):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        value *= c * d
        if abs(c * d - 1.0) < _LEVELLED / 4:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
