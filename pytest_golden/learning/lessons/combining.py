"""What becomes of a lesson that is learned again. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.learning.lessons.sameness import MOST_ERRORS, errors_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.learning.lessons.model import SkillMemory

_TEXTS = ("context", "what_failed", "what_worked", "why", "tool_name")


def learn_again(known: SkillMemory, again: SkillMemory) -> SkillMemory:
    """Give a known lesson with what the same lesson, learned again, adds to it: its support and what was not known.

    What rules or a person say approves what a model said.
    """
    approves = again.approved and known.judged_by is None
    return known.replace(
        **{name: getattr(known, name) or getattr(again, name) for name in _TEXTS},
        confidence=max(known.confidence, again.confidence),
        support=known.support + again.support,
        approved=known.approved or approves,
        evidence=join_evidence((known.evidence, again.evidence)),
        created_at=min(known.created_at, again.created_at),
    )


def join_evidence(evidences: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give one evidence with the errors of all, the first as `error` and the others as `errors`; else the first one counts."""
    joined: dict[str, Any] = {}
    errors: dict[str, None] = {}
    for evidence in evidences:
        joined = {**evidence, **joined}
        errors |= dict.fromkeys(errors_in(evidence))
    if errors:
        joined["error"], *more = list(errors)[:MOST_ERRORS]
        if more:
            joined["errors"] = more
    return joined
