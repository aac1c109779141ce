"""Figures over a project's past results: flakiness, median duration, failures. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.trends import describe_durations
from pytest_golden.trajectory.metrics import flakiness_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.gate.past import PastResult

FAILURES = frozenset({ResultStatus.FAILED, ResultStatus.ERROR})


class UsualDuration(NamedTuple):
    """The middle of the passes' durations and how far the middle one of them lies from it; None without a pass."""

    median_seconds: float | None
    mad_seconds: float | None


def flakiness(results: Iterable[PastResult]) -> float | None:
    """Give the share of neighbouring results on one commit that differ, 0 to 1; None without two runs on one commit.

    Those on edits that were not committed do not count, nor those whose commit is not known, nor what did not run to
    its end: interrupted or skipped. One in quarantine counts as what it was. One that a person accepted is no neighbour
    of those before it, which were held against other baselines.

    Args:
        results: newest first.
    """
    groups: dict[tuple[str, int], list[ResultStatus]] = {}
    accepted_count = 0
    for result in results:
        if result.counts and result.commit is not None and result.dirty is False:
            groups.setdefault((result.commit, accepted_count), []).append(result.status)
        accepted_count += result.is_accepted
    return flakiness_of_groups(groups.values())


def usual_duration(results: Iterable[PastResult]) -> UsualDuration:
    """Give median and median absolute deviation of the passes' durations, in seconds."""
    trend = describe_durations([one.execution_time_seconds for one in results if one.status is ResultStatus.PASSED])
    return UsualDuration(None, None) if trend is None else UsualDuration(trend.median_seconds, trend.mad_seconds)


def count_retried(results: Iterable[PastResult]) -> int:
    """Count the passes that took a retry."""
    return sum(result.is_flaky for result in results)


def count_leading_failures(results: Sequence[PastResult]) -> int:
    """Count the failures in a row that the newest results, which stand first, are; all of them ran to their end."""
    return next((place for place, result in enumerate(results) if result.status not in FAILURES), len(results))


def count_passes(results: Sequence[PastResult]) -> int:
    """Count the passes in a row up to the newest result, which stands first; all of them ran to their end."""
    leading = next((place for place, result in enumerate(results) if result.status in FAILURES), len(results))
    return max(leading, results[0].pass_streak) if leading else 0
