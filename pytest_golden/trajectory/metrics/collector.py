"""Measured values as one immutable collection, and the figures over it. Adding costs the same however many there are.

The figures themselves are in the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, new_id, new_id_after, utc_now
from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.freezing import freeze_mapping
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.metrics.fitness import WEIGHTED, score_means
from pytest_golden.trajectory.metrics.intervals import ConfidenceInterval, check_level, estimate_mean
from pytest_golden.trajectory.metrics.joining import in_order, join_measurements, join_metadata
from pytest_golden.trajectory.metrics.measurement import Measurement, is_lower_better, limits_of
from pytest_golden.trajectory.metrics.sample import MetricStatistics, describe_sample, mean_of
from pytest_golden.trajectory.metrics.sources import measure_trajectory
from pytest_golden.trajectory.metrics.tasks import (
    MetricComparison,
    TaskMeans,
    average_tasks,
    compare_task_means,
    summarize_tasks,
)
from pytest_golden.trajectory.sequence import FrozenSequence
from pytest_golden.trajectory.vocabulary import SCHEMA_VERSION, check_text, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from pytest_golden.trajectory.model import Trajectory

_PREFIX = "value"


@dataclass(frozen=True, slots=True, eq=False)
class MetricsCollector:
    """Values of metrics over many runs. Start with `MetricsCollector.new()`.

    `success_rate`, `quality` and `accuracy` lie between 0 and 1, `latency` is in milliseconds, any other name is a custom
    metric. Two collectors are equal when they hold the same values, in whatever order, and the same metadata since the
    same moment.
    """

    measurements: FrozenSequence[Measurement]
    metadata: Mapping[str, Any]
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
        """Give a collector with one more value, whose id is made here.

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
        """Give the values of a metric in the order in which they were added, of one task when it is named."""
        return tuple(measurement.value for measurement in self._find(metric, task_id))

    def count(self, metric: str, task_id: str | None = None) -> int:
        """Give how many values of a metric there are, of one task when it is named."""
        return len(self._find(metric, task_id))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Give the names of the metrics that have a value, in the order in which they first came."""
        return tuple(dict.fromkeys(measurement.metric for measurement in self.measurements))

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Give the tasks that have a value, sorted."""
        return tuple(sorted({one.task_id for one in self.measurements if one.task_id is not None}))

    def stats(self, metric: str, task_id: str | None = None) -> MetricStatistics | None:
        """Describe the values of a metric; None when there are none."""
        return describe_sample(self.values(metric, task_id))

    def aggregate(
        self, metrics: Iterable[str] | None = None, task_id: str | None = None
    ) -> dict[str, MetricStatistics]:
        """Describe the metrics named, or all; those without a value are left out."""
        if isinstance(metrics, str):
            raise ValueError(f"metrics must be several names such as [{metrics!r}], not one text")  # noqa: TRY004 - one kind of refusal
        by_metric = self._by_metric(task_id)
        wanted = by_metric if metrics is None else dict.fromkeys(metrics)
        described = {name: describe_sample(by_metric.get(name, ())) for name in wanted}
        return {name: statistics for name, statistics in described.items() if statistics is not None}

    def confidence_interval(
        self, metric: str, level: float = 0.95, task_id: str | None = None
    ) -> ConfidenceInterval | None:
        """Tell where the true mean of a metric lies; None for fewer than two values, and where no float can say.

        Zeros and ones of a metric that lies between 0 and 1 get Wilson's interval, all else Student's t, which is clamped
        to 0 and 1 for such a metric alone.

        Raises:
            ValueError: the level does not lie between 0 and 1.
        """
        return estimate_mean(self.values(metric, task_id), check_level(level), limits_of(metric))

    def fitness(
        self, weights: Mapping[str, float] | None = None, method: str = WEIGHTED, task_id: str | None = None
    ) -> float | None:
        """Give one number between 0 and 1 out of the metrics' means; None when none that is present has a weight.

        Without `weights`: success_rate .4, quality .3, accuracy .2, latency .1; those given stand in their place. They are
        divided by their sum over the metrics that are present. The score of latency is 1 - min(ms / 10,000, 1) of its
        mean; a custom metric has neither weight nor score. `method` is `weighted` or `geometric`.

        Raises:
            ValueError: unknown method, or a weight that is not allowed.
        """
        means = {metric: mean_of(values) for metric, values in self._by_metric(task_id).items()}
        return score_means(means, weights, method)

    def across_tasks(self, metric: str) -> TaskMeans | None:
        """Put a metric's means by task together; None when no value of it belongs to a task."""
        return summarize_tasks(self._find(metric, None), lower_is_better=is_lower_better(metric))

    @classmethod
    def merge(cls, collectors: Iterable[MetricsCollector]) -> MetricsCollector:
        """Join collectors; a value that several hold counts once. Neither their order nor their grouping matters.

        Values stand in the order of their times, those of one time in that of their adding. It was created when the first
        of them was. Where the metadata differ under a key, the value whose JSON text comes first is kept.
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
        """Collect the success, latency, quality and accuracy that trajectories tell of; one that comes twice counts once.

        Raises:
            ValueError: a number in the metadata is not allowed; names the trajectory and the metric.
        """
        found = (measure_trajectory(trajectory) for trajectory in trajectories)
        return cls(FrozenSequence(join_measurements(found)), FrozenDict(), utc_now())

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names and `schema_version`, JSON-safe whatever the metadata."""
        return {
            "schema_version": SCHEMA_VERSION,
            "created_at": iso_utc(self.created_at),
            "metadata": json_form(self.metadata),
            "measurements": [measurement.to_dict() for measurement in self.measurements],
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> MetricsCollector:
        """Read back what `to_dict` gave; unknown keys are tolerated.

        Raises:
            ValueError: a key is missing or has a value that is not allowed, or a newer program wrote it.
        """
        version = mapping.get("schema_version", SCHEMA_VERSION)
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            message = f"schema_version {version!r} is not known here: at most {SCHEMA_VERSION}; upgrade pytest-golden-projects"
            raise ValueError(message)
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
    """Tell what the second collector has more of than the first, task by task; None for fewer than two common tasks.

    Values that belong to no task do not count.

    Raises:
        ValueError: the level does not lie between 0 and 1.
    """
    check_text("metric", metric)
    first, second = (
        average_tasks(one for one in collector.measurements if one.metric == metric) for collector in (before, after)
    )
    return compare_task_means(first, second, check_level(level))
