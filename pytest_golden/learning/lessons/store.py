"""Store lessons as memories, with the signatures that find them, and the results of showing them. Nothing is checked here."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import starmap
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, delete, func, insert, select, update

from pytest_golden.clock import iso_utc, new_id
from pytest_golden.learning import store as memory_rows
from pytest_golden.learning.lessons.likeness import list_digests, list_errors, project_of
from pytest_golden.learning.lessons.model import LessonChange, SkillMemory
from pytest_golden.learning.memories import draft_memory, words_of
from pytest_golden.learning.signature import find_causes
from pytest_golden.storage.columns import from_ms, namespace_range, read_namespace, storable
from pytest_golden.storage.schema import lesson_recalls, lesson_signatures, memories
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import Recalled
    from pytest_golden.learning.model import Memory

_log = logging.getLogger(__name__)
LESSONS = "lessons"
_LAST_SIGN = "\U0010ffff"
_MOST_OF_ERROR, _MOST_CAUSES = 2_000, 3
# The namespace is `("lessons", agent)`; memories above or below it are not lessons.
_DEPTH = 2
_MOST_COUNTED = 5_000


def _write_ms(at: int) -> str:
    return iso_utc(from_ms(at))


@dataclass(frozen=True, slots=True)
class KeptLesson(Shape):
    """A stored lesson: its agent, its version, and who changed it last and why (`provenance`)."""

    skill: SkillMemory = field(metadata=form(merged=True))
    agent: str
    version: int = field(default=1, metadata=form(hidden=True))
    provenance: Mapping[str, Any] | None = field(default=None, metadata=form(hidden=True))


@dataclass(frozen=True, slots=True)
class RecallRow(Shape):
    """A recall: a lesson was shown. `passed` is None until a result followed. Times are in milliseconds since the epoch."""

    id: str
    lesson_id: str
    agent: str
    project: str | None
    entry_id: str | None
    passed: bool | None
    why: str = ""
    created_at: int = field(default=0, metadata=form(write=_write_ms, as_type=datetime))


_RECALLS = select(*(lesson_recalls.c[one.name] for one in fields(RecallRow)))


def put_lesson(
    connection: Connection,
    skill: SkillMemory,
    agent: str,
    timestamp: int,
    *,
    why: LessonChange = LessonChange.LEARNED,
    by: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> SkillMemory:
    """Store a lesson, redacted, with its signatures, and return the stored form. A change is a new version.

    It is not compared with other lessons: `adding.add_lesson` does that.

    Args:
        connection: to the store, writing.
        skill: the lesson; its id is its key.
        agent: the owner of the lesson.
        timestamp: milliseconds since the epoch.
        why: the kind of change; it is in the version's provenance, and a merge of stores goes by it.
        by: the person who changed it.
        about: more for the provenance: `recall`, the id of the settled recall; `support`, the added support; `run`, `commit`.

    Raises:
        ValueError: the agent is blank, or the lesson is more than 1 MiB.
    """
    provenance = {"why": why.value, "by": by, **(about or {})}
    draft = draft_memory((LESSONS, agent), skill.id, skill.to_dict(), tag_lesson(skill), provenance)
    kept = SkillMemory.from_dict(draft.value)
    memory_rows.put_memory(connection, draft._replace(words=words_of_lesson(kept)), timestamp)
    put_signatures(connection, kept, agent)
    return kept


def tag_lesson(skill: SkillMemory) -> tuple[str, ...]:
    """Return the tags of a lesson's memory."""
    return ("lesson", str(skill.kind))


def words_of_lesson(skill: SkillMemory) -> str:
    """Return the words that find a lesson: those of its texts, without its id, dates and kind."""
    texts = [skill.lesson, skill.context, skill.what_failed, skill.what_worked, skill.why, skill.tool_name]
    errors = ["\n".join(find_causes(error)[:_MOST_CAUSES])[:_MOST_OF_ERROR] for error in list_errors(skill.evidence)]
    return storable(words_of([*texts, project_of(skill), *errors]))


def put_signatures(connection: Connection, skill: SkillMemory, agent: str) -> None:
    """Store the digests that find a lesson in place of the stored ones."""
    project = project_of(skill)
    wanted = list_digests(skill)
    of_lesson = lesson_signatures.c.lesson_id == skill.id
    present = {
        row.digest for row in connection.execute(select(lesson_signatures).where(of_lesson)) if row.project == project
    }
    if present == set(wanted):
        return
    connection.execute(delete(lesson_signatures).where(of_lesson))
    rows = [{"digest": one, "lesson_id": skill.id, "agent": agent, "project": project} for one in wanted]
    connection.execute(insert(lesson_signatures), rows)


