"""What came of a lesson that was shown: credit for a pass, harm for a failure. Works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.learning.lessons.adding import overrule
from pytest_golden.learning.lessons.model import LessonChange
from pytest_golden.learning.lessons.store import find_lesson, find_recall, put_lesson, settle_recall
from pytest_golden.storage.moments import to_ms

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory


def settle(connection: Connection, recall_id: str, now: datetime, *, passed: bool) -> SkillMemory | None:
    """Credit or charge the lesson of a recall, once; give it as it is now, None when it is gone.

    Raises:
        GoldenError: there was no such recall, or its lesson was deleted.
    """
    is_news = settle_recall(connection, recall_id, to_ms(now), passed=passed)
    recall = find_recall(connection, recall_id)
    if recall is None:
        told = f"there was no recall {recall_id!r:.100}, or its lesson was deleted since"
        raise GoldenError(f"{told}; `Recalled.recall_id` is what `Lessons.recall` gave")
    kept = find_lesson(connection, recall.lesson_id)
    if kept is None or not is_news:
        return None if kept is None else kept.skill
    changed = credit(kept.skill, now) if passed else kept.skill.replace(harm_count=kept.skill.harm_count + 1)
    why = LessonChange.HELPED if passed else LessonChange.HARMED
    credited = put_lesson(connection, changed, kept.agent, to_ms(now), why=why, about={"recall": recall_id})
    if credited.approved and not kept.skill.approved:
        overrule(connection, credited, kept.agent, to_ms(now))
    return credited


def credit(skill: SkillMemory, now: datetime) -> SkillMemory:
    """Give a lesson with one more success; a pass approves what a model said, and nothing that a person rejected."""
    return skill.replace(
        success_count=skill.success_count + 1, last_used=now, approved=skill.approved or not skill.rejected
    )
