"""Measure trajectories: collect values of metrics, compare two collections, and score them.

A collector reads values that trajectories hold; it estimates none. A score ranks; it judges nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id, new_id_after, utc_now
from pytest_golden.trajectory.insight import figures
from pytest_golden.trajectory.insight.figures import ACCURACY, LATENCY, QUALITY, SUCCESS_RATE, mean_of
from pytest_golden.trajectory.step import FrozenSequence
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome, freeze_mapping
from pytest_golden.values.checking import Checked, check_text, check_time, checked, optional, parse_time
from pytest_golden.values.json_form import FrozenDict, json_form
from pytest_golden.values.shape import Shape, VersionedShape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.trajectory.model import Trajectory


@dataclass(frozen=True, slots=True)
class Measurement(Checked, Shape):
    """A value of a metric, at a time, of a task where it belongs to one. `latency` is in milliseconds.

    Raises:
        ValueError: a field has a value that is not allowed; for the value, the message names the metric.
    """

    id: str = field(metadata=checked(check_text))
    metric: str = field(metadata=checked(check_text))
    value: float
    timestamp: datetime = field(metadata=checked(check_time))
    task_id: str | None = field(default=None, metadata=checked(optional(check_text)))
    metadata: Mapping[str, Any] = field(
        default_factory=FrozenDict, metadata={**form(write=json_form), **checked(freeze_mapping)}
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        object.__setattr__(self, "value", _check_value(self.metric, self.value))

    def __hash__(self) -> int:
        return hash(self.id)


def _check_value(metric: str, value: object) -> float:
    number, limits = figures.number_of(value), figures.limits_of(metric)
    if not math.isfinite(number):
        told = number if isinstance(value, Real) else repr(value)
        raise ValueError(f"{metric} must be a finite number, not {told}; leave out what is not known")
    if limits.lower <= number <= limits.upper:
        return number
    allowed = "0 to 1" if limits.is_bounded else "0 milliseconds or more"
    raise ValueError(f"{metric} must be {allowed}, not {number}")


def measure_trajectory(trajectory: Trajectory) -> Iterator[Measurement]:
    """Yield the measurements of a trajectory; those that it does not hold are absent.

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
        # A word such as "good" is not a measurement.
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
    weights = DEFAULT_WEIGHTS if weights is None else weights
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a mapping of metrics to numbers or None, not {weights!r}")  # noqa: TRY004 - one kind of refusal
    checked = {name: _check_weight(name, weight) for name, weight in weights.items()}
    pairs = [(weight, _score(name, means[name])) for name, weight in checked.items() if weight and name in means]
    if not pairs:
        return None
    # Brought to 1 at most, so that no sum of weights overflows.
    largest = max(weight for weight, _ in pairs)
    pairs = [(weight / largest, score) for weight, score in pairs]
    scores = [score for _, score in pairs]
    return min(max(_join(pairs, method), min(scores)), max(scores))


def _join(pairs: list[tuple[float, float]], method: str) -> float:
    total = math.fsum(weight for weight, _ in pairs)
    if method == WEIGHTED:
        return math.fsum(weight * score for weight, score in pairs) / total
    if any(score == 0.0 for _, score in pairs):
        return 0.0
    return math.exp(math.fsum(weight * math.log(score) for weight, score in pairs) / total)


def _score(metric: str, mean: float) -> float:
    return 1.0 - min(mean / _WORST_LATENCY_MS, 1.0) if metric == LATENCY else mean


def _check_weight(metric: object, weight: object) -> float:
    if metric not in DEFAULT_WEIGHTS:
        known = ", ".join(DEFAULT_WEIGHTS)
        raise ValueError(f"weights: {metric!r} has no score between 0 and 1 that could be weighed: give {known}")
    number = figures.number_of(weight)
    if math.isfinite(number) and number >= 0:
        return number
    raise ValueError(f"weights: that of {metric} must be a finite number, 0 or more, not {weight!r}")


