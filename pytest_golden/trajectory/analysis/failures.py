"""Failure points: the steps that failed, and an end that no step explains. Pure rules; nothing is guessed from wording.

A failed step that worked later, or any in a trajectory that ended in success, was recovered: its severity is low. A
parent that only passes on the error of a child is no failure point of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.analysis.model import FailureCategory, FailurePoint, Severity
from pytest_golden.trajectory.analysis.telling import error_of, one_line, text_of, title_of, told_metadata
from pytest_golden.trajectory.freezing import freeze_mapping
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step

_CATEGORIES = {
    StepType.TOOL_CALL: FailureCategory.TOOL_FAILURE,
    StepType.ACTION: FailureCategory.TOOL_FAILURE,
    StepType.STATE_CHANGE: FailureCategory.STATE_ERROR,
    StepType.REASONING: FailureCategory.LOGICAL_ERROR,
    StepType.OBSERVATION: FailureCategory.ERROR,
}


def find_failures(trajectory: Trajectory) -> tuple[FailurePoint, ...]:
    """Give the failed steps in their order, then the end of the trajectory when it is news of its own."""
    failed = tuple(_failed_steps(trajectory))
    points = _step_points(trajectory, failed)
    end = _end_point(trajectory, failed, points)
    return points if end is None else (*points, end)


def _failed_steps(trajectory: Trajectory) -> Iterator[tuple[int, Step]]:
    failed = {step.id: step for step in trajectory.steps if step.has_error}
    passing_on = {
        step.parent_step_id
        for step in failed.values()
        if step.parent_step_id in failed and _is_same_news(error_of(failed[step.parent_step_id]), error_of(step))
    }
    for index, step in enumerate(trajectory.steps):
        if step.id in failed and step.id not in passing_on:
            yield index, step


def _is_same_news(above: str, below: str) -> bool:
    return above in below or (below != "" and below in above)


def _step_points(trajectory: Trajectory, failed: Sequence[tuple[int, Step]]) -> tuple[FailurePoint, ...]:
    worked = _last_working(trajectory) if failed else {}
    succeeded = trajectory.outcome is TrajectoryOutcome.SUCCESS
    return tuple(
        _step_point(trajectory, index, step, recovered=succeeded or worked.get(_key(step), -1) > index)
        for index, step in failed
        if not _is_told_by_the_end(trajectory, step)
    )


def _last_working(trajectory: Trajectory) -> dict[tuple[StepType, str], int]:
    return {_key(step): index for index, step in enumerate(trajectory.steps) if not step.has_error}


def _key(step: Step) -> tuple[StepType, str]:
    return step.type, one_line(text_of(step.content))


def _is_told_by_the_end(trajectory: Trajectory, step: Step) -> bool:
    """Tell whether a step only says what the end says too: that the time was over."""
    return (
        trajectory.outcome is TrajectoryOutcome.TIMEOUT
        and step.type is StepType.OBSERVATION
        and error_of(step) == one_line(trajectory.error or "")
    )


def _step_point(trajectory: Trajectory, index: int, step: Step, *, recovered: bool) -> FailurePoint:
    error = error_of(step)
    title = title_of(step)
    said = f"{title} failed: {error}" if error and error != title else f"{title} failed"
    context: dict[str, Any] = {
        "index": index,
        "step": title,
        "type": step.type.value,
        "error": error or None,
        "previous_step": title_of(trajectory.steps[index - 1]) if index else None,
        "recovered": recovered,
        "metadata": told_metadata(step),
    }
    return FailurePoint(
        category=_CATEGORIES[step.type],
        severity=Severity.LOW if recovered else Severity(step.importance.value),
        description=f"{said} (recovered)" if recovered else said,
        step_id=step.id,
        context=freeze_mapping("context", context),
    )


def _end_point(
    trajectory: Trajectory, failed: Sequence[tuple[int, Step]], points: Sequence[FailurePoint]
) -> FailurePoint | None:
    match trajectory.outcome:
        case TrajectoryOutcome.SUCCESS:
            return None
        case TrajectoryOutcome.TIMEOUT:
            last = trajectory.steps[-1] if trajectory.steps else None
            return _end(trajectory, FailureCategory.TIMEOUT, Severity.HIGH, "the time limit was reached", last)
        case TrajectoryOutcome.PARTIAL:
            return _end(trajectory, FailureCategory.INCOMPLETE, Severity.MEDIUM, "only a part was done")
        case None:
            return _end(trajectory, FailureCategory.INCOMPLETE, Severity.LOW, "it was never completed")
    return _failure_end(trajectory, failed, points)


def _failure_end(
    trajectory: Trajectory, failed: Sequence[tuple[int, Step]], points: Sequence[FailurePoint]
) -> FailurePoint | None:
    error = one_line(trajectory.error or "")
    if error:
        is_told = any(_is_same_news(told, error) for told in (error_of(step) for _index, step in failed) if told)
        # Beside a step that failed the end is its echo, so it is no worse.
        lasting = [point.severity for point in points if not point.context["recovered"]]
        severity = max(lasting, key=lambda each: each.rank, default=Severity.CRITICAL)
        return None if is_told else _end(trajectory, FailureCategory.ERROR, severity, "it ended in an error")
    if failed:
        return None
    critical = [step for step in trajectory.steps if _is_alarm(step)]
    if critical:
        return _end(trajectory, FailureCategory.ERROR, Severity.CRITICAL, title_of(critical[-1], 200), critical[-1])
    return _end(trajectory, FailureCategory.UNKNOWN, Severity.HIGH, "no step and no error tells why it failed")


def _is_alarm(step: Step) -> bool:
    return step.type is StepType.OBSERVATION and step.importance is Importance.CRITICAL


def _end(
    trajectory: Trajectory, category: FailureCategory, severity: Severity, said: str, step: Step | None = None
) -> FailurePoint:
    error = one_line(trajectory.error or "")
    context: dict[str, Any] = {
        "outcome": None if trajectory.outcome is None else trajectory.outcome.value,
        "error": error or None,
    }
    if step is not None:
        context["step"] = title_of(step)
        said = f"{said} at {title_of(step)}" if category is FailureCategory.TIMEOUT else said
    return FailurePoint(
        category=category,
        severity=severity,
        description=f"{said}: {error}" if error else said,
        step_id=None if step is None else step.id,
        context=freeze_mapping("context", context),
    )
