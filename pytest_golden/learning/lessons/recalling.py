"""Find the lessons that apply to a failure, and credit or charge them for the result that followed when they were shown.

A lesson is found by the signature of the failure's cause, else by its words; the project only ranks. No lesson is better than noise.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pytest_golden.learning.lessons import likeness
from pytest_golden.learning.lessons.edits import is_of_language
from pytest_golden.learning.lessons.model import Recalled, RecallReason, SkillMemory
from pytest_golden.learning.lessons.quality import LEAST_CONFIDENCE
from pytest_golden.learning.lessons.staleness import find_moved
from pytest_golden.learning.lessons.store import LESSONS, find_by_digest, iterate_by_words
from pytest_golden.learning.memories import is_typed
from pytest_golden.learning.signature import cause_of, cut_failure, digest_signature, find_origin
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.insight.figures import wilson_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.learning.model import Memory

    # The features of causes by their signatures.
    _Causes = dict[str, likeness.ErrorFeatures]

#: A lesson with this many harms and no success is no longer shown.
MOST_HARMS = 5
#: The states of a lesson. The last two are final unless a person or a later lesson changes them.
SHOWN = "shown"
STATES = (SHOWN, "waits", "harmful", "superseded", "rejected")
LEAST_LIKENESS = 0.7
_LEVEL = 0.95
# Scores. A match of another part of a text is less certain than a match of its main cause.
_OF_A_PART, _OF_A_PROJECT, _TYPED = 0.9, 0.8, 0.75
# A limit or a rule of the gate: it says what happened but not why, which differs between projects.
_VERDICT = r"timed out after |used .{1,20} of (?:memory|CPU time)|ended by signal |wrote .* pattern of <value> names"
_MOST_CANDIDATES, _MOST_LOOKED_AT, _MOST_READ_CLOSELY, _MOST_QUERY_WORDS = 30, 400, 8, 12


def recall_lessons(
    connection: Connection,
    text: str,
    *,
    project: str | None = None,
    agent: str | None = None,
    language: str | None = None,
    limit: int = 3,
    root: Path | None = None,
) -> tuple[Recalled, ...]:
    """Find the lessons that apply to a failure, best first, each with a score from 0 to 1 and the reason.

    Args:
        connection: to the store.
        text: the failure's message, a traceback, or the output of a tool.
        project: lessons learned in this golden project come first among those that fit equally well.
        agent: search only this agent's lessons.
        language: leave out lessons that come from files of other languages alone, see `edits.LANGUAGES`.
        limit: the most lessons to return.
        root: the folder that is worked in: a lesson of which the files or the versions have changed there is marked as stale, and
            comes after all others.
    """
    readable = cause_of(cut_failure(text))
    signatures = likeness.read_causes(readable, redact)
    if not signatures:
        return ()
    origin = find_origin(readable)
    found = list(_find_same(connection, signatures, origin, (agent, project)))
    if not found and re.match(_VERDICT, next(iter(signatures))):
        return ()
    if not found:
        found = list(_find_alike(connection, signatures, origin, agent))
    if not found:
        found = list(_find_typed(connection, readable, signatures, agent))
    found = [one for one in found if is_of_language(one.lesson.evidence, language)]
    best: dict[str, Recalled] = {}
    if root is not None:
        found = [replace(one, stale=find_moved(one.lesson.evidence, root, text)) for one in found]
    for one in sorted(found, key=lambda one: _rank(one, project)):
        best.setdefault(one.lesson.id, one)
    return tuple(best.values())[:limit]


def is_harmful(skill: SkillMemory) -> bool:
    """Return whether a lesson harmed five times and never helped."""
    return skill.harm_count >= MOST_HARMS and not skill.success_count


def measure_help(skill: SkillMemory) -> float:
    """Return how often a lesson helps at least when it is shown: the lower bound of Wilson's interval (95 %); 0 if it never was."""
    shown = skill.success_count + skill.harm_count
    return wilson_interval(skill.success_count, shown, _LEVEL).lower if shown else 0.0


def may_be_shown(skill: SkillMemory) -> bool:
    """Return whether a lesson may be recalled: approved, not rejected, not superseded, and not harmful."""
    return skill.approved and not skill.rejected and skill.superseded_by is None and not is_harmful(skill)


