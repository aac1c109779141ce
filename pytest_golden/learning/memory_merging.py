"""Merge the versions that two stores have of a memory or a lesson into one history. Pure.

Content and timestamp identify a version. What the gate's results teach is not merged: it is learned again from them, since
tallies are sums. A lesson is computed from all its versions, so the order and the number of merges do not change it; versions that
an earlier merge wrote are left out and made again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.gate_learning import OWN_WORK
from pytest_golden.learning.lessons.likeness import JOINED_TEXTS, contradicts, find_keys, join_evidence
from pytest_golden.learning.lessons.model import LessonChange, SkillMemory
from pytest_golden.learning.seen_before import TALLIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = dict[str, Any]
    # Why a version was written, its provenance, and the lesson as it was then.
    Version = tuple[str | None, Mapping[str, Any], SkillMemory]

_LEARNED = (("outcomes", "golden"), ("training", "golden"))
_CONTENT = ("value", "tags", "provenance", "updated_at")
_LEARNED_AGAIN = frozenset({LessonChange.LEARNED_AGAIN, LessonChange.REVIVED})
# Changes that decide again whether a lesson is superseded.
_PLACING = frozenset({LessonChange.SUPERSEDED, LessonChange.REVIVED, LessonChange.APPROVED})
_COUNTED: Mapping[str, str] = {LessonChange.HELPED: "success_count", LessonChange.HARMED: "harm_count"}


def find_learned_entry(namespace: tuple[str, ...], key: str) -> str | None:
    """Return the entry of the gate's result that a memory was learned from; None for other memories."""
    return f"entry_{key.rpartition('_')[2]}" if namespace in _LEARNED else None


def is_tally(namespace: tuple[str, ...]) -> bool:
    """Return whether a memory is a tally of the gate's failures, or pending work of its own store."""
    return namespace == TALLIES or namespace[:1] == (OWN_WORK,)


def unite_memories(*histories: Iterable[Row]) -> list[Row]:
    """Return the different versions of one memory, oldest first."""
    return _unite(histories, lambda row: (row["updated_at"], row["words"] is not None))


def unite_lessons(*histories: Iterable[Row]) -> list[Row]:
    """Return the different versions of one lesson, oldest first, without those that a merge wrote."""
    return _unite(([row for row in rows if change_of(row) != LessonChange.MERGED] for rows in histories), _rank_lesson)


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


def _unite(histories: Iterable[Iterable[Row]], rank: Callable[[Row], tuple[Any, ...]]) -> list[Row]:
    united: dict[str, Row] = {}
    for row in (row for rows in histories for row in rows):
        content = json.dumps([row[name] for name in _CONTENT], sort_keys=True)
        # A version may be the newest in only one of the stores, and have its words only there.
        if united.setdefault(content, row)["words"] is None:
            united[content] = row
    return [row for _, row in sorted(united.items(), key=lambda item: (*rank(item[1]), item[0]))]


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
    first, last = skills[0], skills[-1]
    placed = [skill.superseded_by for why, _, skill in versions if why in _PLACING]
    texts = {
        name: next((text for skill in skills if (text := getattr(skill, name))), getattr(last, name))
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

    The oldest of equal lessons stands for all: it gets their support and counts, and a person's judgement of one holds for all.
    Of two lessons that contradict each other, the older is superseded.
    """
    settled = dict(lessons)
    for group in _group_equal(lessons):
        if len(group) > 1:
            eldest, *younger = sorted(
                group, key=lambda skill: (skill.superseded_by is not None, skill.created_at, skill.id)
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
