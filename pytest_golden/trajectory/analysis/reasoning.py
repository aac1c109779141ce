"""All reasoning issues of a trajectory, in the order of their first step. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.contradictions import find_contradictions
from pytest_golden.trajectory.analysis.phrases import (
    find_broken_thoughts,
    find_hasty_conclusions,
    find_ignored_errors,
    find_surrender,
)
from pytest_golden.trajectory.analysis.repetition import find_loops

if TYPE_CHECKING:
    from pytest_golden.trajectory.analysis.model import ReasoningIssue
    from pytest_golden.trajectory.model import Trajectory


def find_reasoning_issues(trajectory: Trajectory) -> tuple[ReasoningIssue, ...]:
    """Find what is wrong with the reasoning.

    A filtered trajectory is judged by what single steps say: what stood between two of them may be gone.
    """
    found = [*find_surrender(trajectory), *find_broken_thoughts(trajectory.steps)]
    if not trajectory.filtered:
        found += find_contradictions(trajectory.steps)
        found += find_loops(trajectory)
        found += find_hasty_conclusions(trajectory)
        found += find_ignored_errors(trajectory.steps)
    if not found:
        return ()
    places = {step.id: index for index, step in enumerate(trajectory.steps)}
    return tuple(sorted(found, key=lambda issue: (places[issue.step_ids[0]], places[issue.step_ids[-1]])))
