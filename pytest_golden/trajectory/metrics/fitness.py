"""One number between 0 and 1 out of several metrics. It ranks; it judges nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.metrics.measurement import ACCURACY, LATENCY, QUALITY, SUCCESS_RATE, number_of

DEFAULT_WEIGHTS: Mapping[str, float] = FrozenDict({SUCCESS_RATE: 0.4, QUALITY: 0.3, ACCURACY: 0.2, LATENCY: 0.1})
WEIGHTED, GEOMETRIC = "weighted", "geometric"
_WORST_LATENCY_MS = 10_000.0


def score_means(means: Mapping[str, float], weights: Mapping[str, float] | None, method: str) -> float | None:
    """Join the scores of the metrics that are present; None when none of them has a weight.

    Weights are divided by their sum over those present. The geometric mean is 0 as soon as one score is.

    Raises:
        ValueError: an unknown method, or a weight that is negative, no finite number, or of a metric without a score.
    """
    if method not in {WEIGHTED, GEOMETRIC}:
        raise ValueError(f"method {method!r} is unknown: give one of {WEIGHTED}, {GEOMETRIC}")
    checked = DEFAULT_WEIGHTS if weights is None else _check_weights(weights)
    pairs = [(weight, _score(name, means[name])) for name, weight in checked.items() if weight and name in means]
    if not pairs:
        return None
    # Brought to 1 at most, so that no sum of weights overflows.
    largest = max(weight for weight, _ in pairs)
    pairs = [(weight / largest, score) for weight, score in pairs]
    joined = _geometric(pairs) if method == GEOMETRIC else _weighted(pairs)
    scores = [score for _, score in pairs]
    return min(max(joined, min(scores)), max(scores))


def _weighted(pairs: list[tuple[float, float]]) -> float:
    return math.fsum(weight * score for weight, score in pairs) / math.fsum(weight for weight, _ in pairs)


def _geometric(pairs: list[tuple[float, float]]) -> float:
    if any(score == 0.0 for _, score in pairs):
        return 0.0
    return math.exp(
        math.fsum(weight * math.log(score) for weight, score in pairs) / math.fsum(weight for weight, _ in pairs)
    )


def _score(metric: str, mean: float) -> float:
    return 1.0 - min(mean / _WORST_LATENCY_MS, 1.0) if metric == LATENCY else mean


def _check_weights(weights: Any) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a mapping of metrics to numbers or None, not {weights!r}")  # noqa: TRY004 - one kind of refusal
    return {name: _check_weight(name, weight) for name, weight in weights.items()}


def _check_weight(metric: object, weight: object) -> float:
    if metric not in DEFAULT_WEIGHTS:
        known = ", ".join(DEFAULT_WEIGHTS)
        raise ValueError(f"weights: {metric!r} has no score between 0 and 1 that could be weighed: give {known}")
    number = number_of(weight)
    if math.isfinite(number) and number >= 0:
        return number
    raise ValueError(f"weights: that of {metric} must be a finite number, 0 or more, not {weight!r}")
