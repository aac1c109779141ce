"""Compute figures of samples: mean, spread, percentiles, confidence intervals and flakiness; and the limits of known metrics.

Sums are exact before they are rounded (`math.fsum`). Neither the largest floats nor the smallest spoil a figure: one that no float can hold is None.
Intervals are Student's t for a mean and Wilson's for a rate. Quantiles are exact to the last few digits of a float, for whole degrees of freedom.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


SUCCESS_RATE, LATENCY, QUALITY, ACCURACY = "success_rate", "latency", "quality", "accuracy"


class Limits(NamedTuple):
    """The lowest and the highest value of a metric, both included."""

    lower: float
    upper: float

    @property
    def is_bounded(self) -> bool:
        """Tell whether the metric has both a lowest and a highest value."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    def clamp(self, value: float) -> float:
        """Return the nearest value within them."""
        return min(max(value, self.lower), self.upper)


_SHARE, _ANY = Limits(0.0, 1.0), Limits(-math.inf, math.inf)
_LIMITS = {SUCCESS_RATE: _SHARE, LATENCY: Limits(0.0, math.inf), QUALITY: _SHARE, ACCURACY: _SHARE}


def limits_of(metric: str) -> Limits:
    """Return the limits of a metric; a custom one has none."""
    return _LIMITS.get(metric, _ANY)


def number_of(value: object) -> float:
    """Return any real number as a float: infinity for one that is too large, NaN for anything else."""
    if not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_lower_better(metric: str) -> bool:
    """Tell whether lower is better, which is true of latency alone."""
    return metric == LATENCY


@dataclass(frozen=True, slots=True)
class MetricStatistics(Shape):
    """Figures of the values of a metric, in the metric's own unit.

    `variance` is that of a sample (it divides by n - 1). It and `std_dev` are None for a single value, and where a float
    cannot hold them.
    """

    mean: float
    median: float
    variance: float | None
    std_dev: float | None
    min: float
    max: float
    p50: float
    p95: float
    count: int


def describe_sample(values: Sequence[float]) -> MetricStatistics | None:
    """Describe the values; None when there are none."""
    if not values:
        return None
    ordered = sorted(values)
    middle = _percentile(ordered, 50)
    variance, std_dev = measure_spread(ordered)
    return MetricStatistics(
        mean=mean_of(ordered),
        median=middle,
        variance=variance,
        std_dev=std_dev,
        min=ordered[0],
        max=ordered[-1],
        p50=middle,
        p95=_percentile(ordered, 95),
        count=len(ordered),
    )


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of one value or more, never outside of them."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        mean = statistics.mean(values)
    return min(max(mean, min(values)), max(values))


