"""Write the memories and lessons of one store into another, as rows; and the rules by which two histories become one, which are pure.

Content and timestamp identify a version. What the gate's results teach is not merged: it is learned again from them, since
tallies are sums. A lesson is computed from all its versions, so the order and the number of merges do not change it; versions that
an earlier merge wrote are left out and made again.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, delete, insert, select, update

from pytest_golden.learning.gate_learning import OWN_WORK
from pytest_golden.learning.lessons.likeness import JOINED_TEXTS, contradicts, find_keys, join_evidence
from pytest_golden.learning.lessons.model import LessonChange, SkillMemory
from pytest_golden.learning.lessons.store import LESSONS, put_signatures, tag_lesson, words_of_lesson
from pytest_golden.learning.memories import check_key, check_texts
from pytest_golden.learning.seen_before import TALLIES
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import read_namespace, write_namespace
from pytest_golden.storage.schema import gate_results, lesson_recalls, memories
from pytest_golden.storage.search import index_memory, unindex_memory
from pytest_golden.storage.statements import insert_if_absent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    Row = dict[str, Any]
    # Why a version was written, its provenance, and the lesson as it was then.
    Version = tuple[str | None, Mapping[str, Any], SkillMemory]

_log = logging.getLogger(__name__)
_LEARNED = (("outcomes", "golden"), ("training", "golden"))
_CONTENT = ("value", "tags", "provenance", "updated_at")
_LEARNED_AGAIN = frozenset({LessonChange.LEARNED_AGAIN, LessonChange.REVIVED})
# Changes that decide again whether a lesson is superseded.
_PLACING = frozenset({LessonChange.SUPERSEDED, LessonChange.REVIVED, LessonChange.APPROVED})
_COUNTED: Mapping[str, str] = {LessonChange.HELPED: "success_count", LessonChange.HARMED: "harm_count"}
_LESSON_DEPTH = 2
_ROWS_AT_ONCE = {"yield_per": 200}
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name != "number")
_RECALL_COLUMNS = tuple(column for column in lesson_recalls.c if column.name != "number")
_NAMESPACE, _KEY = bindparam("the_namespace", type_=Text()), bindparam("the_key", type_=Text())
_ALL = select(*_COLUMNS).order_by(memories.c.namespace, memories.c.key, memories.c.version)
_IS_OF_KEY = (memories.c.namespace == _NAMESPACE, memories.c.key == _KEY)
_OF_KEY = select(*_COLUMNS).where(*_IS_OF_KEY).order_by(memories.c.version)
_NEWEST = select(memories.c.number, memories.c.words).where(*_IS_OF_KEY, memories.c.is_newest.is_(True))
_DELETE = delete(memories).where(*_IS_OF_KEY)
_INSERT = insert(memories).returning(memories.c.number)
_HAS_RESULT = select(gate_results.c.number).where(gate_results.c.entry_id == bindparam("the_entry", type_=Text()))


def merge_memories(source: Connection, target: Connection) -> int:
    """Write the new memories of a store into another, and return how many keys have something new.

    The target must already have the gate's results: what they teach is skipped, since it is learned from them again. Each
    change of a lesson counts once.

    Raises:
        ValueError: a row is not a valid memory.
    """
    changed = 0
    agents: set[str] = set()
    _merge_recalls(source, target)
    every = map(_check_row, source.execute(_ALL, execution_options=_ROWS_AT_ONCE).mappings())
    for (namespace, key), rows in groupby(every, key=lambda row: (row["namespace"], row["key"])):
        if not namespace.endswith("/"):
            raise ValueError(f"memories: {show(namespace)} is not a namespace")
        elements = read_namespace(namespace)
        is_lesson = len(elements) == _LESSON_DEPTH and elements[0] == LESSONS
        if is_lesson:
            agents.add(elements[1])
        elif _is_learned_again(target, elements, key):
            continue
        changed += _merge_key(target, {"the_namespace": namespace, "the_key": key}, list(rows), is_lesson=is_lesson)
    for agent in sorted(agents):
        _settle_agent(target, agent)
    return changed


def _check_row(row: Any) -> Row:
    """Return a row. Raise a `ValueError` when readers of memories could not use it."""
    check_key(row["key"])
    check_texts("tags of a memory", row["tags"])
    for name in ("value", "provenance"):
        if not isinstance(row[name], dict) and (name == "value" or row[name] is not None):
            raise ValueError(f"memories: the {name} of {show(row['key'])} is not an object")
    return dict(row)


def _is_learned_again(target: Connection, namespace: tuple[str, ...], key: str) -> bool:
    """Return whether it is a tally of the gate's failures, pending work, or what a result that is here taught."""
    if namespace not in _LEARNED:
        return namespace == TALLIES or namespace[:1] == (OWN_WORK,)
    return target.scalar(_HAS_RESULT, {"the_entry": f"entry_{key.rpartition('_')[2]}"}) is not None


