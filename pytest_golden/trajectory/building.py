"""One completed trajectory out of what the step readers found.

Times are clamped to the run and never go back; the steps of one reading keep their order, several readings are merged
by time. A parent stands before its children, also where the pipeline told of it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Step
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.trajectory.readers.model import StepDraft, StepReading


@dataclass(frozen=True, slots=True)
class _Placed:
    """A draft with its time and its parent, known by (reading, position)."""

    key: tuple[int, int]
    draft: StepDraft
    parent: tuple[int, int] | None
    timestamp: datetime


def build_trajectory(
    readings: Iterable[StepReading],
    *,
    started_at: datetime,
    completed_at: datetime,
    outcome: TrajectoryOutcome | str,
    error: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Give the completed trajectory of one run; its duration is `completed_at - started_at`.

    A run that did not succeed and left no step has one critical observation that says why. What the readers lost and
    warned of is in `metadata["lost_steps"]` and `metadata["step_warnings"]`.
    """
    completed_at = max(completed_at, started_at)
    readings = tuple(readings)
    placed = [
        step for number, reading in enumerate(readings) for step in _place(number, reading, started_at, completed_at)
    ]
    placed.sort(key=lambda step: step.timestamp)
    about = {**(metadata or {}), **_losses(readings, placed)}
    trajectory = Trajectory.new(about, started_at=started_at)
    for step in _steps(placed):
        trajectory = trajectory.with_step(step)
    if not placed and outcome != TrajectoryOutcome.SUCCESS:
        reason = error or f"the run ended with outcome {outcome} and left no step"
        trajectory = trajectory.add_step(
            StepType.OBSERVATION,
            reason,
            importance=Importance.CRITICAL,
            metadata={"error": reason},
            timestamp=completed_at,
        )
    return trajectory.complete(outcome, error, completed_at)


def _place(number: int, reading: StepReading, started_at: datetime, completed_at: datetime) -> Iterator[_Placed]:
    parents = _find_parents(reading.steps)
    latest = started_at
    for position in _parents_first(parents):
        draft = reading.steps[position]
        parent = parents[position]
        latest = max(latest, min(draft.timestamp or latest, completed_at))
        yield _Placed((number, position), draft, None if parent is None else (number, parent), latest)


def _find_parents(drafts: Sequence[StepDraft]) -> list[int | None]:
    """Give each draft's parent's position; None without one, when it is unknown, or when a step is its own ancestor."""
    positions: dict[str, int] = {}
    for position, draft in enumerate(drafts):
        if draft.id is not None:
            positions.setdefault(draft.id, position)
    parents = [None if draft.parent_step_id is None else positions.get(draft.parent_step_id) for draft in drafts]
    return _without_cycles(parents)


def _without_cycles(parents: list[int | None]) -> list[int | None]:
    rooted: set[int] = set()
    for start in range(len(parents)):
        path: list[int] = []
        on_path: set[int] = set()
        position: int | None = start
        while position is not None and position not in rooted and position not in on_path:
            path.append(position)
            on_path.add(position)
            position = parents[position]
        if position is not None and position in on_path:
            parents[path[-1]] = None
        rooted.update(path)
    return parents


def _parents_first(parents: Sequence[int | None]) -> Iterator[int]:
    """Give all positions in order, a parent that would come later right before its first descendant."""
    given: set[int] = set()
    for start in range(len(parents)):
        chain: list[int] = []
        position: int | None = start
        while position is not None and position not in given:
            chain.append(position)
            given.add(position)
            position = parents[position]
        yield from reversed(chain)


def _steps(placed: Iterable[_Placed]) -> Iterator[Step]:
    ids: dict[tuple[int, int], str] = {}
    taken: set[str] = set()
    for step in placed:
        draft = step.draft
        ids[step.key] = draft.id if draft.id is not None and draft.id not in taken else new_id("step")
        taken.add(ids[step.key])
        yield Step(
            id=ids[step.key],
            type=draft.type,
            content=draft.content,
            timestamp=step.timestamp,
            duration_ms=draft.duration_ms,
            metadata=draft.metadata,
            context=draft.context,
            importance=draft.importance,
            parent_step_id=None if step.parent is None else ids[step.parent],
        )


def _losses(readings: Sequence[StepReading], placed: Sequence[_Placed]) -> dict[str, Any]:
    lost = sum(reading.lost_count for reading in readings)
    warnings = [warning for reading in readings for warning in reading.warnings]
    orphans = sum(step.draft.parent_step_id is not None and step.parent is None for step in placed)
    if orphans:
        warnings.append(f"{orphans} steps name a parent that is not there; they are kept without one")
    return {**({"lost_steps": lost} if lost else {}), **({"step_warnings": warnings} if warnings else {})}