def find_by_digests(
    connection: Connection, digests: Sequence[str], agent: str | None = None
) -> dict[str, tuple[KeptLesson, ...]]:
    """Return the lessons, of all agents or of one, under each of these digests, with the rejected and superseded ones."""
    query = select(lesson_signatures).where(lesson_signatures.c.digest.in_(digests))
    if agent is not None:
        query = query.where(lesson_signatures.c.agent == agent)
    rows = connection.execute(query.order_by(lesson_signatures.c.lesson_id)).all()
    kept = {one.skill.id: one for one in find_lessons(connection, [(row.agent, row.lesson_id) for row in rows])}
    found: dict[str, list[KeptLesson]] = {}
    for row in rows:
        if row.lesson_id in kept:
            found.setdefault(row.digest, []).append(kept[row.lesson_id])
    return {digest: tuple(lessons) for digest, lessons in found.items()}


def find_by_digest(
    connection: Connection, digest: str, agent: str | None, project: str | None, limit: int
) -> tuple[KeptLesson, ...]:
    """Return up to `limit` lessons under a digest, those learned in this project first, then the newest."""
    query = select(lesson_signatures.c.agent, lesson_signatures.c.lesson_id).where(lesson_signatures.c.digest == digest)
    if agent is not None:
        query = query.where(lesson_signatures.c.agent == agent)
    if project is not None:
        query = query.order_by(case((lesson_signatures.c.project == project, 0), else_=1))
    rows = connection.execute(query.order_by(lesson_signatures.c.number.desc()).limit(limit))
    return find_lessons(connection, [(row.agent, row.lesson_id) for row in rows])


def iterate_by_words(
    connection: Connection, query: str, agent: str | None, limit: int, *, at_once: int
) -> Iterator[KeptLesson]:
    """Yield up to `limit` lessons that contain any of these words, best first; read `at_once` of them, as they are consumed."""
    prefix = (LESSONS,) if agent is None else (LESSONS, agent)
    for hit in memory_rows.iterate_search(connection, prefix, query, limit, at_once=at_once):
        if len(hit.memory.namespace) == _DEPTH:
            yield from _read(hit.memory)


def find_lessons(connection: Connection, wanted: Iterable[tuple[str, str]]) -> tuple[KeptLesson, ...]:
    """Return the lessons of these agents and ids that exist, in the given order."""
    pairs = dict.fromkeys(wanted)
    found = memory_rows.find_by_pairs(connection, [((LESSONS, agent), lesson_id) for agent, lesson_id in pairs])
    kept = {(one.agent, one.skill.id): one for memory in found for one in _read(memory)}
    return tuple(kept[pair] for pair in pairs if pair in kept)


def find_lesson(connection: Connection, lesson_id: str) -> KeptLesson | None:
    """Return the lesson with this id, of any agent; None when there is none."""
    return next(iter(find_lessons(connection, _list_pairs(connection, lesson_id, lesson_id, 1))), None)


def list_ids(connection: Connection, prefix: str, limit: int) -> tuple[tuple[str, str], ...]:
    """Return agents and ids of the lessons whose id begins with this, by their ids."""
    return _list_pairs(connection, prefix, prefix + _LAST_SIGN, limit)


def list_newest_ids(
    connection: Connection,
    *,
    before: str | None = None,
    agent: str | None = None,
    project: str | None = None,
    limit: int,
) -> tuple[tuple[str, str], ...]:
    """Return agents and ids of lessons, the newest first: all, or those below an id, of an agent, or of a project."""
    rows = lesson_signatures.c
    query = select(rows.agent, rows.lesson_id).distinct()
    for column, value in ((rows.agent, agent), (rows.project, project)):
        query = query if value is None else query.where(column == value)
    if before is not None:
        query = query.where(rows.lesson_id < before)
    found = connection.execute(query.order_by(rows.lesson_id.desc(), rows.agent).limit(limit))
    return tuple((row.agent, row.lesson_id) for row in found)


def list_lessons(connection: Connection, agent: str | None = None) -> Iterator[KeptLesson]:
    """Yield all lessons, or one agent's, by agent and id, with the rejected and superseded ones."""
    namespaces = memory_rows.list_namespaces(connection, (LESSONS,)) if agent is None else [(LESSONS, agent)]
    for namespace in (one for one in namespaces if len(one) == _DEPTH):
        found = memory_rows.find_by_keys(connection, namespace, memory_rows.list_keys(connection, namespace))
        for memory in sorted(found, key=lambda one: one.key):
            yield from _read(memory)


def list_lesson_versions(connection: Connection, agent: str, lesson_id: str) -> tuple[KeptLesson, ...]:
    """Return all versions of a lesson, oldest first."""
    return tuple(
        lesson
        for memory in memory_rows.list_versions(connection, (LESSONS, agent), lesson_id)
        for lesson in _read(memory)
    )


def delete_lesson(connection: Connection, agent: str, lesson_id: str) -> bool:
    """Remove a lesson with its signatures and recalls, and return whether it existed."""
    for table in (lesson_signatures, lesson_recalls):
        connection.execute(delete(table).where(table.c.lesson_id == lesson_id))
    return memory_rows.delete_memory(connection, (LESSONS, agent), lesson_id)


