"""Figures over the steps of one trajectory. Pure; figures over many trajectories are not here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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


class Ending(Protocol):
    """What a trajectory says of itself as a whole."""

    @property
    def duration_ms(self) -> float | None:
        """Give how long it took; None while it is open."""
        ...

    @property
    def outcome(self) -> TrajectoryOutcome | None:
        """Give how it ended; None while it is open."""
        ...

    @property
    def filtered(self) -> bool:
        """Tell whether steps were left out of it."""
        ...


def summarize_steps(steps: Iterable[Step], ending: Ending, *, total_snapshots: int) -> TrajectoryStatistics:
    """Count steps, durations, depth and errors in one pass; the steps need not be in memory.

    A child's time counts in its parent's too. Parents come before their children.
    """
    types: Counter[StepType] = Counter()
    importances: Counter[Importance] = Counter()
    durations: dict[StepType, float] = {}
    depths: dict[str, int] = {}
    errors = 0
    for step in steps:
        types[step.type] += 1
        importances[step.importance] += 1
        errors += step.has_error
        depths[step.id] = depths.get(step.parent_step_id or "", 0) + 1
        if step.duration_ms is not None:
            durations[step.type] = durations.get(step.type, 0.0) + step.duration_ms
    return TrajectoryStatistics(
        total_steps=types.total(),
        step_types=dict(types),
        importance_distribution=dict(importances),
        total_snapshots=total_snapshots,
        duration_ms=ending.duration_ms,
        outcome=ending.outcome,
        filtered=ending.filtered,
        duration_ms_by_type=durations,
        max_depth=max(depths.values(), default=0),
        error_count=errors,
    )