def _merge_key(target: Connection, names: dict[str, str], versions: list[Row], *, is_lesson: bool) -> bool:
    """Merge the versions of a key, and return whether one of them is new."""
    present = [dict(row) for row in target.execute(_OF_KEY, names).mappings()]
    merged = unite_versions(present, versions, is_lesson=is_lesson)
    if is_lesson and len(merged) == len(unite_versions(present, is_lesson=True)):
        return False
    return _replace_versions(target, names, present, number_versions(merged))


def _replace_versions(target: Connection, names: dict[str, str], present: list[Row], wanted: list[Row]) -> bool:
    """Store these versions of a key in place of the present ones; return False when they are equal."""
    if wanted == present:
        return False
    newest = target.execute(_NEWEST, names).one_or_none()
    if newest is not None:
        unindex_memory(target, newest.number, newest.words or "")
    target.execute(_DELETE, names)
    for row in wanted:
        number = target.scalar(_INSERT, row)
        if row["is_newest"]:
            index_memory(target, int(number or 0), row["words"])
    return True


def _settle_agent(target: Connection, agent: str) -> None:
    """Store the lessons of an agent as they follow from all their versions, and the signatures that find them."""
    namespace = write_namespace((LESSONS, agent))
    query = select(*_COLUMNS).where(memories.c.namespace == namespace)
    rows = target.execute(query.order_by(memories.c.key, memories.c.version)).mappings()
    present = {key: list(versions) for key, versions in groupby(map(dict, rows), key=lambda row: row["key"])}
    histories = {key: unite_versions(versions, is_lesson=True) for key, versions in present.items()}
    lessons = {}
    for key, versions in histories.items():
        try:
            lessons[key] = fold_versions(versions)
        except (TypeError, ValueError, IndexError):
            _log.warning("a memory among the lessons is not a lesson", extra={"key": key})
    for key, skill in settle_lessons(lessons).items():
        versions = histories[key]
        value = skill.to_dict()
        if _write(versions[-1]["value"]) != _write(value):
            why = {"why": LessonChange.MERGED.value, "by": None}
            versions.append({**versions[-1], "value": value, "tags": list(tag_lesson(skill)), "provenance": why})
        wanted = number_versions(versions, words_of_lesson(skill))
        _replace_versions(target, {"the_namespace": namespace, "the_key": key}, present[key], wanted)
        put_signatures(target, skill, agent)


def _merge_recalls(source: Connection, target: Connection) -> None:
    """Merge what came of showing lessons; of two results of one recall the first counts."""
    every = select(*_RECALL_COLUMNS).order_by(lesson_recalls.c.id)
    for some in source.execute(every, execution_options=_ROWS_AT_ONCE).mappings().partitions():
        rows = [dict(row) for row in some]
        query = select(*_RECALL_COLUMNS).where(lesson_recalls.c.id.in_([row["id"] for row in rows]))
        known = {row["id"]: row for row in target.execute(query).mappings()}
        new = [row for row in rows if row["id"] not in known]
        if new:
            target.execute(insert_if_absent(lesson_recalls), new)
        for row in rows:
            if row["id"] in known and _settled_key(row) < _settled_key(known[row["id"]]):
                values = {name: row[name] for name in ("settled_at", "passed")}
                target.execute(update(lesson_recalls).where(lesson_recalls.c.id == row["id"]).values(values))


