"""Build trajectories: from what step readers found, and many as one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import new_id
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import FIELDS_OF_DRAFTS, Step
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pytest_golden.trajectory.query import StepQuery
    from pytest_golden.trajectory.readers.model import StepDraft, StepReading


def build_trajectory(
    readings: Iterable[StepReading],
    *,
    started_at: datetime,
    completed_at: datetime,
    outcome: TrajectoryOutcome | str,
    error: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Return the completed trajectory of one run; its duration is `completed_at - started_at`.

    Timestamps are clamped to the run and never go back. The steps of one reading keep their order, and several readings
    are merged by time. A parent stands before its children, even if the pipeline reported it later.

    A run that failed without any step gets one critical observation that says why. `metadata["lost_steps"]` and
    `metadata["step_warnings"]` hold what the readers lost and warned about.
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


class _Placed(NamedTuple):
    """A draft with its timestamp and its parent; keys are (reading, position)."""

    key: tuple[int, int]
    draft: StepDraft
    parent: tuple[int, int] | None
    timestamp: datetime


def _place(number: int, reading: StepReading, started_at: datetime, completed_at: datetime) -> Iterator[_Placed]:
    parents = _find_parents(reading.steps)
    latest = started_at
    for position in _parents_first(parents):
        draft = reading.steps[position]
        parent = parents[position]
        latest = max(latest, min(draft.timestamp or latest, completed_at))
        yield _Placed((number, position), draft, None if parent is None else (number, parent), latest)


def _find_parents(drafts: Sequence[StepDraft]) -> list[int | None]:
    """Return the position of each draft's parent; None if it has none, or it is unknown."""
    positions: dict[str, int] = {}
    for position, draft in enumerate(drafts):
        if draft.id is not None:
            positions.setdefault(draft.id, position)
    return [None if draft.parent_step_id is None else positions.get(draft.parent_step_id) for draft in drafts]


def _parents_first(parents: list[int | None]) -> Iterator[int]:
    """Yield all positions in order; a parent that would come later is moved right before its first descendant.

    Where a step would be its own ancestor, a parent of the circle is taken out of `parents`.
    """
    given: set[int] = set()
    for start in range(len(parents)):
        chain: list[int] = []
        position: int | None = start
        while position is not None and position not in given:
            chain.append(position)
            given.add(position)
            position = parents[position]
        if position in chain:
            parents[chain[-1]] = None
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
            timestamp=step.timestamp,
            parent_step_id=None if step.parent is None else ids[step.parent],
            **{name: getattr(draft, name) for name in FIELDS_OF_DRAFTS},
        )


def _losses(readings: Sequence[StepReading], placed: Sequence[_Placed]) -> dict[str, Any]:
    lost = sum(reading.lost_count for reading in readings)
    warnings = [warning for reading in readings for warning in reading.warnings]
    orphans = sum(step.draft.parent_step_id is not None and step.parent is None for step in placed)
    if orphans:
        warnings.append(f"{orphans} steps name a parent that is not there; they are kept without one")
    return {**({"lost_steps": lost} if lost else {}), **({"step_warnings": warnings} if warnings else {})}


@dataclass(frozen=True, slots=True)
class TrajectoryBatch:
    """Trajectories with unique ids, in the order they were given; create one with `merge_trajectories`."""

    trajectories: tuple[Trajectory, ...] = ()

    def __len__(self) -> int:
        return len(self.trajectories)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.trajectories)

    def query(self, query: StepQuery | str) -> tuple[tuple[str, Step], ...]:
        """Return (trajectory id, step) for each step that matches the query, in order.

        Raises:
            ValueError: the text is not a query; the message names the column.
        """
        from pytest_golden.trajectory.query import StepQuery, parse_query

        asked = query if isinstance(query, StepQuery) else parse_query(query)
        return tuple((one.id, step) for one in self.trajectories for step in asked.select(one.steps))

    def statistics(self) -> BatchStatistics:
        """Count trajectories, steps and outcomes."""
        return BatchStatistics(
            total_trajectories=len(self.trajectories),
            total_steps=sum(len(one.steps) for one in self.trajectories),
            outcomes=dict(Counter(one.outcome for one in self.trajectories if one.outcome is not None)),
        )


@dataclass(frozen=True, slots=True)
class BatchStatistics(Shape):
    """The size of a batch. `outcomes` counts completed trajectories; outcomes that do not occur are absent."""

    total_trajectories: int
    total_steps: int
    outcomes: Mapping[TrajectoryOutcome, int]


def merge_trajectories(trajectories: Iterable[Trajectory]) -> TrajectoryBatch:
    """Collect trajectories in one batch; if several have the same id, the first is kept.

    Raises:
        ValueError: one of them is not a trajectory.
    """
    merged: dict[str, Trajectory] = {}
    for one in trajectories:
        if not isinstance(one, Trajectory):
            raise ValueError(f"trajectories must hold Trajectory values, not {one!r}")  # noqa: TRY004 - one kind of refusal
        merged.setdefault(one.id, one)
    return TrajectoryBatch(tuple(merged.values()))
