"""Counts over lessons. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_golden.learning.lessons.model import LessonStats
from pytest_golden.learning.lessons.standing import is_harmful, may_be_shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.learning.lessons.store import KeptLesson


def count_lessons(lessons: Iterable[KeptLesson], recalls: Mapping[bool | None, int]) -> LessonStats:
    """Count lessons, and recalls by what came of them."""
    kept = list(lessons)
    skills = [one.skill for one in kept]
    return LessonStats(
        total=len(kept),
        shown=sum(map(may_be_shown, skills)),
        unapproved=sum(not skill.approved and not skill.rejected for skill in skills),
        rejected=sum(skill.rejected for skill in skills),
        superseded=sum(skill.superseded_by is not None for skill in skills),
        harmful=sum(map(is_harmful, skills)),
        recalled=sum(recalls.values()),
        helped=recalls.get(True, 0),
        harmed=recalls.get(False, 0),
        by_kind=dict(sorted(Counter(str(skill.kind) for skill in skills).items())),
        by_agent=dict(sorted(Counter(one.agent for one in kept).items())),
    )
