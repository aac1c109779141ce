"""Learns lessons from the attempts of an agent: patterns, worded by rules, and by a language model where there is one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_golden.learning.language_model.asking import ask
from pytest_golden.learning.lessons.model_wording import LessonWording, apply_wording, write_lesson_prompt
from pytest_golden.learning.lessons.patterns import find_patterns
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.lessons.wording import word_lesson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.learning.language_model.port import CompletesPrompts
    from pytest_golden.learning.lessons.model import Attempt, SkillMemory

# All are asked at once, so that learning takes no longer than one call may.
_MOST_CALLS = 8


async def learn_from_attempts(
    attempts: Iterable[Attempt], *, task: str, llm_client: CompletesPrompts | None = None
) -> tuple[SkillMemory, ...]:
    """Give the lessons of attempts, good enough to be kept by `Lessons.add`, redacted.

    With a model each is worded by it, and then not approved (`source` is "model"). What it says is checked against the
    attempts; without an answer that holds, and within five seconds, the wording by rules stays.

    Args:
        attempts: in the order in which they were made.
        task: what they were made for.
        llm_client: a language model.

    Raises:
        ValueError: the task is no text, or one of the attempts is none.
    """
    if not isinstance(task, str):
        raise ValueError(f"task must be text, not {task!r:.100}")  # noqa: TRY004 - one kind of refusal
    made = tuple(attempts)
    # Errors may be long, and the loop is not held while they are read.
    kept = await asyncio.to_thread(_learn_by_rules, made, task)
    if llm_client is None:
        return tuple(kept)
    return (*await _reword(kept[:_MOST_CALLS], made, llm_client), *kept[_MOST_CALLS:])


def _learn_by_rules(made: tuple[Attempt, ...], task: str) -> list[SkillMemory]:
    worded = [word_lesson(pattern, task) for pattern in find_patterns(made)]
    return [skill for skill in worded if not check_lesson(skill)]


async def _reword(
    skills: Sequence[SkillMemory], made: tuple[Attempt, ...], llm_client: CompletesPrompts
) -> list[SkillMemory]:
    calls = [ask(llm_client, write_lesson_prompt(skill, made), LessonWording) for skill in skills]
    replies = await asyncio.gather(*calls)
    return [apply_wording(skill, said, made) for skill, said in zip(skills, replies, strict=True)]