def measure_spread(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the variance and the standard deviation of a sample; None for each that is unknown or that no float can hold."""
    if len(values) < 2:
        return None, None
    # Scaling by a power of two changes no digit and brings all values below one half: no square or sum overflows.
    exponent = 1 + math.frexp(max(map(abs, values)))[1]
    scaled = [math.ldexp(value, -exponent) for value in values]
    mean = mean_of(scaled)
    deviations = [value - mean for value in scaled]
    # The second term takes back what rounding the mean has cost.
    squares = math.fsum(each * each for each in deviations) - math.fsum(deviations) ** 2 / len(scaled)
    variance = max(squares, 0.0) / (len(scaled) - 1)
    return _scaled(variance, 2 * exponent), _scaled(math.sqrt(variance), exponent)


def _scaled(value: float, exponent: int) -> float | None:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return None


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Interpolate linearly between the two values around place (n - 1) * percent / 100 (Hyndman and Fan's type 7)."""
    place, hundredths = divmod((len(ordered) - 1) * percent, 100)
    if not hundredths:
        return ordered[place]
    low, high, share = ordered[place], ordered[place + 1], hundredths / 100
    step = high - low
    between = low + step * share if math.isfinite(step) else low * (1 - share) + high * share
    return min(max(between, low), high)


_MOST_ROUNDS = 100
_TINY = 1e-300
# Below it the density is the same from 0 to t, to the last digit.
_SMALL = 1e-8
_LEVELLED = 4 * 2.0**-52
# From here on the series in 1 / df is as good as a float and costs nothing.
_MANY = 100_000
_BETA_SERIES_FROM = 100.0


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level, for a standard normal Z."""
    z = -NormalDist().inv_cdf((1.0 - level) / 2.0)
    if level >= 0.5:
        return z
    # Near the middle the halved rest has lost digits of the level; one step of Newton's method brings them back.
    return z - (math.erf(z / math.sqrt(2)) - level) / (2 * NormalDist().pdf(z))


def student_t_quantile(level: float, degrees_of_freedom: int) -> float:
    """Return t with P(|T| <= t) = level, for Student's T and a level between 0 and 1."""
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
    """Return P(|T| > t) and P(|T| <= t) for a positive t; the smaller of the two keeps its digits."""
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
    """Return gamma(a + 1/2) / gamma(a). Source of the series: Tricomi and Erdelyi (1951)."""
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


@dataclass(frozen=True, slots=True)
class ConfidenceInterval(Shape):
    """The range that holds the true mean of a metric with the given confidence.

    `margin_of_error` is that of the mean before it was clamped, or half the width of Wilson's interval, whose middle is
    not the mean.
    """

    lower: float
    upper: float
    mean: float
    margin_of_error: float
    confidence: float
    sample_size: int


def check_level(level: object) -> float:
    """Return the level of confidence; raise a `ValueError` unless it is between 0 and 1."""
    share = number_of(level)
    if 0.0 < share < 1.0:
        return share
    raise ValueError(f"level must be a number between 0 and 1 such as 0.95, not {level!r}")


def estimate_mean(values: Sequence[float], level: float, limits: Limits) -> ConfidenceInterval | None:
    """Return Wilson's interval for a bounded metric of zeros and ones only, else t's, clamped for a bounded metric.

    None for fewer than two values, and for ends that no float can hold.
    """
    if len(values) < 2:
        return None
    if not limits.is_bounded:
        return t_interval(values, level)
    successes = sum(value == limits.upper for value in values)
    if successes + sum(value == limits.lower for value in values) == len(values):
        return wilson_interval(successes, len(values), level)
    estimate = t_interval(values, level)
    return estimate and replace(estimate, lower=limits.clamp(estimate.lower), upper=limits.clamp(estimate.upper))


def t_interval(values: Sequence[float], level: float) -> ConfidenceInterval | None:
    """Return the exact interval for the mean of two values or more that vary as a normal distribution does."""
    mean = mean_of(values)
    _, std_dev = measure_spread(values)
    if std_dev is None:
        return None
    margin = student_t_quantile(level, len(values) - 1) * (std_dev / math.sqrt(len(values)))
    if not (math.isfinite(mean - margin) and math.isfinite(mean + margin)):
        return None
    return ConfidenceInterval(mean - margin, mean + margin, mean, margin, level, len(values))


def wilson_interval(successes: int, trials: int, level: float) -> ConfidenceInterval:
    """Return Wilson's score interval, which is right for few trials and for none or all of them successes.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
    """
    z = normal_quantile(level)
    rate, square = successes / trials, z * z
    centre = (successes + square / 2) / (trials + square)
    half = z / (trials + square) * math.sqrt(successes * (trials - successes) / trials + square / 4)
    # At the ends the sum is 0 or 1 but for its rounding.
    lower = max(0.0, centre - half) if successes else 0.0
    upper = min(1.0, centre + half) if successes < trials else 1.0
    return ConfidenceInterval(lower, upper, rate, (upper - lower) / 2, level, trials)


def flakiness(results: Iterable[object]) -> float | None:
    """Return the share of neighbouring results that differ, 0 to 1; None for fewer than two.

    Of results that have a `status` only that counts: no two runs take the same time.
    """
    return flakiness_of_groups([results])


def flakiness_of_groups(groups: Iterable[Iterable[object]]) -> float | None:
    """Return the share over the neighbours within each of the groups, all groups together."""
    told = ([getattr(result, "status", result) for result in group] for group in groups)
    differs = [one != other for one, other in chain.from_iterable(map(pairwise, told))]
    return sum(differs) / len(differs) if differs else None
