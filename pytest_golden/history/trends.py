"""What earlier results say about a project: its figures, whether a run was too slow, and its streak. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.regression.model import OUTPUT_KINDS, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.slowdown import DurationTrend, describe_durations, explain_slowdown, explain_unjudged
from pytest_golden.trajectory.insight.figures import flakiness_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.history.changes import PastResult
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

# With a reason of any other kind, a run did not do all of its work, so that its duration says nothing.
_RAN_TO_ITS_END = OUTPUT_KINDS | {ReasonKind.UNEXPECTED_FILE}
# A streak is described by the last `WINDOW` runs. `ENOUGH` results are read to find them among skipped and interrupted ones.
WINDOW = 10
ENOUGH = 40


def flakiness(results: Iterable[PastResult]) -> float | None:
    """Return the share of neighbouring results on one commit that differ, 0 to 1; None without two runs on one commit.

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


class UsualDuration(NamedTuple):
    """Median and median absolute deviation (MAD) of the passes' durations; None without a pass."""

    median_seconds: float | None
    mad_seconds: float | None


def usual_duration(results: Iterable[PastResult]) -> UsualDuration:
    """Return median and median absolute deviation of the passes' durations, in seconds."""
    trend = describe_durations([one.execution_time_seconds for one in results if one.status is ResultStatus.PASSED])
    return UsualDuration(None, None) if trend is None else UsualDuration(trend.median_seconds, trend.mad_seconds)


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


@dataclass(frozen=True, slots=True)
class SlowdownJudge:
    """Judges durations by `trends`, one for each project's name.

    `trouble` says why there are none. With `is_off` every duration is accepted.
    """

    trends: Mapping[str, DurationTrend] = field(default_factory=dict)
    trouble: str = ""
    is_off: bool = False

    def judge(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> GoldenProjectResult:
        """Add a reason to the result of a run that was too slow, or a warning if that cannot be told."""
        factor = project.max_slowdown
        if factor is None or self.is_off or not _ran_as_expected(result):
            return result
        trend = self.trends.get(project.name)
        unjudged = explain_unjudged(trend, self.trouble)
        if unjudged is not None:
            return replace(result, warnings=(*result.warnings, unjudged))
        told = explain_slowdown(result.execution_time_seconds, factor, trend)
        if told is None:
            return result
        reasons = (*result.reasons, Reason(ReasonKind.SLOWDOWN, told))
        return replace(result, status=ResultStatus.FAILED, reasons=reasons, error_message=result.error_message or told)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values, for the process that runs the projects."""
        trends = {name: trend.to_dict() for name, trend in self.trends.items()}
        return {"trends": trends, "trouble": self.trouble, "is_off": self.is_off}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> SlowdownJudge:
        """Read back what `to_dict` returned."""
        trends = {name: DurationTrend.from_dict(trend) for name, trend in mapping["trends"].items()}
        return cls(trends, str(mapping["trouble"]), bool(mapping["is_off"]))


def _ran_as_expected(result: GoldenProjectResult) -> bool:
    is_judged = result.status in {ResultStatus.PASSED, ResultStatus.FAILED}
    return is_judged and all(reason.kind in _RAN_TO_ITS_END for reason in result.reasons)


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
