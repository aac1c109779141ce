"""Confidence intervals: Student's t for a mean, Wilson's for a rate. They describe no sample; see `sample.py`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.metrics.measurement import number_of
from pytest_golden.trajectory.metrics.quantiles import normal_quantile, student_t_quantile
from pytest_golden.trajectory.metrics.sample import mean_of, measure_spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.trajectory.metrics.measurement import Limits


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """Where the true mean of a metric lies with the given confidence.

    `margin_of_error` is that of the mean before it was clamped, or half the width of Wilson's interval, whose middle is
    not the mean.
    """

    lower: float
    upper: float
    mean: float
    margin_of_error: float
    confidence: float
    sample_size: int

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return asdict(self)


def check_level(level: object) -> float:
    """Give the level of confidence; refuse what does not lie between 0 and 1 with a `ValueError`."""
    share = number_of(level)
    if 0.0 < share < 1.0:
        return share
    raise ValueError(f"level must be a number between 0 and 1 such as 0.95, not {level!r}")


def estimate_mean(values: Sequence[float], level: float, limits: Limits) -> ConfidenceInterval | None:
    """Give Wilson's interval for a bounded metric of zeros and ones only, else t's, clamped for a bounded metric.

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
    return estimate and ConfidenceInterval(
        lower=limits.clamp(estimate.lower),
        upper=limits.clamp(estimate.upper),
        mean=estimate.mean,
        margin_of_error=estimate.margin_of_error,
        confidence=level,
        sample_size=len(values),
    )


def t_interval(values: Sequence[float], level: float) -> ConfidenceInterval | None:
    """Give the exact interval for the mean of two values or more that vary as a normal distribution does."""
    mean = mean_of(values)
    _, std_dev = measure_spread(values)
    if std_dev is None:
        return None
    margin = student_t_quantile(level, len(values) - 1) * (std_dev / math.sqrt(len(values)))
    if not (math.isfinite(mean - margin) and math.isfinite(mean + margin)):
        return None
    return ConfidenceInterval(mean - margin, mean + margin, mean, margin, level, len(values))


def wilson_interval(successes: int, trials: int, level: float) -> ConfidenceInterval:
    """Give Wilson's score interval, which is right for few trials and for none or all of them successes.

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