def is_hidden(memory: Memory) -> bool:
    """Return whether a memory is a lesson that may not be shown."""
    if memory.namespace[0] != LESSONS:
        return False
    try:
        return not may_be_shown(SkillMemory.from_dict(memory.value))
    except (TypeError, ValueError):
        return False


def describe_state(skill: SkillMemory) -> str:
    """Return one of `STATES`: whether a lesson is shown, or why not."""
    if skill.rejected:
        return "rejected"
    if skill.superseded_by is not None:
        return "superseded"
    if not skill.approved:
        return "waits"
    return "harmful" if is_harmful(skill) else SHOWN


def _find_same(
    connection: Connection,
    signatures: _Causes,
    origin: str | None,
    wanted: tuple[str | None, str | None],
) -> Iterator[Recalled]:
    for position, signature in enumerate(signatures):
        kept = find_by_digest(connection, digest_signature(signature), *wanted, _MOST_CANDIDATES)
        fitting = [one.skill for one in kept if _is_sure(one.skill) and _came_from(one.skill, origin)]
        if re.match(_VERDICT, signature):
            own = [skill for skill in fitting if wanted[1] is not None and likeness.project_of(skill) == wanted[1]]
            yield from (Recalled(skill, _OF_A_PROJECT, RecallReason.PROJECT) for skill in own)
        elif fitting:
            score = _OF_A_PART if position else 1.0
            yield from (Recalled(skill, score, RecallReason.SIGNATURE) for skill in fitting)
            return


def _find_alike(
    connection: Connection, signatures: _Causes, origin: str | None, agent: str | None
) -> Iterator[Recalled]:
    features = list(signatures.values())
    query = likeness.choose_query(features[:3], _MOST_QUERY_WORDS)
    for skill in _find_candidates(connection, query, agent) if query else ():
        if _came_from(skill, origin):
            score = max((_compare(error, features) for error in likeness.list_errors(skill.evidence)), default=0.0)
            if score >= LEAST_LIKENESS:
                yield Recalled(skill, min(score, _OF_A_PART), RecallReason.WORDS)


def _compare(error: str, features: Sequence[likeness.ErrorFeatures]) -> float:
    """Return the greatest likeness of an error's causes with a text's main cause, and of its main cause with the others."""
    own = list(likeness.read_causes(cause_of(cut_failure(error))).values())
    pairs = [*((one, features[0]) for one in own), *((own[0], other) for other in features[1:] if own)]
    return max((likeness.measure_likeness(one, other) for one, other in pairs), default=0.0)


def _find_typed(connection: Connection, text: str, signatures: _Causes, agent: str | None) -> Iterator[Recalled]:
    """Find the lessons that contain all the words that a person typed."""
    asked = next(iter(signatures.values()))
    if not is_typed(text) or asked.classes or asked.kept:
        return
    for skill in _find_candidates(connection, redact(text), agent):
        texts = (skill.lesson, skill.context, skill.what_failed, skill.what_worked, skill.why)
        if likeness.holds_all_words(asked, " ".join((*texts, *likeness.list_errors(skill.evidence)))):
            yield Recalled(skill, _TYPED, RecallReason.WORDS)


def _find_candidates(connection: Connection, query: str, agent: str | None) -> Iterator[SkillMemory]:
    # Lessons that wait must not crowd out those that are shown.
    kept = iterate_by_words(connection, query, agent, _MOST_LOOKED_AT, at_once=_MOST_READ_CLOSELY)
    return islice((one.skill for one in kept if _is_sure(one.skill)), _MOST_READ_CLOSELY)


def _is_sure(skill: SkillMemory) -> bool:
    return may_be_shown(skill) and skill.confidence >= LEAST_CONFIDENCE


def _came_from(skill: SkillMemory, origin: str | None) -> bool:
    """Return whether a lesson's error was raised in this package, or one of the two is unknown."""
    if origin is None:
        return True
    origins = {find_origin(error) for error in likeness.list_errors(skill.evidence)}
    return not origins or None in origins or origin in origins


def _rank(found: Recalled, project: str | None) -> tuple[float | bool, ...]:
    skill = found.lesson
    is_elsewhere = project is None or likeness.project_of(skill) != project
    return (
        bool(found.stale),
        -found.score,
        is_elsewhere,
        -measure_help(skill),
        -skill.support,
        -skill.created_at.timestamp(),
    )
