"""One measured value, and what is known about the metrics that have a meaning of their own. No figures over many here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import iso_utc
from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.freezing import freeze_mapping
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import check_text, check_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

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
        """Give the nearest value within them."""
        return min(max(value, self.lower), self.upper)


_SHARE, _ANY = Limits(0.0, 1.0), Limits(-math.inf, math.inf)
_LIMITS = {SUCCESS_RATE: _SHARE, LATENCY: Limits(0.0, math.inf), QUALITY: _SHARE, ACCURACY: _SHARE}


def limits_of(metric: str) -> Limits:
    """Give the limits of a metric; a custom one has none."""
    return _LIMITS.get(metric, _ANY)


def number_of(value: object) -> float:
    """Give any real number as a float: infinity for one that is too large, NaN for what is no number."""
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
        """Give all fields under their own names, JSON-safe whatever the metadata."""
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