def _settled_key(row: Any) -> tuple[bool, int, bool]:
    """Return a key that orders recalls: settled ones first, the earliest of them first."""
    return row["settled_at"] is None, row["settled_at"] or 0, bool(row["passed"])


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def number_versions(rows: Sequence[Row], words: str | None = None) -> list[Row]:
    """Return versions, given oldest first, numbered from 1. Only the newest keeps search words, or gets these."""
    created_at = min(row["created_at"] for row in rows)
    newest = rows[-1]["words"] or "" if words is None else words
    return [
        {
            **row,
            "version": version,
            "is_newest": version == len(rows),
            "words": newest if version == len(rows) else None,
            "created_at": created_at,
        }
        for version, row in enumerate(rows, 1)
    ]


def change_of(row: Row) -> str | None:
    """Return the change that a version of a lesson records; None when another program wrote it."""
    provenance = row["provenance"]
    return provenance.get("why") if isinstance(provenance, dict) else None


def unite_versions(*histories: Iterable[Row], is_lesson: bool) -> list[Row]:
    """Return the different versions of one memory, oldest first; of a lesson without those that a merge wrote."""
    united: dict[str, Row] = {}
    for row in (row for rows in histories for row in rows):
        if is_lesson and change_of(row) == LessonChange.MERGED:
            continue
        content = json.dumps([row[name] for name in _CONTENT], sort_keys=True)
        # A version may be the newest in only one of the stores, and have its words only there.
        if united.setdefault(content, row)["words"] is None:
            united[content] = row
    rank = _rank_lesson if is_lesson else _rank_memory
    return [row for _, row in sorted(united.items(), key=lambda item: (*rank(item[1]), item[0]))]


def _rank_memory(row: Row) -> tuple[int, int]:
    return row["updated_at"], row["words"] is not None


def _rank_lesson(row: Row) -> tuple[int, int]:
    """Order versions by time; of two of one millisecond, the one with the higher counts is later."""
    counts = (row["value"].get(name) for name in ("support", "success_count", "harm_count"))
    return row["updated_at"], sum(count for count in counts if isinstance(count, int))


def fold_versions(rows: Sequence[Row]) -> SkillMemory:
    """Return the lesson that follows from its versions.

    Raises:
        ValueError: a version is not a lesson.
    """
    versions = [(change_of(row), row["provenance"] or {}, SkillMemory.from_dict(row["value"])) for row in rows]
    skills = [skill for _, _, skill in versions]
    first, told = skills[0], _choose_told(skills)
    last = told[-1]
    placed = [skill.superseded_by for why, _, skill in versions if why in _PLACING]
    texts = {
        name: next((text for skill in told if (text := getattr(skill, name))), getattr(last, name))
        for name in JOINED_TEXTS
    }
    return last.replace(
        **texts,
        **_count(versions),
        support=first.support + sum(_read_support(about) for why, about, _ in versions if why in _LEARNED_AGAIN),
        **_join(skills),
        superseded_by=placed[-1] if placed else first.superseded_by,
        created_at=min(skill.created_at for skill in skills),
    )


def settle_lessons(lessons: Mapping[str, SkillMemory]) -> dict[str, SkillMemory]:
    """Return an agent's lessons, by id, with their effects on each other.

    The oldest of equal lessons stands for all, an approved one if there is one: it gets their support and counts, and a person's
    judgement of one holds for all.
    Of two lessons that contradict each other, the older is superseded.
    """
    settled = dict(lessons)
    for group in _group_equal(lessons):
        if len(group) > 1:
            eldest, *younger = sorted(
                group,
                key=lambda skill: (not skill.approved, skill.superseded_by is not None, skill.created_at, skill.id),
            )
            settled[eldest.id] = _speak_for(eldest, younger)
            settled |= {skill.id: skill.replace(superseded_by=eldest.id) for skill in younger}
    return _settle_contradictions(settled)


