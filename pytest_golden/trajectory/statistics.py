"""Figures over the steps of one trajectory. Pure; figures over many trajectories are not here.

Steps as a tree of parents and children. Pure; how it is drawn is for the faces to say.

Which steps and snapshots a filter keeps, and how they hang together afterwards. Pure rules over steps.

A kept step whose parent goes is re-parented to its nearest kept ancestor. A snapshot whose step goes moves to that
step's nearest kept ancestor, else to the last kept step before it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_golden.trajectory.vocabulary import Importance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.trajectory.step import StateSnapshot, Step
    from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome


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
        """Return the same under the same names, JSON-safe."""
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
        """Return how long it took; None while it is open."""
        ...

    @property
    def outcome(self) -> TrajectoryOutcome | None:
        """Return how it ended; None while it is open."""
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


@dataclass(frozen=True, slots=True)
class StepNode:
    """A step and the steps whose parent it is, in order."""

    step: Step
    children: tuple[StepNode, ...] = ()

    def walk(self) -> Iterator[tuple[int, StepNode]]:
        """Return this node and all below it, parents first, each with how far below it stands; however deep, by no recursion."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting.extend((depth + 1, child) for child in reversed(node.children))


def grow_tree(steps: Sequence[Step]) -> tuple[StepNode, ...]:
    """Return the roots; parents come before their children. A parent that is not there makes its children roots."""
    known = {step.id for step in steps}
    children: dict[str | None, list[StepNode]] = {}
    # From the end: a step's children are whole before it is made.
    for step in reversed(steps):
        own = children.pop(step.id, [])
        parent = step.parent_step_id if step.parent_step_id in known else None
        children.setdefault(parent, []).append(StepNode(step, tuple(reversed(own))))
    return tuple(reversed(children.get(None, [])))


def keep_steps(steps: Sequence[Step], min_importance: Importance, *, preserve_first_last: bool) -> tuple[Step, ...]:
    """Return the steps at or above the level, in order and re-parented, and the first and last ones when asked."""
    ends = {steps[0].id, steps[-1].id} if preserve_first_last and steps else set()
    levels = {level for level in Importance if level.rank >= min_importance.rank}
    kept_ids = {step.id for step in steps if step.importance in levels or step.id in ends}
    standins = _nearest_kept_ancestors(steps, kept_ids)
    return tuple(_reparented(step, standins) for step in steps if step.id in kept_ids)


def follow_steps(
    snapshots: Sequence[StateSnapshot], steps: Sequence[Step], kept: Sequence[Step]
) -> tuple[StateSnapshot, ...]:
    """Return all snapshots, those of a step that went pointing to the one that stands in for it."""
    kept_ids = {step.id for step in kept}
    standins = _nearest_kept_ancestors(steps, kept_ids)
    last_kept: str | None = None
    for step in steps:
        last_kept = step.id if step.id in kept_ids else last_kept
        standins[step.id] = standins[step.id] or last_kept
    return tuple(
        replace(snapshot, step_id=standins[snapshot.step_id]) if snapshot.step_id else snapshot
        for snapshot in snapshots
    )


def describe_filter(
    metadata: Mapping[str, Any], settings: Mapping[str, Any], removed_steps: int, removed_snapshots: int
) -> dict[str, Any]:
    """Return the metadata with `filter_settings` as given and one more line of `filter_history`, counts in it."""
    earlier = metadata.get("filter_history")
    entry = {"settings": settings, "removed_steps": removed_steps, "removed_snapshots": removed_snapshots}
    history = [*earlier, entry] if isinstance(earlier, list) else [entry]
    return {**metadata, "filter_settings": settings, "filter_history": history}


def _nearest_kept_ancestors(steps: Sequence[Step], kept_ids: set[str]) -> dict[str, str | None]:
    """Return for each step itself when kept, else its nearest kept ancestor. Parents come before their children."""
    nearest: dict[str, str | None] = {}
    for step in steps:
        above = nearest.get(step.parent_step_id) if step.parent_step_id else None
        nearest[step.id] = step.id if step.id in kept_ids else above
    return nearest


def _reparented(step: Step, standins: Mapping[str, str | None]) -> Step:
    if step.parent_step_id is None or standins[step.parent_step_id] == step.parent_step_id:
        return step
    return replace(step, parent_step_id=standins[step.parent_step_id])
