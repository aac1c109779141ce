"""Many trajectories together: what they have in common is asked of all at once. Figures of quality are not here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import StepQuery
from pytest_golden.trajectory.query_text import parse_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_golden.trajectory.step import Step
    from pytest_golden.trajectory.vocabulary import TrajectoryOutcome


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """How much a batch holds. `outcomes` counts completed trajectories; outcomes that do not occur are absent."""

    total_trajectories: int
    total_steps: int
    outcomes: Mapping[TrajectoryOutcome, int]

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return {
            "total_trajectories": self.total_trajectories,
            "total_steps": self.total_steps,
            "outcomes": {word.value: count for word, count in self.outcomes.items()},
        }


@dataclass(frozen=True, slots=True)
class TrajectoryBatch:
    """Trajectories with unique ids, in the order in which they were given; make it with `merge_trajectories`."""

    trajectories: tuple[Trajectory, ...] = ()

    def __len__(self) -> int:
        return len(self.trajectories)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.trajectories)

    def query(self, query: StepQuery | str) -> tuple[tuple[str, Step], ...]:
        """Give (trajectory id, step) for each step that is asked for, in order.

        Raises:
            ValueError: a text that is no query; the message tells the column.
        """
        asked = query if isinstance(query, StepQuery) else parse_query(query)
        return tuple((one.id, step) for one in self.trajectories for step in asked.select(one.steps))

    def statistics(self) -> BatchStatistics:
        """Count trajectories, steps and outcomes."""
        return BatchStatistics(
            total_trajectories=len(self.trajectories),
            total_steps=sum(len(one.steps) for one in self.trajectories),
            outcomes=dict(Counter(one.outcome for one in self.trajectories if one.outcome is not None)),
        )


def merge_trajectories(trajectories: Iterable[Trajectory]) -> TrajectoryBatch:
    """Put trajectories together; of several with one id the first is kept.

    Raises:
        ValueError: something that is no trajectory is among them.
    """
    merged: dict[str, Trajectory] = {}
    for one in trajectories:
        if not isinstance(one, Trajectory):
            raise ValueError(f"trajectories must hold Trajectory values, not {one!r}")  # noqa: TRY004 - one kind of refusal
        merged.setdefault(one.id, one)
    return TrajectoryBatch(tuple(merged.values()))
