"""How long a project usually takes, and when a run is too slow for that. Pure figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from pytest_golden.regression.model import OUTPUT_KINDS, GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig

#: At most this many of the newest passes are used; fewer than `LEAST_PASSES` tell nothing.
MOST_PASSES = 20
LEAST_PASSES = 3
#: A median absolute deviation times this estimates the standard deviation of normally spread times.
_SCALE = 1.4826
_DEVIATIONS = 3
_LEAST_SLACK_SECONDS = 0.05
_LEAST_ELAPSED_SECONDS = 60
_UNJUDGED = "max_slowdown is not judged"
# With a reason of any other kind, a run did not do all of its work, so that its duration says nothing.
_RAN_TO_ITS_END = OUTPUT_KINDS | {ReasonKind.UNEXPECTED_FILE}


@dataclass(frozen=True, slots=True)
class DurationTrend(Shape):
    """The durations of recent passes: how many, their median, and their median absolute deviation (MAD)."""

    pass_count: int
    median_seconds: float
    mad_seconds: float

    @property
    def is_enough(self) -> bool:
        """Tell whether there are enough passes to judge by."""
        return self.pass_count >= LEAST_PASSES

    def limit_seconds(self, factor: float) -> float:
        """Return the longest time that is not too slow: by the factor, by the spread, and at least 50 ms above the median."""
        spread = _DEVIATIONS * _SCALE * self.mad_seconds
        return max(
            factor * self.median_seconds, self.median_seconds + spread, self.median_seconds + _LEAST_SLACK_SECONDS
        )


def describe_durations(seconds: Sequence[float]) -> DurationTrend | None:
    """Return the trend of durations in seconds; None if there are none."""
    if not seconds:
        return None
    middle = median(seconds)
    return DurationTrend(len(seconds), middle, median(abs(one - middle) for one in seconds))


def explain_slowdown(seconds: float, factor: float, trend: DurationTrend | None) -> str | None:
    """Say why a run was too slow; None if it was not, or if too few passes are known to tell."""
    if trend is None or not trend.is_enough or seconds <= trend.limit_seconds(factor):
        return None
    took, usual, limit = _show_apart(seconds, trend.median_seconds, trend.limit_seconds(factor))
    return (
        f"took {took}, longer than the limit of {limit}: the median of its last {trend.pass_count} passes is {usual} "
        f"(max_slowdown {factor:g})"
    )


def explain_unjudged(trend: DurationTrend | None, trouble: str = "") -> str | None:
    """Say why a duration is not judged; None if it is. `trouble` says why no earlier run is known at all."""
    if trend is not None and trend.is_enough:
        return None
    known = trend.pass_count if trend is not None else 0
    told = trouble or f"{known} of at least {LEAST_PASSES} passes in the same environment so far"
    return f"{_UNJUDGED}: {told}"


def is_unjudged(warning: str) -> bool:
    """Tell whether a warning says that a duration is not judged."""
    return warning.startswith(_UNJUDGED)


@dataclass(frozen=True, slots=True)
class SlowdownJudge(Shape):
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


def _ran_as_expected(result: GoldenProjectResult) -> bool:
    is_judged = result.status in {ResultStatus.PASSED, ResultStatus.FAILED}
    return is_judged and all(reason.kind in _RAN_TO_ITS_END for reason in result.reasons)


def show_seconds(seconds: float) -> str:
    """Write a duration so that a slower one looks slower: `49ms`, `1.05s`, `3m 05s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.2f}s" if seconds < _LEAST_ELAPSED_SECONDS else format_elapsed(seconds)


def _show_apart(*seconds: float) -> tuple[str, ...]:
    """Write durations so that those that differ also look so."""
    shown = tuple(map(show_seconds, seconds))
    return shown if len(set(shown)) == len(set(seconds)) else tuple(f"{one:.6g}s" for one in seconds)
