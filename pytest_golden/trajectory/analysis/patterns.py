"""Patterns over many trajectories: what fails more often than chance would have it, and what the good ones share. Pure.

A trajectory counts once for a category, however many of its steps fail so. The order of the trajectories does not matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.analysis.analyzing import analyze_trajectory
from pytest_golden.trajectory.analysis.binomial import binomial_tail
from pytest_golden.trajectory.analysis.failures import find_failures
from pytest_golden.trajectory.analysis.model import FailureCategory, Quality, SuccessType
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome, check_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.trajectory.model import Trajectory


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """In how many trajectories a category of failure occurs, and how likely that or more would be by chance.

    `rate` is count / total. `p_value` is the exact probability of `count` or more trajectories out of `total` when each
    has such a failure with the expected rate.
    """

    category: FailureCategory
    count: int
    total: int
    rate: float
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form


@dataclass(frozen=True, slots=True)
class SuccessPattern:
    """In how many of the successful trajectories something went well; `total` is how many of them were looked at."""

    type: SuccessType
    count: int
    total: int
    rate: float

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form


def error_patterns(
    ts: Iterable[Trajectory], *, min_count: int = 2, expected_rate: float = 0.05
) -> tuple[ErrorPattern, ...]:
    """Give the categories of failure that occur in `min_count` trajectories or more, most frequent first.

    Raises:
        ValueError: `min_count` is below 1, or `expected_rate` is not between 0 and 1.
    """
    if isinstance(min_count, bool) or not isinstance(min_count, int) or min_count < 1:
        raise ValueError(f"min_count must be a whole number, 1 or more, not {min_count!r}")
    rate = _check_rate(expected_rate)
    counts: Counter[FailureCategory] = Counter()
    total = 0
    for trajectory in ts:
        total += 1
        counts.update({point.category for point in find_failures(trajectory)})
    return tuple(
        ErrorPattern(category, count, total, count / total, binomial_tail(count, total, rate))
        for category, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= min_count
    )


def success_patterns(ts: Iterable[Trajectory], *, min_quality: Quality | str = "poor") -> tuple[SuccessPattern, ...]:
    """Give what went well in the successful trajectories of that quality or better, most frequent first.

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


def _check_rate(rate: object) -> float:
    if not isinstance(rate, bool) and isinstance(rate, (int, float)) and 0 <= rate <= 1:
        return float(rate)
    raise ValueError(f"expected_rate must be a probability from 0 to 1, not {rate!r}")
