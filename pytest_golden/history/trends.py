"""What earlier results say about a project: how flaky it is, how long it takes, and its streak. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import describe_durations
from pytest_golden.trajectory.insight.figures import flakiness_of_groups
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.history.changes import PastResult

# A streak is described by the last `WINDOW` runs. `ENOUGH` results are read to find them among skipped and interrupted ones.
WINDOW = 10
ENOUGH = 40


def flakiness(results: Iterable[PastResult]) -> float | None:
    """Return the share of consecutive results on one commit that differ, 0 to 1; None without two runs on one commit.

    Results on uncommitted edits or an unknown commit do not count, nor do interrupted and skipped runs. A result in
    quarantine counts like any other. A result that a person accepted is not compared with those before it, which had
    other baselines.

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


@dataclass(frozen=True, slots=True)
class UsualDuration(Shape):
    """Median and median absolute deviation (MAD) of the passes' durations; None without a pass."""

    median_seconds: float | None
    mad_seconds: float | None


NO_DURATION = UsualDuration(None, None)


def usual_duration(results: Iterable[PastResult]) -> UsualDuration:
    """Return median and median absolute deviation of the durations of whole passes, in seconds."""
    passes = (one for one in results if one.status is ResultStatus.PASSED and not one.is_narrowed)
    trend = describe_durations([one.execution_time_seconds for one in passes])
    return NO_DURATION if trend is None else UsualDuration(trend.median_seconds, trend.mad_seconds)


def count_retried(results: Iterable[PastResult]) -> int:
    """Count the passes that needed a retry."""
    return sum(result.is_flaky for result in results)


def count_leading_failures(results: Sequence[PastResult]) -> int:
    """Count the failures at the beginning of results, newest first. All of them ran to their end."""
    return next((place for place, result in enumerate(results) if not result.status.is_failure), len(results))


def count_passes(results: Sequence[PastResult]) -> int:
    """Count the passes in a row up to the newest result, which is first. All of them ran to their end."""
    leading = next((place for place, result in enumerate(results) if result.status.is_failure), len(results))
    return max(leading, results[0].pass_streak) if leading else 0


def describe_streak(recent: Sequence[PastResult]) -> str:
    """Describe how a project's newest result, which is first, continues those before it; empty if it did not run to its end.

    Only the first `ENOUGH` results are used. Skipped and interrupted ones neither count nor break a streak.
    """
    if not recent or not recent[0].counts:
        return ""
    ran = [result for result in recent[:ENOUGH] if result.counts][:WINDOW]
    if len(ran) == 1 and ran[0].pass_streak <= 1:
        return "first run" if len(recent) < ENOUGH else ""
    return _describe_pass(ran) if ran[0].status is ResultStatus.PASSED else _describe_failure(ran)


def _describe_pass(ran: Sequence[PastResult]) -> str:
    streak = count_passes(ran)
    if streak >= WINDOW:
        return f"{_ordinal(streak)} pass in a row"
    failures = count_leading_failures(ran[1:])
    if streak == 1 and failures:
        is_cut = failures == len(ran) - 1 and len(ran) >= WINDOW
        return f"passes again after {_count(failures, 'failure', is_least=is_cut)}"
    failed = _describe_window(ran)
    told = f"{_ordinal(streak)} pass in a row" if streak > 1 else ""
    return ", ".join(filter(None, [told, failed])) or "1st pass"


def _describe_failure(ran: Sequence[PastResult]) -> str:
    failures = count_leading_failures(ran)
    if failures == len(ran):
        return f"failed {failures} times in a row" if failures < WINDOW else f"failed in each of the last {failures}"
    first = f"first failure after {_count(count_passes(ran[1:]), 'pass')}"
    told = first if failures == 1 else f"{_ordinal(failures)} failure in a row"
    in_window = sum(result.status.is_failure for result in ran)
    return told if in_window <= failures else f"{told}, {_describe_window(ran)}"


def _describe_window(ran: Sequence[PastResult]) -> str:
    failed = sum(result.status.is_failure for result in ran)
    return f"failed {failed} of the last {len(ran)}" if failed else ""


def _count(number: int, word: str, *, is_least: bool = False) -> str:
    plural = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number}{' or more' if is_least else ''} {word}{plural}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
