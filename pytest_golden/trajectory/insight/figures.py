"""Compute figures of samples: mean, spread, percentiles, confidence intervals and flakiness; and the limits of known metrics.

Sums are exact before they are rounded (`math.fsum`). Neither the largest floats nor the smallest spoil a figure: one that no float can hold is None.
Intervals are Student's t for a mean and Wilson's for a rate.
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
    from collections.abc import Callable, Iterable, Sequence


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
    return _find_exact(statistics.variance, values), _find_exact(statistics.stdev, values)


def _find_exact(figure: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    try:
        return figure(values)
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


# From here on the series in 1 / df is as good as a float, and the sum of df / 2 terms slow.
_MANY = 1_000


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level, for a standard normal Z."""
    return -NormalDist().inv_cdf((1.0 - level) / 2.0)


def student_t_quantile(level: float, degrees_of_freedom: int) -> float:
    """Return t with P(|T| <= t) = level, for Student's T and a level between 0 and 1."""
    df = degrees_of_freedom
    if df == 1:
        return math.tan(math.pi / 2 * level)
    if df >= _MANY:
        return _expand(normal_quantile(level), df)
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _probability_within(middle, df) < level else (low, middle)
    return math.sqrt(df) * math.tan(high)


def _probability_within(angle: float, df: int) -> float:
    """Return P(|T| <= t) for t = sqrt(df) * tan(angle). Source: Abramowitz and Stegun 26.7.3 and 26.7.4."""
    cosine, is_odd = math.cos(angle), df % 2
    term = cosine if is_odd else 1.0
    total = term
    for number in range(2 + is_odd, df, 2):
        term *= (number - 1) / number * cosine * cosine
        total += term
    inside = math.sin(angle) * total
    return (angle + inside) * 2 / math.pi if is_odd else inside


def _expand(z: float, df: int) -> float:
    """Source: Abramowitz and Stegun 26.7.5, the asymptotic expansion of t in 1 / df."""
    square = z * z
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
    )
    return z * (1 + sum(term / float(df) ** power for power, term in enumerate(terms, 1)))


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
    """Return the share of consecutive results that differ, 0 to 1; None for fewer than two.

    Of results that have a `status` only that counts: no two runs take the same time.
    """
    return flakiness_of_groups([results])


def flakiness_of_groups(groups: Iterable[Iterable[object]]) -> float | None:
    """Return the share over the neighbours within each of the groups, all groups together."""
    told = ([getattr(result, "status", result) for result in group] for group in groups)
    differs = [one != other for one, other in chain.from_iterable(map(pairwise, told))]
    return sum(differs) / len(differs) if differs else None
