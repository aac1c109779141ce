"""Contradictions between thoughts that nothing came between. Pure.

What was done or seen may change what is true, so a statement is held only against those of the same unbroken run of
reasoning steps, and only against those of other steps: within one, both sides of a question may be weighed. Thoughts under
different parents may be of different agents about different things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.model import ReasoningIssue, ReasoningIssueType, Severity
from pytest_golden.trajectory.analysis.statements import Statement, list_statements, takes_back
from pytest_golden.trajectory.analysis.telling import one_line, text_of
from pytest_golden.trajectory.vocabulary import StepType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.trajectory.step import Step


def find_contradictions(steps: Iterable[Step]) -> Iterator[ReasoningIssue]:
    """Give one issue for each statement that is denied, or affirmed, by a later step of the same run of thoughts."""
    held: dict[tuple[str | None, tuple[str, ...]], tuple[Step, Statement]] = {}
    for step in steps:
        if step.type is not StepType.REASONING:
            held.clear()
            continue
        text = text_of(step.content)
        may_contradict = not takes_back(text)
        for statement in list_statements(text):
            place = (step.parent_step_id, statement.words)
            earlier = held.get(place)
            if earlier is None or earlier[1].is_denied == statement.is_denied:
                held.setdefault(place, (step, statement))
                continue
            if may_contradict and earlier[0] is not step:
                yield _issue(*earlier, step, statement)
            held[place] = (step, statement)


def _issue(earlier: Step, said: Statement, later: Step, denied: Statement) -> ReasoningIssue:
    return ReasoningIssue(
        type=ReasoningIssueType.CONTRADICTION,
        severity=Severity.HIGH,
        evidence=f"'{one_line(said.said, 140)}' against '{one_line(denied.said, 140)}'",
        step_ids=(earlier.id, later.id),
    )
