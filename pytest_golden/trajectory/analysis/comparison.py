"""What tells a trajectory that succeeded from one that failed. Pure; where they part is for `difference.py` to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.analysis.analyzing import analyze_trajectory
from pytest_golden.trajectory.analysis.telling import count_of, one_line, title_of
from pytest_golden.trajectory.difference import TrajectoryDiff, diff_trajectories
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import StepType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.trajectory.analysis.model import TrajectoryAnalysis
    from pytest_golden.trajectory.model import Trajectory

_MOST_SENTENCES = 10
_MOST_NAMED = 5
# Durations of the same work differ from run to run; only what differs by more than half is told.
_NOTABLE_FACTOR = 1.5
_REASONING = frozenset({StepType.REASONING})
_ACTING = frozenset({StepType.ACTION, StepType.TOOL_CALL})


class TrajectoryDifference(NamedTuple):
    """One aspect in which the two differ, with the figure of each. Durations are in milliseconds."""

    aspect: str
    success: Any
    failure: Any


@dataclass(frozen=True, slots=True)
class TrajectoryComparison:
    """How two trajectories differ. `divergence` is the first step at which not the same thing happened.

    The sentences are for people and models; there are at most ten of each kind.
    """

    differences: tuple[TrajectoryDifference, ...]
    key_insights: tuple[str, ...]
    success_advantages: tuple[str, ...]
    failure_disadvantages: tuple[str, ...]
    divergence: TrajectoryDiff

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        return {
            "differences": [
                {"aspect": aspect, "success": json_form(success), "failure": json_form(failure)}
                for aspect, success, failure in self.differences
            ],
            "key_insights": list(self.key_insights),
            "success_advantages": list(self.success_advantages),
            "failure_disadvantages": list(self.failure_disadvantages),
            "divergence": self.divergence.to_dict(),
        }


def compare_trajectories(success: Trajectory, failure: Trajectory) -> TrajectoryComparison:
    """Compare one that succeeded with one that failed; which is which is taken from the arguments, not from outcomes."""
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
        ("tool_usage", _count(success, _ACTING), _count(failure, _ACTING)),
        ("error_count", left.error_count, right.error_count),
        ("reasoning_issues", len(good.reasoning_issues), len(bad.reasoning_issues)),
        ("max_depth", left.max_depth, right.max_depth),
    )
    yield from (TrajectoryDifference(*figure) for figure in figures if figure[1] != figure[2])
    if _is_notable(success.duration_ms, failure.duration_ms):
        yield TrajectoryDifference("duration_ms", success.duration_ms, failure.duration_ms)


def _count(trajectory: Trajectory, kinds: frozenset[StepType]) -> int:
    return sum(step.type in kinds for step in trajectory.steps)


def _is_notable(mine: float | None, theirs: float | None) -> bool:
    if mine is None or theirs is None:
        return False
    return max(mine, theirs) > _NOTABLE_FACTOR * min(mine, theirs)


def _only_in(trajectory: Trajectory, other: Trajectory) -> tuple[str, ...]:
    """Give the steps of the one that the other has not, each once, as a few words each."""
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
    return tuple(one_line(sentence, 600) for _number, sentence in zip(range(_MOST_SENTENCES), sentences, strict=False))
