"""Figures by task: the mean of the tasks' means beside that of all values, and two batches compared task by task."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.metrics.intervals import t_interval
from pytest_golden.trajectory.metrics.sample import mean_of, measure_spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.trajectory.metrics.measurement import Measurement

# A difference of two means is right to within a few roundings of the larger one.
_ROUNDING = 8 * 2.0**-52


@dataclass(frozen=True, slots=True)
class TaskMeans:
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

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return {**asdict(self), "by_task": dict(self.by_task)}


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """What the second batch has more of than the first, over the tasks that both have.

    Between `lower` and `upper` lies the true mean difference with the confidence asked for; they are Student's t on the
    differences, not clamped. `effect_size` is Cohen's d_z, the mean difference over the standard deviation of the
    differences: 0 when no task differs, None when all differ by the same.
    """

    mean_difference: float
    lower: float
    upper: float
    effect_size: float | None
    pairs: int

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return asdict(self)


def average_tasks(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Give the mean of each task that has a value, sorted by name."""
    values: dict[str, list[float]] = {}
    for measurement in measurements:
        if measurement.task_id is not None:
            values.setdefault(measurement.task_id, []).append(measurement.value)
    return {task: mean_of(values[task]) for task in sorted(values)}


def summarize_tasks(measurements: Sequence[Measurement], *, lower_is_better: bool) -> TaskMeans | None:
    """Put the tasks' means of one metric together; None when no value belongs to a task."""
    by_task = average_tasks(measurements)
    if not by_task:
        return None
    worst_task = (max if lower_is_better else min)(by_task, key=by_task.__getitem__)
    return TaskMeans(
        macro=mean_of(tuple(by_task.values())),
        micro=mean_of([measurement.value for measurement in measurements]),
        worst_task=worst_task,
        worst=by_task[worst_task],
        by_task=FrozenDict(by_task),
    )


def compare_task_means(
    before: Mapping[str, float], after: Mapping[str, float], level: float
) -> MetricComparison | None:
    """Compare the tasks that both have; None for fewer than two of them, and for figures that no float can hold."""
    tasks = sorted(before.keys() & after.keys())
    differences = [after[task] - before[task] for task in tasks]
    if len(tasks) < 2 or not all(map(math.isfinite, differences)):
        return None
    _, std_dev = measure_spread(differences)
    rounding = _ROUNDING * max(abs(batch[task]) for task in tasks for batch in (before, after))
    if std_dev is not None and std_dev <= rounding:
        # All differ by the same; what is left is noise of the subtraction.
        difference = mean_of(differences)
        effect_size = 0.0 if abs(difference) <= rounding else None
        return MetricComparison(difference, difference, difference, effect_size, len(tasks))
    estimate = t_interval(differences, level)
    if estimate is None or std_dev is None:
        return None
    return MetricComparison(estimate.mean, estimate.lower, estimate.upper, _ratio(estimate.mean, std_dev), len(tasks))


def _ratio(mean: float, std_dev: float) -> float | None:
    ratio = mean / std_dev
    return ratio if math.isfinite(ratio) else None
