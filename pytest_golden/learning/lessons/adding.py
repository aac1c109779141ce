"""Add lessons to a store, and credit them: an equal lesson adds support, a contradiction supersedes, a pass approves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.clock import new_id
from pytest_golden.errors import GoldenError
from pytest_golden.learning.lessons.likeness import contradicts, find_keys, learn_again
from pytest_golden.learning.lessons.model import LessonChange, LessonSource, LessonVerdict
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.lessons.store import (
    find_by_digests,
    find_lesson,
    find_recall,
    list_lessons,
    put_lesson,
    settle_recall,
)
from pytest_golden.learning.memories import write_json
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.lessons.store import KeptLesson


def add_lesson(connection: Connection, skill: SkillMemory, agent: str, timestamp: int) -> LessonVerdict:
    """Store a lesson that passes the checks, redacted, and return the verdict.

    An equal lesson raises the support of the stored one, and a rejected one stays rejected. Of two lessons that contradict
    each other, the older is superseded.

    Args:
        connection: to the store, writing.
        skill: the lesson.
        agent: the owner of the lesson.
        timestamp: milliseconds since the epoch.

    Raises:
        ValueError: the agent is blank, or the lesson is more than 1 MiB.
    """
    reasons = check_lesson(skill)
    if reasons:
        return LessonVerdict(kept=False, reason=redact("; ".join(reasons)), skill=skill)
    clean = _clean(skill)
    if find_lesson(connection, clean.id) is not None:
        # It was made from a stored lesson; its content decides whether it is equal.
        clean = clean.replace(id=new_id("lesson"))
    keys = find_keys(clean)
    found = find_by_digests(connection, (*keys.same, *keys.about), agent)
    same = _choose(found, keys.same)
    if same is None:
        others = _list_contradicting(clean, found, keys.about)
        return _keep_new(connection, clean, agent, timestamp, others)
    if same.skill.rejected:
        judged = f"rejected by {same.skill.judged_by}" if same.skill.judged_by else "rejected before"
        return LessonVerdict(kept=False, reason=f"the same lesson was {judged}", skill=same.skill)
    return _keep_again(connection, same, clean, timestamp)


def _clean(skill: SkillMemory) -> SkillMemory:
    """Return a lesson as a new one: redacted, and without a person's judgement that was not made in this store."""
    # Refuses a text that is too long before secrets are searched in it.
    write_json("lesson", skill.to_dict())
    is_approved = skill.approved and skill.source != LessonSource.MODEL
    clean = type(skill).from_dict(redact(skill.to_dict()))
    return clean.replace(approved=is_approved, rejected=False, judged_by=None, judged_at=None)


def overrule(connection: Connection, skill: SkillMemory, agent: str, timestamp: int) -> None:
    """Supersede the lessons that contradict a lesson which was just approved."""
    keys = find_keys(skill)
    others = _list_contradicting(skill, find_by_digests(connection, keys.about, agent), keys.about)
    _supersede(connection, skill, others, timestamp)


def revive(connection: Connection, gone: SkillMemory, agent: str, timestamp: int) -> None:
    """Revive the lessons that `gone`, just rejected or deleted, had superseded, except those that say the same."""
    said = set(find_keys(gone).same)
    superseded = [one for one in list_lessons(connection, agent) if one.skill.superseded_by == gone.id]
    for one in superseded:
        if said.isdisjoint(find_keys(one.skill).same):
            back = one.skill.replace(superseded_by=None)
            put_lesson(connection, back, agent, timestamp, why=LessonChange.REVIVED, about={"support": 0})


def settle(connection: Connection, recall_id: str, now: datetime, *, passed: bool) -> SkillMemory | None:
    """Credit or charge the lesson of a recall, once; return the present lesson, None when it is gone.

    Raises:
        GoldenError: no such recall is known, or its lesson was deleted.
    """
    is_news = settle_recall(connection, recall_id, to_ms(now), passed=passed)
    recall = find_recall(connection, recall_id)
    if recall is None:
        unknown = f"there was no recall {recall_id!r:.100}, or its lesson was deleted since"
        raise GoldenError(f"{unknown}; `Lessons.recall` returns the id as `Recalled.recall_id`")
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
    """Return a lesson with one more success; a pass approves a model's lesson, unless a person rejected it."""
    return skill.replace(
        success_count=skill.success_count + 1, last_used=now, approved=skill.approved or not skill.rejected
    )


