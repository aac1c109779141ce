"""Figures that describe one sample of numbers: mean, spread, percentiles. They infer nothing; see `intervals.py`.

Sums are exact before they are rounded (`math.fsum`), and neither the largest floats nor the smallest spoil a figure: one
that no float can hold is None.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """What the values of a metric look like, in the metric's own unit.

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

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return asdict(self)


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
    """Give the mean of one value or more, never outside of them."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        mean = statistics.mean(values)
    return min(max(mean, min(values)), max(values))


def measure_spread(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Give the variance and the standard deviation of a sample; None for each that is not known or fits no float."""
    if len(values) < 2:
        return None, None
    # By a power of two, which changes no digit, all values are brought below one half: no square or sum overflows.
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
