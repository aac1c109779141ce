"""Which metrics a trajectory holds. It reads values that are given; it estimates none."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

from pytest_golden.trajectory.metrics.measurement import ACCURACY, LATENCY, QUALITY, SUCCESS_RATE, Measurement
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.model import Trajectory


def measure_trajectory(trajectory: Trajectory) -> Iterator[Measurement]:
    """Give what a trajectory measures; what it does not tell is absent.

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
