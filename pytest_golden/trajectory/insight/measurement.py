"""One measured value, and what is known about the metrics that have a meaning of their own. No figures over many here.

Which metrics a trajectory holds. It reads values that are given; it estimates none.

One number between 0 and 1 out of several metrics. It ranks; it judges nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import iso_utc
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome, freeze_mapping
from pytest_golden.values.checking import check_text, check_time, parse_time
from pytest_golden.values.frozen import FrozenDict
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pytest_golden.trajectory.model import Trajectory


SUCCESS_RATE, LATENCY, QUALITY, ACCURACY = "success_rate", "latency", "quality", "accuracy"


class Limits(NamedTuple):
    """Between which values, both included, a metric lies."""

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
    """Return any real number as a float: infinity for one that is too large, NaN for what is no number."""
    if not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_lower_better(metric: str) -> bool:
    """Tell whether a lower value is the better one: of latency alone. Of a custom metric more is taken for better."""
    return metric == LATENCY


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value of a metric, at a time, of a task where it belongs to one. `latency` is in milliseconds.

    Raises:
        ValueError: a field has a value that is not allowed; for the value, the message names the metric.
    """

    id: str
    metric: str
    value: float
    timestamp: datetime
    task_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        check_text("id", self.id)
        check_text("metric", self.metric)
        settle(self, "value", _check_value(self.metric, self.value))
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        if self.task_id is not None:
            check_text("task_id", self.task_id)
        settle(self, "metadata", freeze_mapping("metadata", self.metadata))

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe whatever the metadata."""
        return {
            "id": self.id,
            "metric": self.metric,
            "value": self.value,
            "timestamp": iso_utc(self.timestamp),
            "task_id": self.task_id,
            "metadata": json_form(self.metadata),
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Measurement:
        """Read back what `to_dict` gave; unknown keys are tolerated, `ValueError` names a key that is missing or wrong."""
        return cls(
            id=mapping.get("id", ""),
            metric=mapping.get("metric", ""),
            value=mapping.get("value", math.nan),
            timestamp=parse_time("timestamp", mapping.get("timestamp")),
            task_id=mapping.get("task_id"),
            metadata=mapping.get("metadata") or FrozenDict(),
        )


def _check_value(metric: str, value: object) -> float:
    number, limits = number_of(value), limits_of(metric)
    if not math.isfinite(number):
        told = number if isinstance(value, Real) else repr(value)
        raise ValueError(f"{metric} must be a finite number, not {told}; leave out what is not known")
    if limits.lower <= number <= limits.upper:
        return number
    allowed = "0 to 1" if limits.is_bounded else "0 milliseconds or more"
    raise ValueError(f"{metric} must be {allowed}, not {number}")


def measure_trajectory(trajectory: Trajectory) -> Iterator[Measurement]:
    """Return what a trajectory measures; what it does not tell is absent.

    `success_rate` is 1 for the outcome success and 0 for any other, `latency` the duration, `quality` and `accuracy` the
    numbers under these names in the metadata, the task the text under `task_id` there. The ids come from the
    trajectory's, so that one that is measured twice counts once.

    Raises:
        ValueError: a number in the metadata is not allowed; names the trajectory and the metric.
    """
    values: dict[str, object] = {}
    if trajectory.outcome is not None:
        values[SUCCESS_RATE] = trajectory.outcome is TrajectoryOutcome.SUCCESS
    if trajectory.duration_ms is not None:
        values[LATENCY] = trajectory.duration_ms
    values |= {name: trajectory.metadata.get(name) for name in (QUALITY, ACCURACY)}
    for metric, value in values.items():
        # Words such as "good" are told of a trajectory too, and are no measurement.
        if isinstance(value, Real):
            yield _measurement(trajectory, metric, value)


def _measurement(trajectory: Trajectory, metric: str, value: Real) -> Measurement:
    task_id = trajectory.metadata.get("task_id")
    try:
        return Measurement(
            id=f"{trajectory.id}:{metric}",
            metric=metric,
            value=value,  # type: ignore[arg-type]  # becomes a float
            timestamp=trajectory.completed_at or trajectory.started_at,
            task_id=task_id if isinstance(task_id, str) and task_id.strip() else None,
        )
    except ValueError as error:
        raise ValueError(f"trajectory {trajectory.id}: {error}") from None


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
