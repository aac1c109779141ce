"""What agents are told: what is known before a task and after a failure, at most three hints, or none.

Lessons about the same error come first, then what helped or failed in similar work. A lesson that harmed more often than it
helped is not shown. No hint is an answer, too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.lessons.edits import check_language, is_of_language, list_changed_files
from pytest_golden.learning.lessons.lesson_wording import name_tool
from pytest_golden.learning.lessons.model import LessonKind, SkillMemory
from pytest_golden.learning.lessons.quality import LEAST_CONFIDENCE
from pytest_golden.learning.lessons.recalling import may_be_shown, measure_help, recall_lessons
from pytest_golden.learning.lessons.staleness import find_moved
from pytest_golden.learning.lessons.store import find_lesson, iterate_by_words
from pytest_golden.learning.plans import LEAST_LIKENESS, find_plans, measure_task_likeness
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.learning.memory_store import MemoryStore
    from pytest_golden.learning.plans import FoundPlan

MOST_HINTS = 3
LESSON, PLAN, WARNING = "lesson", "plan", "warning"
_MOST_CANDIDATES, _MOST_LOOKED_AT, _MOST_OF_LINE, _MOST_STEPS = 15, 200, 300, 8
_READ_AT_ONCE = 20
# A similar task is less certain than the same error.
_OF_A_TASK = 0.8
# The least similar task that is shown counts as much as the same file.
_OF_A_FILE = 0.4
_MOST_PATHS = 20


@dataclass(frozen=True, slots=True)
class Hint(Shape):
    """What earlier work says about a task or an error; `str()` is the advice, in two lines at most.

    `kind` is `lesson`, `plan` or `warning`. `score` is from 0 to 1, and `why` says what matched. `evidence` has the date, how often it
    helped and harmed, and where it comes from. `stale` says what has changed since it was learned; it is in the advice, too.
    """

    kind: str
    advice: str
    score: float
    why: str
    evidence: Mapping[str, Any]
    id: str
    stale: str = ""
    lesson: SkillMemory | None = field(default=None, repr=False, compare=False, metadata=form(hidden=True))

    def __str__(self) -> str:
        return self.advice


def find_hints(
    memories: MemoryStore,
    *,
    task: str | None = None,
    error: str | None = None,
    files: Iterable[str] = (),
    tool: str | None = None,
    agent: str | None = None,
    project: str | None = None,
    language: str | None = None,
    limit: int = MOST_HINTS,
    root: Path | None = None,
) -> tuple[Hint, ...]:
    """Find what is known about an error, about work like a task, and about files, best first.

    Args:
        memories: those of a store. With an embedder, tasks that mean the same in other words are found, too.
        task: what is to be done, in words.
        error: the message of a failure, a traceback, or the output of a tool.
        files: those that the task is about, relative to the root of the checkout: lessons from changes of one of them come after
            those of a similar task.
        tool: the tool that failed: lessons about it come first among those that fit equally well.
        agent: whose plans come first among those that fit equally well; plans and lessons of all agents are shown.
        project: lessons learned in this golden project come first among those that fit equally well.
        language: leave out lessons that come only from changes of files in other languages, of `edits.LANGUAGES`.
        limit: the most hints to return.
        root: the folder of the work: a lesson whose files or versions have changed there is marked as stale, and comes after
            all others.

    Raises:
        ValueError: the language is not one of `edits.LANGUAGES`.
    """
    task, paths = (task or "").strip(), frozenset(map(_normalize, files))
    check_language(language)
    alike = memories.find_tasks_alike(task)
    found: list[Hint] = []
    with memories.store.read() as connection:
        if error is not None:
            recalled = recall_lessons(connection, error, project=project, language=language, limit=_MOST_CANDIDATES)
            found += (_hint_of_lesson(one.lesson, one.score, f"the same error ({one.why})") for one in recalled)
        if task or paths:
            found += _find_lessons(connection, task, paths, root, alike)
        if task:
            found += (_hint_of_plan(one) for one in find_plans(connection, task, None, alike))
    found = [hint for hint in found if hint.lesson is None or _may_help(hint.lesson, language)]
    if root is not None:
        found = [_mark(hint, root, error or "") for hint in found]
    best: dict[str, Hint] = {}
    for hint in sorted(found, key=lambda hint: (*_rank(hint, tool), hint.evidence["by"] != agent)):
        best.setdefault(hint.id, hint)
    return tuple(islice(best.values(), limit))


def _may_help(skill: SkillMemory, language: str | None) -> bool:
    return skill.harm_count <= skill.success_count and is_of_language(skill.evidence, language)


def _mark(hint: Hint, root: Path, error: str) -> Hint:
    changed = "" if hint.lesson is None else find_moved(hint.lesson.evidence, root, error)
    return hint if not changed else replace(hint, stale=changed, advice=f"Stale, {changed}: {hint.advice}")


def _find_lessons(
    connection: Connection, task: str, paths: frozenset[str], root: Path | None, alike: Mapping[str, float]
) -> Iterator[Hint]:
    """Yield the lessons that were learned in work like a task, or from changes of these files."""
    query = " ".join((task, *sorted(paths)[:_MOST_PATHS]))
    kept = iterate_by_words(connection, query, None, _MOST_LOOKED_AT, at_once=_READ_AT_ONCE)
    # Lessons that wait must not crowd out those that are shown.
    shown = (one.skill for one in kept if may_be_shown(one.skill) and one.skill.confidence >= LEAST_CONFIDENCE)
    others = [one.skill for one in (find_lesson(connection, key) for key in alike) if one is not None]
    for skill in others:
        if may_be_shown(skill) and skill.confidence >= LEAST_CONFIDENCE:
            yield _hint_of_lesson(skill, alike[skill.id] * _OF_A_TASK, "learned in a task that means the same")
    for skill in islice(shown, _MOST_CANDIDATES):
        likeness = measure_task_likeness(task, skill.context)
        if likeness >= LEAST_LIKENESS:
            yield _hint_of_lesson(skill, likeness * _OF_A_TASK, "learned in a task like this")
        elif shared := sorted(paths & _list_files(skill, root)):
            yield _hint_of_lesson(skill, _OF_A_FILE, f"learned from a change of {shared[0]}")


def _list_files(skill: SkillMemory, root: Path | None) -> frozenset[str]:
    """Return the files whose change taught a lesson; none if an agent learned it in another folder than the given one."""
    evidence = skill.evidence
    if root is not None and skill.kind != LessonKind.PROJECT_FIX and evidence.get("workspace") != str(root):
        return frozenset()
    return frozenset(map(_normalize, list_changed_files(evidence)))


def _normalize(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _hint_of_lesson(skill: SkillMemory, score: float, why: str) -> Hint:
    evidence = {
        "learned": f"{skill.created_at:%Y-%m-%d}",
        "support": skill.support,
        "helped": skill.success_count,
        "harmed": skill.harm_count,
        "by": skill.proposed_by or str(skill.source),
        "what_worked": skill.what_worked,
    }
    because = f"\nWhy: {skill.say(_cut(skill.why))}" if skill.why else ""
    kind = WARNING if skill.kind == LessonKind.GIVEN_UP else LESSON
    return Hint(kind, f"{skill.say(_cut(skill.lesson))}{because}", score, why, evidence, skill.id, lesson=skill)


def _hint_of_plan(found: FoundPlan) -> Hint:
    plan = found.plan
    evidence = {
        "when": f"{plan.timestamp:%Y-%m-%d}",
        "outcome_id": plan.outcome_id,
        "confidence": plan.confidence,
        "strategy": plan.strategy_description,
        "by": "an agent" if found.outcome is None else found.outcome.agent_name,
    }
    # Nobody has approved these words: names are quoted, and an error stays among the evidence.
    names = [name_tool(tool) for tool in plan.tools_sequence[:_MOST_STEPS]]
    steps = ", then ".join(names) + (" and more" if len(plan.tools_sequence) > len(names) else "")
    kind, told = (PLAN, f"This worked: {steps}") if found.has_worked else (WARNING, f"This failed: {steps}")
    if found.error:
        evidence["error"] = found.error
    score = found.likeness * _OF_A_TASK * plan.confidence
    return Hint(kind, _cut(told), score, "a task like this", evidence, plan.plan_id)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_LINE else f"{line[: _MOST_OF_LINE - 4]} ..."


def _rank(hint: Hint, tool: str | None) -> tuple[float | bool, ...]:
    skill = hint.lesson
    is_elsewhere = tool is not None and (skill is None or skill.tool_name != tool)
    helped = 0.0 if skill is None else measure_help(skill)
    return bool(hint.stale), -hint.score, is_elsewhere, hint.kind == WARNING, -helped
