"""The analysis of one trajectory: what failed, what went well, what is wrong with its reasoning, how good it was. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.failures import find_failures
from pytest_golden.trajectory.analysis.model import FailureCategory, Quality, Severity, TrajectoryAnalysis
from pytest_golden.trajectory.analysis.reasoning import find_reasoning_issues
from pytest_golden.trajectory.analysis.successes import find_successes
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome, check_word

if TYPE_CHECKING:
    from pytest_golden.trajectory.analysis.model import FailurePoint, ReasoningIssue, SuccessIndicator
    from pytest_golden.trajectory.model import Trajectory

_FAILED = frozenset({TrajectoryOutcome.FAILURE, TrajectoryOutcome.ERROR, TrajectoryOutcome.TIMEOUT})


def analyze_trajectory(
    t: Trajectory, *, include_reasoning: bool = True, include_success: bool = True, min_severity: Severity | str = "low"
) -> TrajectoryAnalysis:
    """Find failure points, success indicators and reasoning issues, and rate the whole.

    What is not asked for, and what is below `min_severity`, is left out, but counts for the quality.

    Raises:
        ValueError: unknown severity.
    """
    level = check_word("min_severity", min_severity, Severity).rank
    failures = find_failures(t)
    issues = find_reasoning_issues(t)
    indicators = find_successes(t, failures, issues)
    return TrajectoryAnalysis(
        trajectory_id=t.id,
        outcome=t.outcome,
        quality=_rate(t.outcome, failures, issues, indicators),
        step_count=len(t.steps),
        duration_ms=t.duration_ms,
        failure_points=tuple(point for point in failures if point.severity.rank >= level),
        success_indicators=indicators if include_success else (),
        reasoning_issues=tuple(issue for issue in issues if issue.severity.rank >= level) if include_reasoning else (),
    )


def _rate(
    outcome: TrajectoryOutcome | None,
    failures: tuple[FailurePoint, ...],
    issues: tuple[ReasoningIssue, ...],
    indicators: tuple[SuccessIndicator, ...],
) -> Quality:
    """Rate by the outcome first, then by the worst finding; how many there are does not count."""
    severities = [point.severity for point in failures if point.category is not FailureCategory.INCOMPLETE]
    severities += [issue.severity for issue in issues]
    is_troubled = any(severity is not Severity.LOW for severity in severities)
    if outcome in _FAILED:
        return Quality.POOR
    if outcome is not TrajectoryOutcome.SUCCESS:
        return Quality.POOR if is_troubled else Quality.FAIR
    if is_troubled:
        return Quality.FAIR
    return Quality.EXCELLENT if indicators and not severities else Quality.GOOD
