"""Let a language model word the lessons of fixes, after all else was learned. A person must approve what it says.

A few lessons are sent at once, so that a model that hangs costs one deadline. The store is not locked while a model
answers; the next session tries again, up to five times, what got no answer or had no time left.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.clock import new_id, utc_now
from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.learning.language_model.client import ask, ask_within
from pytest_golden.learning.language_model.prompting import write_prompt
from pytest_golden.learning.lessons.lesson_wording import Wording, list_parts, put_in_words
from pytest_golden.learning.lessons.likeness import find_keys
from pytest_golden.learning.lessons.model import LessonKind, LessonSource
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.lessons.store import find_by_digests, list_lessons, put_lesson
from pytest_golden.learning.memories import MemoryDraft
from pytest_golden.learning.store import find_by_keys, rewrite_memory
from pytest_golden.storage.columns import to_ms
from pytest_golden.values.shape import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.learning.language_model.client import CompletesPrompts
    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.storage.store import Store

WORDINGS = ("wordings", "golden")
# With a model the session's learning may take 10 s in all, 2 of them without it.
MODEL_SECONDS = 7.5
_TASK = """\
A data pipeline failed, something was changed, and at once it passed. Word the lesson that the next person should be told
whose pipeline fails in this way, as one or two plain sentences: what to look at or to do, and when. It must help with other
pipelines too: no paths, ids, dates, times or addresses of this one case. Name only what stands in the data, in backticks.
Say in "why" what the cause was, in one sentence. The data do not show what the change did in full: claim no more than they say."""
_TOLD = ("error", "commits", "files", "edited", "declaration", "versions", "inputs")
_NAMED = re.compile(r"`([^`\n]{1,200})`")
_AT_ONCE, _MOST_TRIES = 4, 5
_CALL_SECONDS = 5.0
_KEPT, _REFUSED, _UNANSWERED = "kept", "refused", "unanswered"


@dataclass(frozen=True, slots=True)
class Rewording:
    """The result of a rewording: the lessons in a model's words, how many of its wordings were refused, and how many wait for one."""

    kept: tuple[SkillMemory, ...] = ()
    refused: int = 0
    left: int = 0


def reword_lessons(
    store: Store,
    model: CompletesPrompts,
    *,
    budget_seconds: float = MODEL_SECONDS,
    clock: Callable[[], datetime] = utc_now,
) -> Rewording:
    """Have the newest lessons of fixes worded, for so many seconds at most.

    Raises:
        StorageError: the store cannot be read or written.
    """
    with store.read() as connection:
        waiting = _list_waiting(connection)
    chosen = waiting[:_AT_ONCE]
    if not chosen or budget_seconds <= 0:
        return Rewording(left=len(waiting))
    said = ask_within(budget_seconds, lambda: _ask_for_all(model, chosen))
    with store.write() as connection:
        kept = [
            _keep(connection, skill, one, clock())
            for skill, one in zip(chosen, said or [None] * len(chosen), strict=True)
        ]
    done = [one for one in kept if one is not None]
    refused = sum(one is None and wording is not None for one, wording in zip(kept, said or (), strict=bool(said)))
    return Rewording(tuple(done), refused, len(waiting) - len(done) - refused)


async def _ask_for_all(model: CompletesPrompts, skills: Sequence[SkillMemory]) -> list[Wording | None]:
    calls = [ask(model, write_fix_prompt(skill), Wording, seconds=_CALL_SECONDS) for skill in skills]
    return list(await asyncio.gather(*calls))


def _list_waiting(connection: Connection) -> list[SkillMemory]:
    """List the lessons that a model may word and has not, the newest first."""
    found = [one.skill for one in list_lessons(connection, GATE_AGENT) if _may_be_worded(one.skill)]
    marks = {mark.key: mark.value for mark in find_by_keys(connection, WORDINGS, [skill.id for skill in found])}
    waiting = [skill for skill in found if _waits(marks.get(skill.id))]
    return sorted(waiting, key=lambda skill: (skill.created_at, skill.id), reverse=True)


def _may_be_worded(skill: SkillMemory) -> bool:
    is_of_rules = skill.source == LessonSource.RULES and skill.kind == LessonKind.PROJECT_FIX
    return is_of_rules and not skill.rejected and skill.superseded_by is None


def _waits(mark: object) -> bool:
    return not isinstance(mark, dict) or (mark.get("ended") == _UNANSWERED and mark.get("tries", 0) < _MOST_TRIES)


def _keep(connection: Connection, skill: SkillMemory, said: Wording | None, moment: datetime) -> SkillMemory | None:
    worded = None if said is None else apply_fix_wording(skill, said, moment)
    # The same in other words of the same model, or one that a person has rejected.
    if worded is not None and any(find_by_digests(connection, find_keys(worded).same, GATE_AGENT).values()):
        worded = None
    if worded is not None:
        worded = put_lesson(connection, worded, GATE_AGENT, to_ms(moment))
    ended = _UNANSWERED if said is None else _KEPT if worded is not None else _REFUSED
    before = find_by_keys(connection, WORDINGS, [skill.id])
    tries = int(before[0].value.get("tries", 0)) + 1 if before else 1
    rewrite_memory(connection, MemoryDraft(WORDINGS, skill.id, {"ended": ended, "tries": tries}), to_ms(moment))
    return worded


def write_fix_prompt(skill: SkillMemory) -> str:
    """Return the prompt for the lesson of a fix that rules have worded; what programs and people wrote is data in it."""
    evidence = plain(skill.evidence)
    data = {
        "The failure": skill.what_failed,
        "The change as rules worded it": skill.lesson,
        "What was recorded": {name: evidence[name] for name in _TOLD if evidence.get(name)},
    }
    return write_prompt(_TASK, data)


def apply_fix_wording(skill: SkillMemory, said: Wording, moment: datetime) -> SkillMemory | None:
    """Return a new lesson in the model's words, not approved; None if it names things outside the data, or is not good enough.

    When a person approves it, it replaces the lesson that it words.
    """
    worded = put_in_words(skill, said)
    evidence = json.dumps(plain(skill.evidence), ensure_ascii=False)
    known = list_parts((evidence, skill.lesson, skill.context, skill.what_failed))
    if not list_parts(match[1] for match in _NAMED.finditer(worded.lesson)) <= known:
        return None
    worded = worded.replace(
        id=new_id("lesson"),
        what_worked=worded.lesson,
        judged_by=None,
        judged_at=None,
        support=1,
        success_count=0,
        harm_count=0,
        last_used=None,
        created_at=moment,
        evidence={**plain(skill.evidence), "worded_from": skill.id},
    )
    return None if check_lesson(worded) else worded
