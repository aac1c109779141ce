"""Add, find, judge, recall, count and prune the lessons of a store."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from pytest_golden.clock import new_id, utc_now
from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.learning.lessons import store as rows
from pytest_golden.learning.lessons.edits import check_language
from pytest_golden.learning.lessons.likeness import contradicts, find_keys, learn_again
from pytest_golden.learning.lessons.model import LessonChange, LessonSource, LessonStats, LessonVerdict
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.lessons.recalling import is_harmful, may_be_shown, recall_lessons
from pytest_golden.learning.memories import write_json
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import storable, to_ms
from pytest_golden.storage.store import Store
from pytest_golden.values.checking import check_any_text, check_count, check_flag, check_seconds, check_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import Recalled, SkillMemory

    class HasStore(Protocol):
        """What stands on a store, such as a `MemoryStore`."""

        @property
        def store(self) -> Store:
            """Return the store."""
            ...

    # Lessons by a digest.
    _Found = dict[str, tuple[rows.KeptLesson, ...]]


_log = logging.getLogger(__name__)
_ID_PREFIX = "lesson_"
_MOST_CANDIDATES = 5
_MUST_WAIT = frozenset({LessonSource.MODEL, LessonSource.AGENT})


class Lessons:
    """The lessons in a store that the caller owns. Safe between threads.

    Every method raises `StorageError` when the store cannot be used.
    """

    def __init__(self, store: HasStore | Store, *, clock: Callable[[], datetime] | None = None) -> None:
        self._store = store if isinstance(store, Store) else store.store
        self._clock = clock or utc_now

    def add(self, skill: SkillMemory, agent: str) -> LessonVerdict:
        """Store a lesson for an agent, unless a check refuses it or it was rejected before.

        Raises:
            ValueError: the agent is blank or cannot be stored, or the lesson is more than 1 MiB.
        """
        check_text("agent", agent)
        if storable(agent) != agent:
            raise ValueError(f"agent {agent!r} holds NUL or a lone surrogate, which cannot be kept; give plain text")
        with self._store.write() as connection:
            return add_lesson(connection, skill, agent, self._timestamp())

    def list_lessons(
        self, agent: str | None = None, include_superseded: bool = False, *, include_rejected: bool = False
    ) -> tuple[SkillMemory, ...]:
        """Return the lessons of all agents, or of one, by agent and id, with those that wait for approval."""
        kept = self.list_kept(agent, include_superseded=include_superseded, include_rejected=include_rejected)
        return tuple(one.skill for one in kept)

    def list_kept(
        self, agent: str | None = None, *, include_superseded: bool = False, include_rejected: bool = False
    ) -> tuple[rows.KeptLesson, ...]:
        """Return the same lessons with their agents."""
        with self._store.read() as connection:
            return tuple(
                one
                for one in rows.list_lessons(connection, agent)
                if (include_superseded or one.skill.superseded_by is None)
                and (include_rejected or not one.skill.rejected)
            )

    def get(self, lesson_id: str) -> SkillMemory:
        """Get the lesson with this id, or with the only id that begins with it.

        Raises:
            GoldenError: no lesson has such an id, or several have; the message names them.
        """
        return self.get_kept(lesson_id).skill

    def get_kept(self, lesson_id: str) -> rows.KeptLesson:
        """Get the same lesson with its agent. Raise as `get` does."""
        with self._store.read() as connection:
            return _get_kept(connection, lesson_id)

    def history(self, lesson_id: str) -> tuple[rows.KeptLesson, ...]:
        """Return all versions of a lesson, oldest first, each with its author and reason. Raise as `get` does."""
        with self._store.read() as connection:
            kept = _get_kept(connection, lesson_id)
            return rows.list_lesson_versions(connection, kept.agent, kept.skill.id)

    def approve(self, lesson_id: str, by: str) -> SkillMemory:
        """Approve a lesson for a person, a rejected one as well; the latest judgement holds. Raise as `get` does."""
        return self._judge(lesson_id, by, approved=True)

    def reject(self, lesson_id: str, by: str) -> SkillMemory:
        """Reject a lesson for a person: it is not shown nor learned again, and supersedes nothing. Raise as `get` does."""
        return self._judge(lesson_id, by, approved=False)

    def delete(self, lesson_id: str) -> SkillMemory:
        """Delete a lesson with all its versions, and return it; it may be learned again. Raise as `get` does."""
        with self._store.write() as connection:
            kept = _get_kept(connection, lesson_id)
            rows.delete_lesson(connection, kept.agent, kept.skill.id)
            revive(connection, kept.skill, kept.agent, self._timestamp())
        return kept.skill

    def recall(
        self,
        text: str,
        *,
        project: str | None = None,
        agent: str | None = None,
        language: str | None = None,
        limit: int = 3,
        entry_id: str | None = None,
        root: Path | None = None,
    ) -> tuple[Recalled, ...]:
        """Find the lessons that apply to a failure, best first, and record that they were shown, if the store can.

        Args:
            text: the failure's message, or a task.
            project: the golden project that failed: it only ranks the lessons.
            agent: search only this agent's lessons.
            language: leave out lessons that come from files of other languages alone, such as `python` or `sql`.
            limit: the most lessons to return.
            entry_id: the gate's entry that they are shown for.
            root: the folder that is worked in: what has changed there makes a lesson stale, and it comes last.

        Raises:
            ValueError: the limit is below 1, the text is not text, or the language is unknown.
        """
        check_count("limit", limit, least=1)
        check_any_text("text", text)
        check_language(language)
        project, agent, entry_id = (None if one is None else storable(one) for one in (project, agent, entry_id))
        with self._store.read() as connection:
            found = recall_lessons(
                connection, text, project=project, agent=agent, language=language, limit=limit, root=root
            )
        if not found:
            return ()
        try:
            with self._store.write() as connection:
                recalled, now = [], self._timestamp()
                for one in found:
                    kept = rows.find_lesson(connection, one.lesson.id)
                    if kept is not None:
                        key = rows.put_recall(connection, kept, one, now, project=project, entry_id=entry_id)
                        recalled.append(replace(one, recall_id=key))
                return tuple(recalled)
        except StorageError as error:
            # The lessons are returned anyway.
            _log.warning("that lessons were shown cannot be kept: %s", error)
            return found

    def settle(self, recall_id: str, passed: bool) -> SkillMemory | None:
        """Credit a lesson that was shown with a pass, or charge it with a failure; a second call changes nothing.

        Return the present lesson; None when it is gone from the memories.

        Raises:
            GoldenError: no such recall is known, or its lesson was deleted.
            ValueError: `passed` is not True or False.
        """
        check_flag("passed", passed)
        with self._store.write() as connection:
            return settle(connection, storable(f"{recall_id}"), self._clock(), passed=passed)

    def stats(self, agent: str | None = None) -> LessonStats:
        """Count the lessons of all agents, or of one, and the results of showing them."""
        with self._store.read() as connection:
            kept, recalls = list(rows.list_lessons(connection, agent)), rows.count_recalls(connection, agent)
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

    def prune(
        self,
        agent: str | None = None,
        *,
        older_than_days: float | None = None,
        keep: int | None = None,
        harmful: bool = False,
        dry_run: bool = False,
    ) -> tuple[SkillMemory, ...]:
        """Delete lessons and return them. Those that a person judged stay, and rejected ones too, or they would be learned again.

        Args:
            agent: delete only this agent's lessons.
            older_than_days: delete lessons that were neither learned nor helpful for so long.
            keep: delete all but so many of each agent, the best ones.
            harmful: delete lessons that harmed five times and never helped.
            dry_run: delete nothing, only return the lessons.

        Raises:
            ValueError: a limit is negative or not a number.
        """
        days = check_seconds("older_than_days", older_than_days)
        if keep is not None:
            check_count("keep", keep)
        # `datetime` cannot go back further.
        oldest = None if days is None else self._clock() - timedelta(days=min(days, 100_000))
        with self._store.write() as connection:
            kept = rows.list_lessons(connection, agent)
            loose = [one for one in kept if one.skill.judged_by is None and not one.skill.rejected]
            beyond = set() if keep is None else _find_beyond(loose, keep)
            chosen = [
                one
                for one in loose
                if one.skill.id in beyond
                or (harmful and is_harmful(one.skill))
                or (oldest is not None and _last_seen(one.skill) < oldest)
            ]
            for one in () if dry_run else chosen:
                rows.delete_lesson(connection, one.agent, one.skill.id)
        return tuple(one.skill for one in chosen)

    def _judge(self, lesson_id: str, by: str, *, approved: bool) -> SkillMemory:
        check_text("by", by)
        now = self._clock()
        with self._store.write() as connection:
            kept = _get_kept(connection, lesson_id)
            judged = kept.skill.replace(approved=approved, rejected=not approved, judged_by=by, judged_at=now)
            if approved:
                # A person who approves a superseded lesson wants it to be shown.
                judged = judged.replace(superseded_by=None)
            why = LessonChange.APPROVED if approved else LessonChange.REJECTED
            judged = rows.put_lesson(connection, judged, kept.agent, to_ms(now), why=why, by=by)
            (overrule if approved else revive)(connection, judged, kept.agent, to_ms(now))
            return judged

    def _timestamp(self) -> int:
        return to_ms(self._clock())


def _get_kept(connection: Connection, given: str) -> rows.KeptLesson:
    check_text("the id of a lesson", given)
    wanted = storable(given.strip())
    exact = rows.find_lesson(connection, wanted)
    if exact is not None:
        return exact
    pairs = rows.list_ids(connection, wanted, _MOST_CANDIDATES + 1)
    if not pairs and not wanted.startswith(_ID_PREFIX):
        pairs = rows.list_ids(connection, _ID_PREFIX + wanted, _MOST_CANDIDATES + 1)
    if len(pairs) > 1:
        named = ", ".join(key for _, key in pairs[:_MOST_CANDIDATES])
        more = ", ..." if len(pairs) > _MOST_CANDIDATES else ""
        raise GoldenError(
            f"{wanted!r:.100} begins the ids of several lessons: {named}{more}; give more of the one you mean"
        )
    kept = rows.find_lessons(connection, pairs)
    if not kept:
        raise GoldenError(f"there is no lesson {wanted!r:.100}; `golden lessons list` names those that are there")
    return kept[0]


def _find_beyond(lessons: Iterable[rows.KeptLesson], keep: int) -> set[str]:
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
    if rows.find_lesson(connection, clean.id) is not None:
        # It was made from a stored lesson; its content decides whether it is equal.
        clean = clean.replace(id=new_id("lesson"))
    keys = find_keys(clean)
    found = rows.find_by_digests(connection, (*keys.same, *keys.about), agent)
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
    is_approved = skill.approved and skill.source not in _MUST_WAIT
    clean = type(skill).from_dict(redact(skill.to_dict()))
    return clean.replace(approved=is_approved, rejected=False, judged_by=None, judged_at=None)


def overrule(connection: Connection, skill: SkillMemory, agent: str, timestamp: int) -> None:
    """Supersede the lessons that contradict a lesson which was just approved."""
    keys = find_keys(skill)
    others = _list_contradicting(skill, rows.find_by_digests(connection, keys.about, agent), keys.about)
    _supersede(connection, skill, others, timestamp)


def revive(connection: Connection, gone: SkillMemory, agent: str, timestamp: int) -> None:
    """Revive the lessons that `gone`, just rejected or deleted, had superseded, except those that say the same."""
    said = set(find_keys(gone).same)
    superseded = [one for one in rows.list_lessons(connection, agent) if one.skill.superseded_by == gone.id]
    for one in superseded:
        if said.isdisjoint(find_keys(one.skill).same):
            back = one.skill.replace(superseded_by=None)
            rows.put_lesson(connection, back, agent, timestamp, why=LessonChange.REVIVED, about={"support": 0})


def settle(connection: Connection, recall_id: str, now: datetime, *, passed: bool) -> SkillMemory | None:
    """Credit or charge the lesson of a recall, once; return the present lesson, None when it is gone.

    Raises:
        GoldenError: no such recall is known, or its lesson was deleted.
    """
    is_news = rows.settle_recall(connection, recall_id, to_ms(now), passed=passed)
    recall = rows.find_recall(connection, recall_id)
    if recall is None:
        unknown = f"there was no recall {recall_id!r:.100}, or its lesson was deleted since"
        raise GoldenError(f"{unknown}; `Lessons.recall` returns the id as `Recalled.recall_id`")
    kept = rows.find_lesson(connection, recall.lesson_id)
    if kept is None or not is_news:
        return None if kept is None else kept.skill
    skill = kept.skill
    helped = {"success_count": skill.success_count + 1, "last_used": now}
    changed = skill.replace(**(helped if passed else {"harm_count": skill.harm_count + 1}))
    why = LessonChange.HELPED if passed else LessonChange.HARMED
    return rows.put_lesson(connection, changed, kept.agent, to_ms(now), why=why, about={"recall": recall_id})


def _choose(found: _Found, digests: Sequence[str]) -> rows.KeptLesson | None:
    """Choose one of equal lessons: a rejected one first, then a current before a superseded one, then the oldest."""
    same = {one.skill.id: one for digest in digests for one in found.get(digest, ())}
    return min(
        same.values(),
        key=lambda one: (not one.skill.rejected, one.skill.superseded_by is not None, one.skill.id),
        default=None,
    )


def _list_contradicting(skill: SkillMemory, found: _Found, digests: Sequence[str]) -> list[rows.KeptLesson]:
    """List the current lessons that contradict this one; an unapproved lesson neither overrules nor is overruled."""
    if not skill.approved or skill.superseded_by is not None:
        return []
    about = {one.skill.id: one for digest in digests for one in found.get(digest, ())}
    standing = [one for one in about.values() if one.skill.approved and one.skill.superseded_by is None]
    return [one for one in standing if one.skill.id != skill.id and contradicts(one.skill, skill)]


def _keep_new(
    connection: Connection, skill: SkillMemory, agent: str, timestamp: int, others: Sequence[rows.KeptLesson]
) -> LessonVerdict:
    later = [(one.skill.created_at, one.skill.id) for one in others if one.skill.created_at > skill.created_at]
    if later:
        _, latest = max(later)
        kept = rows.put_lesson(connection, skill.replace(superseded_by=latest), agent, timestamp)
        return LessonVerdict(kept=True, reason=f"superseded by the later {latest}", skill=kept)
    kept = rows.put_lesson(connection, skill, agent, timestamp)
    return LessonVerdict(kept=True, reason=_supersede(connection, kept, others, timestamp), skill=kept)


def _supersede(connection: Connection, kept: SkillMemory, others: Sequence[rows.KeptLesson], timestamp: int) -> str:
    for one in others:
        changed = one.skill.replace(superseded_by=kept.id)
        rows.put_lesson(connection, changed, one.agent, timestamp, why=LessonChange.SUPERSEDED)
    return f"new; supersedes {_list_names(others)}" if others else "new"


def _keep_again(connection: Connection, same: rows.KeptLesson, skill: SkillMemory, timestamp: int) -> LessonVerdict:
    if same.skill.approved and not skill.approved:
        # What waits changes nothing that is shown: not its words, its rank, nor what it superseded.
        return LessonVerdict(kept=True, reason="known already", skill=same.skill)
    grown = learn_again(same.skill, skill)
    keys = find_keys(grown)
    about = rows.find_by_digests(connection, keys.about, same.agent)
    contradicting = _list_contradicting(grown.replace(superseded_by=None), about, keys.about)
    overruled = [one for one in contradicting if one.skill.created_at <= skill.created_at]
    is_revived = grown.superseded_by is not None and len(overruled) == len(contradicting)
    why = LessonChange.REVIVED if is_revived else LessonChange.LEARNED_AGAIN
    if is_revived:
        grown = grown.replace(superseded_by=None)
    kept = rows.put_lesson(connection, grown, same.agent, timestamp, why=why, about={"support": skill.support})
    reason = f"known already, learned {kept.support} times"
    if kept.superseded_by is not None:
        return LessonVerdict(kept=True, reason=f"{reason}; superseded by {kept.superseded_by}", skill=kept)
    if overruled:
        reason = f"{reason}; supersedes {_list_names(overruled)}"
        _supersede(connection, kept, overruled, timestamp)
    return LessonVerdict(kept=True, reason=reason, skill=kept)


def _list_names(lessons: Sequence[rows.KeptLesson]) -> str:
    return ", ".join(one.skill.id for one in lessons)
