"""What a language model is asked to word, and whether what it said is true of the attempts. Pure; asking is elsewhere."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pytest_golden.learning.language_model.prompting import write_prompt
from pytest_golden.learning.lessons.hiding import make_redactor
from pytest_golden.learning.lessons.model import LessonSource
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.lessons.wording import MOST_OF_REASON
from pytest_golden.learning.limits import thaw
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.learning.lessons.model import Attempt, SkillMemory

_TASK = """\
A tool was called several times by an agent. Word the lesson that the next agent should be told, as one or two plain sentences:
what to do, and when. It must help with other tasks too: no paths, ids, dates, times, addresses or names of this one case.
Name only tools and arguments that stand in the data, in backticks. Say in "why" what the cause was, in one sentence."""
# What reads as the name of a tool, an argument or a step.
_NAMED = re.compile(r"`([^`]{1,200})`|\b([A-Za-z]\w*_\w+|[a-z]\w*(?=\(\)))")
_PARTS = re.compile(r"[\w.-]+")
_MOST_ATTEMPTS = 20


class Wording(BaseModel):
    """What a model says: the lesson, and why it holds."""

    model_config = ConfigDict(frozen=True)

    lesson: str
    why: str = ""


class LessonWording(Wording):
    """The same, and which tools it names."""

    tools: tuple[str, ...] = ()


def write_lesson_prompt(skill: SkillMemory, attempts: Iterable[Attempt]) -> str:
    """Give the prompt for a lesson that rules have worded; what tools and agents wrote is data in it, without secrets."""
    made = list(attempts)
    redactor = make_redactor(made)
    case = {name: getattr(skill, name) for name in ("kind", "what_failed", "what_worked", "why", "context")}
    data = {
        "The lesson as rules worded it": skill.lesson,
        "The case": {**case, "evidence": thaw(skill.evidence)},
        "The attempts": [redactor.value(_tell(one)) for one in made[-_MOST_ATTEMPTS:]],
    }
    return write_prompt(_TASK, data)


def apply_wording(skill: SkillMemory, said: LessonWording | None, attempts: Iterable[Attempt]) -> SkillMemory:
    """Give the lesson in a model's words, not approved; as rules worded it when the model said nothing that holds.

    It must name something of the case and nothing that is not in the attempts, and pass the checks of every lesson.
    """
    if said is None:
        return skill
    worded = put_in_words(skill, said)
    is_true = _is_true(worded, said.tools, tuple(attempts))
    return worded if is_true and not check_lesson(worded) else skill


def put_in_words(skill: SkillMemory, said: Wording) -> SkillMemory:
    """Give a lesson in a model's words, without secrets and not approved. Whether they are true is not looked at."""
    lesson, why = (" ".join(redact(text).split()) for text in (said.lesson, said.why))
    why = why[:MOST_OF_REASON] or skill.why
    return skill.replace(lesson=lesson, why=why, source=LessonSource.MODEL, approved=False)


def list_parts(texts: Iterable[str]) -> set[str]:
    """Give the parts that names in texts are made of, so that `orders.csv` and `read_csv` are known wherever they stand."""
    return {part for text in texts for part in _PARTS.findall(text)}


def _is_true(worded: SkillMemory, tools: Iterable[str], attempts: tuple[Attempt, ...]) -> bool:
    known = _list_known(worded, attempts)
    named = list_parts(match[1] or match[2] for match in _NAMED.finditer(worded.lesson))
    if not named <= known or not {tool for tool in tools if tool.strip()} <= {one.tool for one in attempts}:
        return False
    words = list_parts([worded.lesson])
    return any(parts and parts <= words for parts in (list_parts([name]) for name in _list_subjects(worded)))


def _list_subjects(skill: SkillMemory) -> list[str]:
    evidence = skill.evidence
    names = [evidence.get(name) for name in ("failed_tool", "worked_tool", "subject")]
    return [str(name) for name in (*names, *evidence.get("changed_arguments", ())) if name]


def _list_known(skill: SkillMemory, attempts: tuple[Attempt, ...]) -> set[str]:
    told = [json.dumps(thaw(skill.evidence), ensure_ascii=False), skill.context]
    for one in attempts:
        told += [one.tool, json.dumps(thaw(one.arguments), ensure_ascii=False), one.error_message or ""]
    return list_parts(told)


def _tell(attempt: Attempt) -> dict[str, Any]:
    return {
        "tool": attempt.tool,
        "arguments": thaw(attempt.arguments),
        "worked": attempt.success,
        "error": attempt.error_message,
        "plan": attempt.plan,
    }
