"""Compare a success with a failure, and find patterns in many trajectories. Pure. `difference.py` finds where two trajectories part.

An error pattern is a category of failure that is more frequent than chance explains, by the exact tail of the binomial distribution. A trajectory
counts once for a category, however many of its steps fail. The order of the trajectories does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.difference import TrajectoryDiff, diff_trajectories, write_named
from pytest_golden.trajectory.insight.analysis import analyze_trajectory, find_failures
from pytest_golden.trajectory.insight.model import FailureCategory, Quality, SuccessType, count_of, one_line, title_of
from pytest_golden.trajectory.vocabulary import ACTING, StepType, TrajectoryOutcome
from pytest_golden.values.checking import check_count, check_word
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.trajectory.insight.model import TrajectoryAnalysis
    from pytest_golden.trajectory.model import Trajectory


_MOST_SENTENCES = 10
_MOST_NAMED = 5
# Durations of the same work vary; only a difference of more than half is reported.
_NOTABLE_FACTOR = 1.5
_REASONING = frozenset({StepType.REASONING})


class TrajectoryDifference(NamedTuple):
    """One aspect in which the two differ, with the figure of each. Durations are in milliseconds."""

    aspect: str
    success: Any
    failure: Any


@dataclass(frozen=True, slots=True)
class TrajectoryComparison(Shape):
    """How two trajectories differ. `divergence` is the first step that differs.

    The sentences are for people and models; there are at most ten of each kind.
    """

    differences: tuple[TrajectoryDifference, ...] = field(
        metadata=form(write=write_named, as_type=tuple[Mapping[str, Any], ...])
    )
    key_insights: tuple[str, ...]
    success_advantages: tuple[str, ...]
    failure_disadvantages: tuple[str, ...]
    divergence: TrajectoryDiff


def compare_trajectories(success: Trajectory, failure: Trajectory) -> TrajectoryComparison:
    """Compare one that succeeded with one that failed; the arguments decide which is which, not the outcomes."""
    good, bad = analyze_trajectory(success), analyze_trajectory(failure)
    divergence = diff_trajectories(success, failure)
    only_good, only_bad = _only_in(success, failure), _only_in(failure, success)
    return TrajectoryComparison(
        differences=tuple(_differences(success, failure, good, bad)),
        key_insights=_bounded(_insights(divergence, bad, only_good, only_bad)),
        success_advantages=_bounded(_advantages(good, only_good)),
        failure_disadvantages=_bounded(_disadvantages(bad, only_bad)),
        divergence=divergence,
    )


def _differences(
    success: Trajectory, failure: Trajectory, good: TrajectoryAnalysis, bad: TrajectoryAnalysis
) -> Iterator[TrajectoryDifference]:
    left, right = success.statistics(), failure.statistics()
    figures: tuple[tuple[str, Any, Any], ...] = (
        ("outcome", success.outcome, failure.outcome),
        ("quality", good.quality, bad.quality),
        ("step_count", good.step_count, bad.step_count),
        ("reasoning_steps", _count(success, _REASONING), _count(failure, _REASONING)),
        ("tool_usage", _count(success, ACTING), _count(failure, ACTING)),
        ("error_count", left.error_count, right.error_count),
        ("reasoning_issues", len(good.reasoning_issues), len(bad.reasoning_issues)),
        ("max_depth", left.max_depth, right.max_depth),
    )
    yield from (TrajectoryDifference(*figure) for figure in figures if figure[1] != figure[2])
    durations = [one.duration_ms for one in (success, failure) if one.duration_ms is not None]
    if len(durations) == 2 and max(durations) > _NOTABLE_FACTOR * min(durations):
        yield TrajectoryDifference("duration_ms", success.duration_ms, failure.duration_ms)


def _count(trajectory: Trajectory, kinds: frozenset[StepType]) -> int:
    return sum(step.type in kinds for step in trajectory.steps)


def _only_in(trajectory: Trajectory, other: Trajectory) -> tuple[str, ...]:
    """Return the steps that the other does not have, each once, in a few words."""
    elsewhere = {(step.type, title_of(step)) for step in other.steps}
    mine = dict.fromkeys((step.type, title_of(step)) for step in trajectory.steps)
    return tuple(title for kind, title in mine if (kind, title) not in elsewhere)


def _insights(
    divergence: TrajectoryDiff, bad: TrajectoryAnalysis, only_good: Sequence[str], only_bad: Sequence[str]
) -> Iterator[str]:
    if not divergence.identical:
        yield f"compared with the success, {divergence}"
    severe = sorted(bad.failure_points, key=lambda point: -point.severity.rank)
    if severe:
        yield f"the worst failure: {severe[0].description}"
    if only_good:
        yield f"the failure never came to {_name(only_good)}"
    if only_bad:
        yield f"only the failure did {_name(only_bad)}"


def _advantages(good: TrajectoryAnalysis, only_good: Sequence[str]) -> Iterator[str]:
    yield from (f"{indicator.type.value}: {indicator.description}" for indicator in good.success_indicators)
    if only_good:
        yield f"{count_of(len(only_good), 'step')} that the failure lacks: {_name(only_good)}"


def _disadvantages(bad: TrajectoryAnalysis, only_bad: Sequence[str]) -> Iterator[str]:
    yield from (f"{point.category.value}: {point.description}" for point in bad.failure_points[:_MOST_NAMED])
    yield from (f"{issue.type.value}: {issue.evidence}" for issue in bad.reasoning_issues[:_MOST_NAMED])
    if only_bad:
        yield f"{count_of(len(only_bad), 'step')} that the success lacks: {_name(only_bad)}"


def _name(titles: Sequence[str]) -> str:
    more = len(titles) - _MOST_NAMED
    named = ", ".join(f"'{title}'" for title in titles[:_MOST_NAMED])
    return f"{named} and {more:,} more" if more > 0 else named


def _bounded(sentences: Iterator[str]) -> tuple[str, ...]:
    return tuple(one_line(sentence, 600) for sentence in islice(sentences, _MOST_SENTENCES))


def binomial_tail(count: int, trials: int, rate: float) -> float:
    """Return the probability of `count` or more successes in `trials` independent trials of probability `rate`.

    The terms are those of the definition, C(n, k) p^k (1-p)^(n-k), by the log-gamma function. One below about 1e-308 is 0.0.
    """
    if count <= 0 or rate >= 1.0:
        return 1.0 if count <= trials else 0.0
    if rate <= 0.0:
        return 0.0
    more = (math.exp(_log_probability(number, trials, rate)) for number in range(count, trials + 1))
    return min(1.0, math.fsum(more))


def _log_probability(count: int, trials: int, rate: float) -> float:
    choices = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return choices + count * math.log(rate) + (trials - count) * math.log1p(-rate)


@dataclass(frozen=True, slots=True)
class ErrorPattern(Shape):
    """How many trajectories have a category of failure, and the probability of that many or more by chance.

    `rate` is count / total. `p_value` is the exact probability of `count` or more trajectories out of `total` when each
    has such a failure with the expected rate.
    """

    category: FailureCategory
    count: int
    total: int
    rate: float
    p_value: float


@dataclass(frozen=True, slots=True)
class SuccessPattern(Shape):
    """How many of the successful trajectories show a success; `total` is the number examined."""

    type: SuccessType
    count: int
    total: int
    rate: float


def error_patterns(
    ts: Iterable[Trajectory], *, min_count: int = 2, expected_rate: float = 0.05
) -> tuple[ErrorPattern, ...]:
    """Return the categories of failure that occur in `min_count` trajectories or more, most frequent first.

    Raises:
        ValueError: `min_count` is below 1, or `expected_rate` is not between 0 and 1.
    """
    check_count("min_count", min_count, least=1)
    if isinstance(expected_rate, bool) or not isinstance(expected_rate, int | float) or not 0 <= expected_rate <= 1:
        raise ValueError(f"expected_rate must be a probability from 0 to 1, not {expected_rate!r}")
    counts: Counter[FailureCategory] = Counter()
    total = 0
    for trajectory in ts:
        total += 1
        counts.update({point.category for point in find_failures(trajectory)})
    return tuple(
        ErrorPattern(category, count, total, count / total, binomial_tail(count, total, float(expected_rate)))
        for category, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= min_count
    )


def success_patterns(ts: Iterable[Trajectory], *, min_quality: Quality | str = "poor") -> tuple[SuccessPattern, ...]:
    """Return what went well in the successful trajectories of that quality or better, most frequent first.

    Raises:
        ValueError: unknown quality.
    """
    level = check_word("min_quality", min_quality, Quality).rank
    counts: Counter[SuccessType] = Counter()
    total = 0
    for trajectory in ts:
        if trajectory.outcome is TrajectoryOutcome.SUCCESS:
            analysis = analyze_trajectory(trajectory)
            if analysis.quality.rank >= level:
                total += 1
                counts.update({indicator.type for indicator in analysis.success_indicators})
    return tuple(
        SuccessPattern(kind, count, total, count / total)
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
