"""What is known of an error, in words for a reflection: lessons, and how often it was seen and what ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.seen_before import find_seen_before

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory

_MOST_LESSONS = 2


def find_known(connection: Connection, text: str, project: str | None) -> str:
    """Give a line for each lesson about the same error, and one for when it was seen before; empty when nothing is known.

    It is no recall: nobody is shown the lessons, so that nothing is credited to them.
    """
    found = recall_lessons(connection, text, project=project, limit=_MOST_LESSONS)
    seen = find_seen_before(connection, text, project=project, limit=1) if project else ()
    return "\n".join([*(_word(skill) for skill, *_ in found), *map(str, seen)])


def _word(skill: SkillMemory) -> str:
    worked = f" What worked: {skill.what_worked}" if skill.what_worked else ""
    why = f" Why: {skill.why}" if skill.why else ""
    return f"{skill.lesson}{worked}{why}"
