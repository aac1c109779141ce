"""Figures over the steps of one trajectory. Pure; figures over many trajectories are not here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.trajectory.step import Step
    from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome


@dataclass(frozen=True, slots=True)
class TrajectoryStatistics:
    """What a trajectory consists of. Words that do not occur are absent, and so are types without a known duration.

    `max_depth` is 1 for flat steps and 0 for none. `error_count` counts steps whose metadata has a truthy `error` or
    `failed`. `duration_ms` and `outcome` are None for an open trajectory.
    """

    total_steps: int
    step_types: Mapping[StepType, int]
    importance_distribution: Mapping[Importance, int]
    total_snapshots: int
    duration_ms: float | None
    outcome: TrajectoryOutcome | None
    filtered: bool
    duration_ms_by_type: Mapping[StepType, float]
    max_depth: int
    error_count: int

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return {
            "total_steps": self.total_steps,
            "step_types": {word.value: count for word, count in self.step_types.items()},
            "importance_distribution": {word.value: count for word, count in self.importance_distribution.items()},
            "total_snapshots": self.total_snapshots,
            "duration_ms": self.duration_ms,
            "outcome": None if self.outcome is None else self.outcome.value,
            "filtered": self.filtered,
            "duration_ms_by_type": {word.value: total for word, total in self.duration_ms_by_type.items()},
            "max_depth": self.max_depth,
            "error_count": self.error_count,
        }


def sum_durations(steps: Iterable[Step]) -> dict[StepType, float]:
    """Give the sum of the known durations by type, in milliseconds; a child's time counts in its parent's too."""
    totals: dict[StepType, float] = {}
    for step in steps:
        if step.duration_ms is not None:
            totals[step.type] = totals.get(step.type, 0.0) + step.duration_ms
    return totals


def measure_depth(steps: Iterable[Step]) -> int:
    """Give the number of levels: 0 without steps, 1 for flat ones. Parents come before their children."""
    depths: dict[str, int] = {}
    for step in steps:
        above = depths.get(step.parent_step_id, 0) if step.parent_step_id else 0
        depths[step.id] = above + 1
    return max(depths.values(), default=0)


def count_types(steps: Iterable[Step]) -> dict[StepType, int]:
    """Give how many steps there are of each type that occurs."""
    return dict(Counter(step.type for step in steps))


def count_importances(steps: Iterable[Step]) -> dict[Importance, int]:
    """Give how many steps there are of each importance that occurs."""
    return dict(Counter(step.importance for step in steps))