def _settle_contradictions(lessons: dict[str, SkillMemory]) -> dict[str, SkillMemory]:
    standing: dict[str, list[SkillMemory]] = defaultdict(list)
    latest_first = sorted(lessons.values(), key=lambda skill: (skill.created_at, skill.id), reverse=True)
    for skill in latest_first:
        if skill.approved and skill.superseded_by is None:
            about = find_keys(skill).about
            later = next((one for digest in about for one in standing[digest] if contradicts(skill, one)), None)
            if later is not None:
                lessons[skill.id] = skill.replace(superseded_by=later.id)
                continue
            for digest in about:
                standing[digest].append(skill)
    return lessons


def _group_equal(lessons: Mapping[str, SkillMemory]) -> list[list[SkillMemory]]:
    """Group the lessons that share a digest of `same`, directly or through a third lesson."""
    leader = {lesson_id: lesson_id for lesson_id in lessons}

    def find(lesson_id: str) -> str:
        while leader[lesson_id] != lesson_id:
            leader[lesson_id] = lesson_id = leader[leader[lesson_id]]
        return lesson_id

    of_digest: dict[str, str] = {}
    for lesson_id, skill in lessons.items():
        for digest in find_keys(skill).same:
            leader[find(lesson_id)] = find(of_digest.setdefault(digest, lesson_id))
    groups: dict[str, list[SkillMemory]] = defaultdict(list)
    for lesson_id, skill in lessons.items():
        groups[find(lesson_id)].append(skill)
    return list(groups.values())


def _speak_for(eldest: SkillMemory, younger: Sequence[SkillMemory]) -> SkillMemory:
    skills = (eldest, *younger)
    sums = {name: sum(getattr(skill, name) for skill in skills) for name in ("support", "success_count", "harm_count")}
    return eldest.replace(**sums, **_join(skills))


def _join(skills: Sequence[SkillMemory]) -> dict[str, Any]:
    """Return the joint fields of equal lessons; a person's latest judgement of one holds for all."""
    told = _choose_told(skills)
    judged = max((skill for skill in skills if skill.judged_at), key=_judged_key, default=None)
    return {
        "confidence": max(skill.confidence for skill in told),
        "evidence": join_evidence(skill.evidence for skill in told),
        "approved": any(skill.approved for skill in skills) if judged is None else judged.approved,
        "rejected": any(skill.rejected for skill in skills) if judged is None else judged.rejected,
        "judged_by": None if judged is None else judged.judged_by,
        "judged_at": None if judged is None else judged.judged_at,
        "last_used": max((skill.last_used for skill in skills if skill.last_used), default=None),
    }


def _choose_told(skills: Sequence[SkillMemory]) -> Sequence[SkillMemory]:
    """Return those whose words count: none that waits comes into what is approved, and none of one proposer into another's."""
    told = [skill for skill in skills if skill.approved] or skills
    return [skill for skill in told if skill.proposed_by == told[0].proposed_by]


def _judged_key(skill: SkillMemory) -> tuple[Any, ...]:
    return skill.judged_at, skill.rejected, skill.judged_by or ""


def _count(versions: Sequence[Version]) -> dict[str, int]:
    first = versions[0][2]
    counts = {name: getattr(first, name) for name in _COUNTED.values()}
    settled = set()
    for number, (why, about, _) in enumerate(versions[1:]):
        name = _COUNTED.get(why or "")
        # Two stores may have settled the same recall: the first result counts.
        recall = about.get("recall") or number
        if name is not None and recall not in settled:
            settled.add(recall)
            counts[name] += 1
    return counts


def _read_support(about: Mapping[str, Any]) -> int:
    support = about.get("support")
    return support if isinstance(support, int) and support >= 0 else 1
