"""What went well in a trajectory that ended in success. Pure rules; nothing is said of any other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.model import SuccessIndicator, SuccessType
from pytest_golden.trajectory.analysis.telling import bounded_ids, count_of
from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.trajectory.analysis.model import FailurePoint, ReasoningIssue
    from pytest_golden.trajectory.model import Trajectory

# A path of fewer steps, in less time, is called efficient.
_MANY_STEPS = 10
_LONG_MS = 5_000.0


def find_successes(
    trajectory: Trajectory, failures: Sequence[FailurePoint], issues: Sequence[ReasoningIssue]
) -> tuple[SuccessIndicator, ...]:
    """Give what went well, in the order of `SuccessType`; nothing when the outcome is not success."""
    if trajectory.outcome is not TrajectoryOutcome.SUCCESS:
        return ()
    found = [*_path(trajectory, failures), *_reasoning(trajectory, issues), *_tools(trajectory), *_parts(trajectory)]
    if failures:
        ids = [point.step_id for point in failures if point.step_id is not None]
        said = f"{count_of(len(failures), 'failed step')} recovered from"
        found.append(SuccessIndicator(SuccessType.EFFECTIVE_RECOVERY, said, tuple(ids[:50])))
    return tuple(found)


def _path(trajectory: Trajectory, failures: Sequence[FailurePoint]) -> Iterator[SuccessIndicator]:
    count, duration_ms = len(trajectory.steps), trajectory.duration_ms
    if 0 < count < _MANY_STEPS and duration_ms is not None and duration_ms < _LONG_MS and not failures:
        said = f"{count_of(count, 'step')} in {duration_ms:,.0f} ms, none of them failed"
        yield SuccessIndicator(SuccessType.EFFICIENT_PATH, said, bounded_ids(trajectory.steps))


def _reasoning(trajectory: Trajectory, issues: Sequence[ReasoningIssue]) -> Iterator[SuccessIndicator]:
    thoughts = [step for step in trajectory.steps if step.type is StepType.REASONING]
    if len(thoughts) > 1 and not issues:
        said = f"{count_of(len(thoughts), 'reasoning step')} without an issue"
        yield SuccessIndicator(SuccessType.CLEAR_REASONING, said, bounded_ids(thoughts))


def _tools(trajectory: Trajectory) -> Iterator[SuccessIndicator]:
    actions = [step for step in trajectory.steps if step.type in {StepType.ACTION, StepType.TOOL_CALL}]
    if actions and not any(step.has_error for step in actions):
        said = f"actions and tool calls: {len(actions):,}, none of them failed"
        yield SuccessIndicator(SuccessType.PROPER_TOOL_USE, said, bounded_ids(actions))


def _parts(trajectory: Trajectory) -> Iterator[SuccessIndicator]:
    children = Counter(step.parent_step_id for step in trajectory.steps if step.parent_step_id)
    parents = [step for step in trajectory.steps if children[step.id] > 1]
    if parents:
        said = f"{count_of(len(parents), 'step')} taken apart into two or more"
        yield SuccessIndicator(SuccessType.GOOD_DECOMPOSITION, said, bounded_ids(parents))
