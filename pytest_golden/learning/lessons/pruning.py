"""Which lessons may go: by age, by number, and by harm. Pure."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from pytest_golden.learning.lessons.standing import is_harmful, may_be_shown
from pytest_golden.learning.limits import check_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.lessons.store import KeptLesson


def choose_lessons(
    lessons: Iterable[KeptLesson],
    now: datetime,
    *,
    older_than_days: float | None = None,
    keep: int | None = None,
    harmful: bool = False,
) -> tuple[KeptLesson, ...]:
    """Choose those to delete; what a person approved stays, and what was rejected, or it would be learned again.

    Raises:
        ValueError: a limit is negative or no number.
    """
    days = check_seconds("older_than_days", older_than_days)
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise ValueError(f"keep must be a whole number, 0 or more, not {keep!r}")
    loose = [one for one in lessons if one.skill.judged_by is None and not one.skill.rejected]
    beyond = set() if keep is None else _find_beyond(loose, keep)
    # Nobody's clock reaches so far back that more days would matter.
    oldest = None if days is None else now - timedelta(days=min(days, 100_000))
    return tuple(
        one
        for one in loose
        if one.skill.id in beyond
        or (harmful and is_harmful(one.skill))
        or (oldest is not None and _last_seen(one.skill) < oldest)
    )


def _find_beyond(lessons: Iterable[KeptLesson], keep: int) -> set[str]:
    by_agent: dict[str, list[SkillMemory]] = defaultdict(list)
    for one in lessons:
        by_agent[one.agent].append(one.skill)
    return {skill.id for skills in by_agent.values() for skill in sorted(skills, key=_worth, reverse=True)[keep:]}


def _worth(skill: SkillMemory) -> tuple[Any, ...]:
    return (
        may_be_shown(skill),
        skill.superseded_by is None,
        skill.success_count - skill.harm_count,
        skill.support,
        _last_seen(skill),
        skill.id,
    )


def _last_seen(skill: SkillMemory) -> datetime:
    return max(skill.created_at, skill.last_used or skill.created_at)
