"""Merge the versions that two stores have of a memory or a lesson into one history. Pure.

A version is known by its content and its timestamp. What the gate's results teach is not merged but learned again from them,
since tallies are sums. A lesson follows from all its versions together, in any order and however often stores are merged;
versions that an earlier merge wrote are left out and made again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.gate_learning import OWN_WORK
from pytest_golden.learning.lessons.likeness import contradicts, find_keys, join_evidence
from pytest_golden.learning.lessons.model import LessonChange, SkillMemory
from pytest_golden.learning.seen_before import TALLIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = dict[str, Any]

_LEARNED = (("outcomes", "golden"), ("training", "golden"))
_CONTENT = ("value", "tags", "provenance", "updated_at")
_LEARNED_AGAIN = frozenset({LessonChange.LEARNED_AGAIN, LessonChange.REVIVED})
# Changes that decide again whether a lesson is superseded.
_PLACING = frozenset({LessonChange.SUPERSEDED, LessonChange.REVIVED, LessonChange.APPROVED})
_COUNTED: Mapping[str, str] = {LessonChange.HELPED: "success_count", LessonChange.HARMED: "harm_count"}
_TEXTS = ("context", "what_failed", "what_worked", "why", "tool_name")


def merge_versions(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all versions of one key, oldest first, numbered from 1; only the newest has search words."""
    united: dict[str, dict[str, Any]] = {}
    for row in (*one, *other):
        known = united.setdefault(_write(row), row)
        # The same version may be the newest in only one store, and have its words only there.
        if known["words"] is None and row["words"] is not None:
            united[_write(row)] = row
    rows = sorted(united.items(), key=lambda item: (item[1]["updated_at"], item[1]["words"] is not None, item[0]))
    created_at = min(row["created_at"] for row in united.values())
    last = len(rows)
    return [
        {
            **row,
            "version": version,
            "is_newest": version == last,
            "words": (row["words"] or "") if version == last else None,
            "created_at": created_at,
        }
        for version, (_, row) in enumerate(rows, 1)
    ]


def find_learned_entry(namespace: tuple[str, ...], key: str) -> str | None:
    """Return the entry of the gate's result that a memory was learned from; None for other memories."""
    return f"entry_{key.rpartition('_')[2]}" if namespace in _LEARNED else None


def is_tally(namespace: tuple[str, ...]) -> bool:
    """Tell whether a memory is a tally of the gate's failures, or pending work of its own store."""
    return namespace == TALLIES or namespace[:1] == (OWN_WORK,)


def unite_versions(one: Iterable[Row], other: Iterable[Row]) -> list[Row]:
    """Return the versions that two stores have of a lesson, oldest first, without those that a merge wrote."""
    united = {_write_rules(row): row for row in (*other, *one) if change_of(row) != LessonChange.MERGED}
    return [row for _, row in sorted(united.items(), key=lambda item: (*_rank(item[1]), item[0]))]


def fold_versions(rows: Sequence[Row]) -> SkillMemory:
    """Return the lesson that follows from its versions.

    Raises:
        ValueError: one of them is no lesson.
    """
    versions = [(change_of(row), row["provenance"] or {}, SkillMemory.from_dict(row["value"])) for row in rows]
    first, last = versions[0][2], versions[-1][2]
    skills = [skill for _, _, skill in versions]
    placed = [skill.superseded_by for why, _, skill in versions if why in _PLACING]
    return last.replace(
        **{
            name: next((held for skill in skills if (held := getattr(skill, name))), getattr(last, name))
            for name in _TEXTS
        },
        **_count(versions),
        support=first.support + sum(_support(told) for why, told, _ in versions if why in _LEARNED_AGAIN),
        **_join(skills),
        superseded_by=placed[-1] if placed else first.superseded_by,
        created_at=min(skill.created_at for skill in skills),
    )


def settle_lessons(lessons: Mapping[str, SkillMemory]) -> dict[str, SkillMemory]:
    """Return the lessons of an agent as they stand beside each other.

    Of those that say the same the eldest stands for all: it has their support and what came of showing them, and a
    person's word about one is about all. Of two that contradict each other the older is superseded.
    """
    return _settle_contradictions(_settle_twins(lessons))