def put_recall(
    connection: Connection,
    lesson: KeptLesson,
    found: Recalled,
    timestamp: int,
    *,
    project: str | None = None,
    entry_id: str | None = None,
) -> str:
    """Store that a lesson was shown, and return the id of this recall."""
    recall_id = new_id("recall")
    row = {
        "id": recall_id,
        "lesson_id": lesson.skill.id,
        "agent": lesson.agent,
        "project": project,
        "entry_id": entry_id,
        "why": found.why.value,
        "score": found.score,
        "created_at": timestamp,
    }
    connection.execute(insert(lesson_recalls), row)
    return recall_id


def settle_recall(connection: Connection, recall_id: str, timestamp: int, *, passed: bool) -> bool:
    """Store the result of a recall, and return whether it is the first one."""
    changed = connection.execute(
        update(lesson_recalls)
        .where(lesson_recalls.c.id == recall_id, lesson_recalls.c.settled_at.is_(None))
        .values(settled_at=timestamp, passed=passed)
    )
    return changed.rowcount == 1


def find_recall(connection: Connection, recall_id: str) -> RecallRow | None:
    """Return the recall with this id; None when there is none."""
    row = connection.execute(_RECALLS.where(lesson_recalls.c.id == recall_id)).one_or_none()
    return None if row is None else RecallRow(*row)


def list_recalls(connection: Connection, lesson_id: str, limit: int) -> tuple[RecallRow, ...]:
    """Return the newest recalls of a lesson, newest first."""
    query = _RECALLS.where(lesson_recalls.c.lesson_id == lesson_id)
    rows = connection.execute(query.order_by(lesson_recalls.c.number.desc()).limit(limit))
    return tuple(starmap(RecallRow, rows))


def list_unsettled(connection: Connection, project: str) -> tuple[RecallRow, ...]:
    """Return the recalls for a golden project that have no result yet, in the order of recording."""
    query = _RECALLS.where(lesson_recalls.c.project == project, lesson_recalls.c.settled_at.is_(None))
    return tuple(starmap(RecallRow, connection.execute(query.order_by(lesson_recalls.c.number))))


def count_recalls(connection: Connection, agent: str | None = None) -> dict[bool | None, int]:
    """Count the recalls by their results: passed, failed, None for none yet."""
    query = select(lesson_recalls.c.passed, func.count()).group_by(lesson_recalls.c.passed)
    if agent is not None:
        query = query.where(lesson_recalls.c.agent == agent)
    return {row[0]: row[1] for row in connection.execute(query)}


def count_recalls_by_agent(connection: Connection, since: int | None) -> dict[str, dict[bool | None, int]]:
    """Count the recalls of each agent's lessons since a time in milliseconds, by their results as `count_recalls` does."""
    query = select(lesson_recalls.c.agent, lesson_recalls.c.passed, func.count())
    query = query.group_by(lesson_recalls.c.agent, lesson_recalls.c.passed)
    if since is not None:
        query = query.where(lesson_recalls.c.created_at >= since)
    counts: dict[str, dict[bool | None, int]] = {}
    for agent, passed, count in connection.execute(query):
        counts.setdefault(agent, {})[passed] = count
    return counts


def count_waiting(connection: Connection) -> dict[str, int]:
    """Count those of the latest 5,000 lessons that wait for a person, by agent."""
    low, high = namespace_range((LESSONS,)) or ("", "")
    namespace, value = memories.c.namespace, memories.c.value
    latest = select(memories.c.number).where(namespace >= low, namespace < high, memory_rows.IS_NEWEST)
    numbers = latest.order_by(memories.c.number.desc()).limit(_MOST_COUNTED)
    query = (
        select(namespace, func.count())
        .where(memories.c.number.in_(numbers.scalar_subquery()))
        .where(value["approved"].as_boolean().is_(False), value["rejected"].as_boolean().is_(False))
        .where(value["superseded_by"].as_string().is_(None))
        .group_by(namespace)
    )
    return {read_namespace(found)[1]: count for found, count in connection.execute(query)}


def _list_pairs(connection: Connection, low: str, high: str, limit: int) -> tuple[tuple[str, str], ...]:
    lesson_id = lesson_signatures.c.lesson_id
    query = select(lesson_signatures.c.agent, lesson_id).where(lesson_id >= low, lesson_id <= high).distinct()
    rows = connection.execute(query.order_by(lesson_id, lesson_signatures.c.agent).limit(limit))
    return tuple((row.agent, row.lesson_id) for row in rows)


def _read(memory: Memory) -> Iterator[KeptLesson]:
    """Yield the lesson in a memory; nothing for a memory of another program that is not a lesson."""
    try:
        skill = SkillMemory.from_dict(memory.value)
    except (TypeError, ValueError):
        _log.warning("a memory among the lessons is not a lesson", extra={"key": memory.key})
        return
    yield KeptLesson(skill, memory.namespace[1], memory.version, memory.provenance)