def _choose(found: dict[str, tuple[KeptLesson, ...]], digests: Sequence[str]) -> KeptLesson | None:
    """Choose one of equal lessons: a rejected one first, then a current before a superseded one, then the oldest."""
    same = {one.skill.id: one for digest in digests for one in found.get(digest, ())}
    return min(
        same.values(),
        key=lambda one: (not one.skill.rejected, one.skill.superseded_by is not None, one.skill.id),
        default=None,
    )


def _list_contradicting(
    skill: SkillMemory, found: dict[str, tuple[KeptLesson, ...]], digests: Sequence[str]
) -> list[KeptLesson]:
    """List the current lessons that contradict this one; an unapproved lesson neither overrules nor is overruled."""
    if not skill.approved or skill.superseded_by is not None:
        return []
    about = {one.skill.id: one for digest in digests for one in found.get(digest, ())}
    standing = [one for one in about.values() if one.skill.approved and one.skill.superseded_by is None]
    return [one for one in standing if one.skill.id != skill.id and contradicts(one.skill, skill)]


def _keep_new(
    connection: Connection, skill: SkillMemory, agent: str, timestamp: int, others: Sequence[KeptLesson]
) -> LessonVerdict:
    standing = _find_later(skill, others)
    if standing is not None:
        kept = put_lesson(connection, skill.replace(superseded_by=standing.skill.id), agent, timestamp)
        return LessonVerdict(kept=True, reason=f"superseded by the later {standing.skill.id}", skill=kept)
    kept = put_lesson(connection, skill, agent, timestamp)
    return LessonVerdict(kept=True, reason=_supersede(connection, kept, others, timestamp), skill=kept)


def _find_later(skill: SkillMemory, others: Sequence[KeptLesson]) -> KeptLesson | None:
    later = [one for one in others if one.skill.created_at > skill.created_at]
    return max(later, key=lambda one: (one.skill.created_at, one.skill.id), default=None)


def _supersede(connection: Connection, kept: SkillMemory, others: Sequence[KeptLesson], timestamp: int) -> str:
    for one in others:
        changed = one.skill.replace(superseded_by=kept.id)
        put_lesson(connection, changed, one.agent, timestamp, why=LessonChange.SUPERSEDED)
    return f"new; supersedes {_list_names(others)}" if others else "new"


def _keep_again(connection: Connection, same: KeptLesson, skill: SkillMemory, timestamp: int) -> LessonVerdict:
    grown = learn_again(same.skill, skill)
    keys = find_keys(grown)
    about = find_by_digests(connection, keys.about, same.agent)
    contradicting = _list_contradicting(grown.replace(superseded_by=None), about, keys.about)
    overruled = [one for one in contradicting if one.skill.created_at <= skill.created_at]
    is_revived = grown.superseded_by is not None and len(overruled) == len(contradicting)
    why = LessonChange.REVIVED if is_revived else LessonChange.LEARNED_AGAIN
    if is_revived:
        grown = grown.replace(superseded_by=None)
    kept = put_lesson(connection, grown, same.agent, timestamp, why=why, about={"support": skill.support})
    reason = f"known already, learned {kept.support} times"
    if kept.superseded_by is not None:
        return LessonVerdict(kept=True, reason=f"{reason}; superseded by {kept.superseded_by}", skill=kept)
    if overruled:
        reason = f"{reason}; supersedes {_list_names(overruled)}"
        _supersede(connection, kept, overruled, timestamp)
    return LessonVerdict(kept=True, reason=reason, skill=kept)


def _list_names(lessons: Sequence[KeptLesson]) -> str:
    return ", ".join(one.skill.id for one in lessons)