def change_of(row: Row) -> str | None:
    """Return what was done to a lesson by a version; None for what another program wrote."""
    provenance = row["provenance"]
    return provenance.get("why") if isinstance(provenance, dict) else None


def _write(row: dict[str, Any]) -> str:
    return json.dumps([row[name] for name in _CONTENT], sort_keys=True)


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


def _settle_twins(lessons: Mapping[str, SkillMemory]) -> dict[str, SkillMemory]:
    settled = dict(lessons)
    for group in _group(lessons):
        if len(group) > 1:
            eldest, *younger = sorted(
                group, key=lambda skill: (skill.superseded_by is not None, skill.created_at, skill.id)
            )
            settled[eldest.id] = _speak_for(eldest, younger)
            settled |= {skill.id: skill.replace(superseded_by=eldest.id) for skill in younger}
    return settled


def _group(lessons: Mapping[str, SkillMemory]) -> list[list[SkillMemory]]:
    """Group the lessons that say the same, also by way of a third."""
    leader = {lesson_id: lesson_id for lesson_id in lessons}

    def find(lesson_id: str) -> str:
        while leader[lesson_id] != lesson_id:
            leader[lesson_id] = lesson_id = leader[leader[lesson_id]]
        return lesson_id

    _lead_same(lessons, leader, find)
    groups: dict[str, list[SkillMemory]] = defaultdict(list)
    for lesson_id, skill in lessons.items():
        groups[find(lesson_id)].append(skill)
    return list(groups.values())


def _lead_same(lessons: Mapping[str, SkillMemory], leader: dict[str, str], find: Callable[[str], str]) -> None:
    of_digest: dict[str, str] = {}
    for lesson_id, skill in lessons.items():
        for digest in find_keys(skill).same:
            leader[find(lesson_id)] = find(of_digest.setdefault(digest, lesson_id))


def _speak_for(eldest: SkillMemory, younger: Sequence[SkillMemory]) -> SkillMemory:
    skills = (eldest, *younger)
    return eldest.replace(
        support=sum(skill.support for skill in skills),
        success_count=sum(skill.success_count for skill in skills),
        harm_count=sum(skill.harm_count for skill in skills),
        **_join(skills),
    )


def _join(skills: Sequence[SkillMemory]) -> dict[str, Any]:
    """Return what lessons that are one have together; a person's latest word about one counts for all."""
    judged = max((skill for skill in skills if skill.judged_at), key=_judged_key, default=None)
    return {
        "confidence": max(skill.confidence for skill in skills),
        "evidence": join_evidence(skill.evidence for skill in skills),
        "approved": any(skill.approved for skill in skills) if judged is None else judged.approved,
        "rejected": any(skill.rejected for skill in skills) if judged is None else judged.rejected,
        "judged_by": None if judged is None else judged.judged_by,
        "judged_at": None if judged is None else judged.judged_at,
        "last_used": max((skill.last_used for skill in skills if skill.last_used), default=None),
    }


def _count(versions: Sequence[tuple[str | None, Mapping[str, Any], SkillMemory]]) -> dict[str, int]:
    first = versions[0][2]
    counts = {name: getattr(first, name) for name in _COUNTED.values()}
    settled = set()
    for number, (why, told, _) in enumerate(versions[1:]):
        name = _COUNTED.get(why or "")
        # Two stores can have settled the same recall: the first word counts.
        recall = told.get("recall") or number
        if name is not None and recall not in settled:
            settled.add(recall)
            counts[name] += 1
    return counts


def _support(told: Mapping[str, Any]) -> int:
    support = told.get("support")
    return support if isinstance(support, int) and support >= 0 else 1


def _judged_key(skill: SkillMemory) -> tuple[Any, ...]:
    return skill.judged_at, skill.rejected, skill.judged_by or ""


def _rank(row: Row) -> tuple[int, int]:
    """Order versions by time; of those of one millisecond the one to which more was done is the later."""
    counts = (row["value"].get(name) for name in ("support", "success_count", "harm_count"))
    return row["updated_at"], sum(count for count in counts if isinstance(count, int))


def _write_rules(row: Row) -> str:
    return json.dumps([row[name] for name in _CONTENT], sort_keys=True)