def join_measurements(groups: Iterable[Iterable[Measurement]]) -> list[Measurement]:
    """Return each value once, in the order of first appearance; of two different ones with one id, the later."""
    kept: dict[str, Measurement] = {}
    for group in groups:
        for one in group:
            other = kept.get(one.id)
            if other is None or (other is not one and _preference(one) > _preference(other)):
                kept[one.id] = one
    return list(kept.values())


def in_order(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Sort by time, and within one time by id, which is the order of adding."""
    return sorted(measurements, key=lambda one: (one.timestamp, one.id))


def join_metadata(mappings: Iterable[Mapping[str, Any]]) -> FrozenDict:
    """Return all keys; of values that differ under one, the one whose JSON text comes first."""
    joined: dict[str, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            joined[key] = min(joined[key], value, key=_sorted_text) if key in joined else value
    return FrozenDict(joined)


def _preference(one: Measurement) -> tuple[object, ...]:
    return one.timestamp, one.metric, one.value, one.task_id or "", _sorted_text(one.metadata)


def _sorted_text(value: Any) -> tuple[str, str]:
    # Values that differ may have one JSON form: a tuple and a list.
    return json.dumps(json_form(value), sort_keys=True), repr(value)


# A difference of two means is right to within a few roundings of the larger one.
_ROUNDING = 8 * 2.0**-52


@dataclass(frozen=True, slots=True)
class TaskMeans(Shape):
    """A metric over many tasks.

    `macro` is the mean of the tasks' means, in which each task counts the same; `micro` that of all values, also of those
    that belong to no task. `worst` is the mean of `worst_task`: the highest for latency, else the lowest; of several the
    first by name. `by_task` is sorted by name.
    """

    macro: float
    micro: float
    worst_task: str
    worst: float
    by_task: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MetricComparison(Shape):
    """How much the second collector has more than the first, over the tasks that both have.

    Between `lower` and `upper` lies the true mean difference with the confidence asked for; they are Student's t on the
    differences, not clamped. `effect_size` is Cohen's d_z, the mean difference over the standard deviation of the
    differences: 0 when no task differs, None when all differ by the same.
    """

    mean_difference: float
    lower: float
    upper: float
    effect_size: float | None
    pairs: int


def average_tasks(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Return the mean of each task that has a value, sorted by name."""
    values: dict[str, list[float]] = {}
    for measurement in measurements:
        if measurement.task_id is not None:
            values.setdefault(measurement.task_id, []).append(measurement.value)
    return {task: mean_of(values[task]) for task in sorted(values)}


def compare_task_means(
    before: Mapping[str, float], after: Mapping[str, float], level: float
) -> MetricComparison | None:
    """Compare the tasks that both have; None for fewer than two of them, and for figures that no float can hold."""
    tasks = sorted(before.keys() & after.keys())
    differences = [after[task] - before[task] for task in tasks]
    if len(tasks) < 2 or not all(map(math.isfinite, differences)):
        return None
    _, std_dev = figures.measure_spread(differences)
    rounding = _ROUNDING * max(abs(batch[task]) for task in tasks for batch in (before, after))
    if std_dev is not None and std_dev <= rounding:
        # All differ by the same; what is left is noise of the subtraction.
        difference = mean_of(differences)
        effect_size = 0.0 if abs(difference) <= rounding else None
        return MetricComparison(difference, difference, difference, effect_size, len(tasks))
    estimate = figures.t_interval(differences, level)
    if estimate is None or std_dev is None:
        return None
    effect_size = estimate.mean / std_dev if math.isfinite(estimate.mean / std_dev) else None
    return MetricComparison(estimate.mean, estimate.lower, estimate.upper, effect_size, len(tasks))


_PREFIX = "value"


@dataclass(frozen=True, slots=True, eq=False)
class MetricsCollector(VersionedShape):
    """Values of metrics over many runs. Start with `MetricsCollector.new()`.

    `success_rate`, `quality` and `accuracy` lie between 0 and 1, `latency` is in milliseconds, any other name is a custom
    metric. Two collectors are equal when they hold the same values, in whatever order, and the same metadata since the
    same moment.
    """

    measurements: FrozenSequence[Measurement]
    metadata: Mapping[str, Any] = field(metadata=form(write=json_form))
    created_at: datetime

    @classmethod
    def new(cls, metadata: Mapping[str, Any] | None = None) -> MetricsCollector:
        """Start an empty one, now."""
        return cls(FrozenSequence(), freeze_mapping("metadata", metadata), utc_now())

    def add(
        self,
        metric: str,
        value: float,
        *,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> MetricsCollector:
        """Return a collector with one more value, whose id is made here.

        Raises:
            ValueError: the value is not finite or not one that the metric can have, or another field is not allowed.
        """
        last = self.measurements[-1].id if self.measurements else None
        measurement = Measurement(
            id=new_id(_PREFIX) if last is None else new_id_after(last, _PREFIX),
            metric=metric,
            value=value,
            timestamp=utc_now() if timestamp is None else timestamp,
            task_id=task_id,
            metadata=freeze_mapping("metadata", metadata),
        )
        return MetricsCollector(self.measurements.appended(measurement), self.metadata, self.created_at)

    def values(self, metric: str, task_id: str | None = None) -> tuple[float, ...]:
        """Return the values of a metric in the order in which they were added, of one task when it is named."""
        return tuple(measurement.value for measurement in self._find(metric, task_id))

    def count(self, metric: str, task_id: str | None = None) -> int:
        """Return how many values of a metric there are, of one task when it is named."""
        return len(self._find(metric, task_id))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of the metrics that have a value, in the order in which they first came."""
        return tuple(dict.fromkeys(measurement.metric for measurement in self.measurements))

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Return the tasks that have a value, sorted."""
        return tuple(sorted({one.task_id for one in self.measurements if one.task_id is not None}))

    def stats(self, metric: str, task_id: str | None = None) -> figures.MetricStatistics | None:
        """Describe the values of a metric; None when there are none."""
        return figures.describe_sample(self.values(metric, task_id))

    def aggregate(
        self, metrics: Iterable[str] | None = None, task_id: str | None = None
    ) -> dict[str, figures.MetricStatistics]:
        """Describe the metrics named, or all; those without a value are left out."""
        if isinstance(metrics, str):
            raise ValueError(f"metrics must be several names such as [{metrics!r}], not one text")  # noqa: TRY004 - one kind of refusal
        by_metric = self._by_metric(task_id)
        wanted = by_metric if metrics is None else dict.fromkeys(metrics)
        described = {name: figures.describe_sample(by_metric.get(name, ())) for name in wanted}
        return {name: statistics for name, statistics in described.items() if statistics is not None}

    def confidence_interval(
        self, metric: str, level: float = 0.95, task_id: str | None = None
    ) -> figures.ConfidenceInterval | None:
        """Return the confidence interval of a metric's mean; None for fewer than two values, and for ends that no float can hold.

        Zeros and ones of a metric that lies between 0 and 1 get Wilson's interval, all else Student's t, which is clamped
        to 0 and 1 for such a metric alone.

        Raises:
            ValueError: the level does not lie between 0 and 1.
        """
        return figures.estimate_mean(
            self.values(metric, task_id), figures.check_level(level), figures.limits_of(metric)
        )

    def fitness(
        self, weights: Mapping[str, float] | None = None, method: str = WEIGHTED, task_id: str | None = None
    ) -> float | None:
        """Return one number between 0 and 1 out of the metrics' means; None when none that is present has a weight.

        Without `weights`: success_rate .4, quality .3, accuracy .2, latency .1; those given replace them. They are
        divided by their sum over the metrics that are present. The score of latency is 1 - min(ms / 10,000, 1) of its
        mean; a custom metric has neither weight nor score. `method` is `weighted` or `geometric`.

        Raises:
            ValueError: unknown method, or a weight that is not allowed.
        """
        means = {metric: mean_of(values) for metric, values in self._by_metric(task_id).items()}
        return score_means(means, weights, method)

    def across_tasks(self, metric: str) -> TaskMeans | None:
        """Aggregate a metric's means by task; None when no value of it belongs to a task."""
        measurements = self._find(metric, None)
        by_task = average_tasks(measurements)
        if not by_task:
            return None
        worst_task = (max if metric == LATENCY else min)(by_task, key=by_task.__getitem__)
        return TaskMeans(
            macro=mean_of(tuple(by_task.values())),
            micro=mean_of([measurement.value for measurement in measurements]),
            worst_task=worst_task,
            worst=by_task[worst_task],
            by_task=FrozenDict(by_task),
        )

    @classmethod
    def merge(cls, collectors: Iterable[MetricsCollector]) -> MetricsCollector:
        """Join collectors; a value that several hold counts once. Neither their order nor their grouping matters.

        Values are sorted by time, then by the order of adding. `created_at` is the earliest one. Where the metadata differ under a key, the value whose JSON text comes first is kept.
        """
        parts = tuple(collectors)
        if not parts:
            return cls.new()
        return cls(
            measurements=FrozenSequence(in_order(join_measurements(part.measurements for part in parts))),
            metadata=join_metadata(part.metadata for part in parts),
            created_at=min(part.created_at for part in parts),
        )

    @classmethod
    def from_trajectories(cls, trajectories: Iterable[Trajectory]) -> MetricsCollector:
        """Collect success, latency, quality and accuracy from trajectories; a trajectory given twice counts once.

        Raises:
            ValueError: a number in the metadata is not allowed; names the trajectory and the metric.
        """
        found = (measure_trajectory(trajectory) for trajectory in trajectories)
        return cls(FrozenSequence(join_measurements(found)), FrozenDict(), utc_now())

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> MetricsCollector:
        """Read back what `to_dict` gave; unknown keys are tolerated.

        Raises:
            ValueError: a key is missing or has a value that is not allowed, or a newer program wrote it.
        """
        cls.check_version(mapping)
        return cls(
            measurements=FrozenSequence(join_measurements([_parse_measurements(mapping.get("measurements"))])),
            metadata=freeze_mapping("metadata", mapping.get("metadata")),
            created_at=parse_time("created_at", mapping.get("created_at")),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetricsCollector):
            return NotImplemented
        return (
            self.created_at == other.created_at
            and self.metadata == other.metadata
            and {one.id: one for one in self.measurements} == {one.id: one for one in other.measurements}
        )

    def __hash__(self) -> int:
        return hash(self.created_at)

    def _find(self, metric: str, task_id: str | None) -> tuple[Measurement, ...]:
        check_text("metric", metric)
        return tuple(
            one for one in self.measurements if one.metric == metric and (task_id is None or one.task_id == task_id)
        )

    def _by_metric(self, task_id: str | None) -> dict[str, list[float]]:
        by_metric: dict[str, list[float]] = {}
        for one in self.measurements:
            if task_id is None or one.task_id == task_id:
                by_metric.setdefault(one.metric, []).append(one.value)
        return by_metric


def _parse_measurements(listed: object) -> Iterator[Measurement]:
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, Mapping) for one in listed):
        raise ValueError("measurements must be a list of mappings, as to_dict gives it")
    return map(Measurement.from_dict, listed)


def compare_metrics(
    before: MetricsCollector, after: MetricsCollector, metric: str, level: float = 0.95
) -> MetricComparison | None:
    """Return how much the second collector has more than the first, task by task; None for fewer than two common tasks.

    Values that belong to no task do not count.

    Raises:
        ValueError: the level does not lie between 0 and 1.
    """
    check_text("metric", metric)
    first, second = (
        average_tasks(one for one in collector.measurements if one.metric == metric) for collector in (before, after)
    )
    return compare_task_means(first, second, figures.check_level(level))
