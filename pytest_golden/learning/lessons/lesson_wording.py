"""Learn lessons from attempts: word them from patterns by rules or by a language model, and check that its words are true.

`lesson` is general advice; the other fields describe the case that it came from.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pytest_golden.learning.language_model.client import ask
from pytest_golden.learning.language_model.prompting import settle_data, write_prompt
from pytest_golden.learning.lessons.model import LessonKind, LessonSource, SkillMemory
from pytest_golden.learning.lessons.patterns import find_patterns, make_redactor
from pytest_golden.learning.lessons.quality import (
    LEAST_CONFIDENCE,
    Constraint,
    check_lesson,
    find_specifics,
    generalise,
)
from pytest_golden.learning.signature import cause_of
from pytest_golden.redaction.redactor import redact
from pytest_golden.values.checking import check_any_text
from pytest_golden.values.json_form import json_form
from pytest_golden.values.shape import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_golden.learning.language_model.client import CompletesPrompts
    from pytest_golden.learning.lessons.model import Attempt, LessonPattern

MOST_OF_REASON = 500
_MOST_OF_TASK, _MOST_OF_LINE, _MOST_OF_NAME, _MOST_OF_VALUE, _MOST_NAMES = 300, 200, 60, 40, 3
# Of a person's correction, in characters, and in words: fewer say that something is wrong, but not what.
_MOST_OF_CORRECTION, _FEWEST_OF_CORRECTION = 300, 3
_MARK = "REDACTED"
_CLASS = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Warning|Timeout|Interrupt|Exit|NotFound|Failure))\b"
)
_TRACEBACK = "Traceback (most recent call last)"
_FEW, _SURE, _LIKELY, _GUESSED, _EMPTY = 2, 0.9, 0.8, 0.7, 0.5
_CONSTRAINTS = {
    Constraint.LIBRARY: "Install the library {subject} before {tool} is called where it is missing",
    Constraint.COMMAND: "Install the command {subject} before {tool} is called where it is missing",
    Constraint.NETWORK: "Make sure of the network before {tool} is called where connections fail",
    Constraint.PERMISSION: "Get the permission that {tool} needs where access is denied",
    Constraint.DISK: "Make room on the disk before {tool} is called where no space is left",
    Constraint.MEMORY: "Give {tool} less at once where the memory runs out",
}
_MODEL_TASK = """\
A tool was called several times by an agent. Word the lesson that the next agent should be told, as one or two plain sentences:
what to do, and when. It must help with other tasks too: no paths, ids, dates, times, addresses or names of this one case.
Name only tools and arguments that stand in the data, in backticks. Say in "why" what the cause was, in one sentence, and in "confidence" how sure
you are that the lesson is right, from 0 to 1."""
# The form of a name of a tool, an argument or a step.
_NAME_FORM = re.compile(r"`([^`]{1,200})`|\b([A-Za-z]\w*_\w+|[a-z]\w*(?=\(\)))")
_NAME_PART = re.compile(r"[\w.-]+")
_MOST_ATTEMPTS = 20
_MOST_MESSAGES, _MOST_OF_MESSAGE = 20, 600
# All calls run at once, so that learning takes only as long as one call.
_MOST_MODEL_CALLS = 8


async def learn_from_attempts(
    attempts: Iterable[Attempt],
    *,
    task: str,
    llm_client: CompletesPrompts | None = None,
    messages: Iterable[object] = (),
) -> tuple[SkillMemory, ...]:
    """Return the lessons of attempts that pass the checks of `Lessons.add`, redacted.

    A model, if given, words the first eight of them; its lessons are not approved (`source` is "model"). Its answer is checked
    against the attempts; without a true answer of which it is sure (0.7) within five seconds the wording by rules stays.

    Args:
        attempts: in the order in which they were made.
        task: their purpose.
        llm_client: a language model.
        messages: what was said meanwhile, JSON content or texts, for the model alone: it sees the last twenty, redacted.

    Raises:
        ValueError: the task is not text, or an item of `attempts` is not an `Attempt`.
    """
    check_any_text("task", task)
    made = tuple(attempts)
    # Errors may be long: a thread reads them, so that the event loop is not blocked.
    kept = await asyncio.to_thread(learn_by_rules, made, task)
    if llm_client is None:
        return tuple(kept)
    asked = kept[:_MOST_MODEL_CALLS]
    said = [settle_data(json_form(one), _MOST_OF_MESSAGE) for one in messages][-_MOST_MESSAGES:]
    prompts = (write_lesson_prompt(one, made, said) for one in asked)
    replies = await asyncio.gather(*(ask(llm_client, prompt, LessonWording) for prompt in prompts))
    reworded = (apply_wording(skill, reply, made) for skill, reply in zip(asked, replies, strict=True))
    return (*reworded, *kept[_MOST_MODEL_CALLS:])


def learn_by_rules(made: Iterable[Attempt], task: str) -> list[SkillMemory]:
    """Return the lessons of attempts in the words of the rules, those that pass the checks."""
    worded = [word_lesson(pattern, task) for pattern in find_patterns(made)]
    return [skill for skill in worded if not check_lesson(skill)]


def word_lesson(pattern: LessonPattern, task: str = "") -> SkillMemory:
    """Return the lesson of a pattern, redacted; `task` is what the attempts were made for."""
    evidence: Mapping[str, Any] = redact(dict(pattern.evidence))
    case = _Case(evidence)
    return SkillMemory(
        lesson=_WORDINGS[LessonKind(pattern.kind)](case),
        context=_shorten(" ".join(generalise(redact(task)).split()), _MOST_OF_TASK),
        what_failed=case.failure,
        what_worked=case.success,
        why=case.reason,
        tool_name=evidence.get("failed_tool"),
        kind=pattern.kind,
        confidence=_rate(pattern.kind, evidence),
        evidence=evidence,
    )


def word_correction(said: str, task: str, agent: str) -> SkillMemory | None:
    """Return the lesson of what a person said against an agent's work, which waits for approval; None for words that tell nothing.

    The agent reports it, so the words are the agent's until somebody approves them.
    """
    words = " ".join(redact(said).split())
    if len(words.split()) < _FEWEST_OF_CORRECTION:
        return None
    context = _shorten(" ".join(generalise(redact(task)).split()), _MOST_OF_TASK)
    return SkillMemory(
        lesson=_shorten(words, _MOST_OF_CORRECTION),
        context=context,
        what_failed=context,
        why="a person corrected it",
        kind=LessonKind.CORRECTION,
        source=LessonSource.AGENT,
        proposed_by=agent,
        confidence=_LIKELY,
        approved=False,
    )


class _Case:
    """The parts of a lesson's sentences, from the evidence of its pattern."""

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self.evidence = evidence
        self.failed = name_tool(evidence.get("failed_tool"))
        self.worked = name_tool(evidence.get("worked_tool")) if evidence.get("worked_tool") else None
        self.line = find_telling_line(evidence.get("error") or "")
        self.subject = _quote_name(str(evidence.get("subject") or ""))

    @property
    def cause(self) -> str:
        """Return ` with KeyError`, or `""` when no error is known."""
        named = _CLASS.search(self.line)
        if named is not None:
            return f" with {named[1][:_MOST_OF_NAME]}"
        return f' with "{self.line}"' if self.line and len(self.line) <= _MOST_OF_NAME * 2 else ""

    @property
    def failure(self) -> str:
        return f"{self.failed} failed: {self.line}" if self.line else f"{self.failed} failed"

    @property
    def success(self) -> str:
        if self.worked is None:
            return ""
        if edits := self.evidence.get("edits"):
            return "\n".join(f"{edit['file']}:\n{edit['diff']}" if edit["file"] else edit["diff"][1:] for edit in edits)
        changes = word_changes(self.evidence.get("changed_arguments") or {})
        tools = [name_tool(tool) for tool in self.evidence.get("worked_tools") or ()]
        if tools:
            return f"a new plan: {_join(tools, ', then ')}"
        return f"{self.worked}: {changes}" if changes else self.worked

    @property
    def reason(self) -> str:
        constraint = self.evidence.get("constraint")
        if constraint is None:
            return f"{self.failed} worked after it" if self.evidence.get("edits") else self.line
        reason = f"{constraint}: {self.subject}" if self.subject else str(constraint)
        return f"{reason} ({self.line})" if self.line else reason

    @property
    def other_way(self) -> str:
        """Return what worked in spite of a constraint, as `use ...`; blank when nothing worked."""
        if self.worked is None:
            return ""
        if self.worked != self.failed:
            return f"use {self.worked}"
        return word_changes(self.evidence.get("changed_arguments") or {})


def name_tool(tool: object) -> str:
    """Return the name of a tool in backticks; `the tool` for a name that contains a path or the like."""
    return _quote_name(str(tool)) or "the tool"


def find_telling_line(error: str) -> str:
    """Return the most telling line of an error's text, without the parts that belong to one task."""
    lines = [line.strip() for line in cause_of(error).splitlines() if line.strip()]
    if not lines:
        return ""
    named = [line for line in lines if _CLASS.match(line)] or (lines if _TRACEBACK in error else lines[:1])
    return _shorten(" ".join(generalise(named[-1]).split()), _MOST_OF_LINE)


def word_changes(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the changes of a call's arguments in words; a value that belongs to one task is not named."""
    words = [_word_change(str(name), change) for name, change in list(changes.items())[:_MOST_NAMES]]
    more = len(changes) - len(words)
    return _join([*words, *([f"change {more} more"] if more > 0 else [])], " and ")


def _word_change(name: str, change: Mapping[str, Any]) -> str:
    argument = _quote_name(name) or "an argument"
    if "to" not in change:
        return f"leave out {argument}"
    after, before = _word_value(change["to"]), _word_value(change.get("from"))
    if after is None:
        return f"change {argument}" if "from" in change else f"give {argument}"
    old = f" instead of {before}" if "from" in change and before is not None else ""
    return f"set {argument} to {after}{old}"


def _says_how(changes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether one of the changes can be told: `change X`, without a value, is not advice."""
    return any("to" not in change or "from" not in change or _word_value(change["to"]) for change in changes.values())


def _word_value(value: Any) -> str | None:
    """Return a plain short value as text; None for a value that belongs to one task, or is of no use."""
    if isinstance(value, str):
        is_told = value.strip() and len(value) <= _MOST_OF_VALUE and value.isprintable() and "`" not in value
        return f"'{value}'" if is_told and not _is_hidden(value) else None
    if value is None or isinstance(value, (bool, int, float)):
        written = repr(value)
        return None if len(written) > _MOST_OF_VALUE or find_specifics(written) else written
    return None


def _quote_name(name: str) -> str:
    plain = " ".join(name.replace("`", "").split())
    return f"`{plain}`" if plain and len(plain) <= _MOST_OF_NAME and not _is_hidden(plain) else ""


def _is_hidden(text: str) -> bool:
    return _MARK in text or bool(find_specifics(text))


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _join(parts: Sequence[str], sign: str) -> str:
    return ", ".join(parts) if len(parts) > _FEW and sign == " and " else sign.join(parts)


def _word_substitution(case: _Case) -> str:
    return f"When {case.failed} fails{case.cause}, use {case.worked} instead"


def _word_correction(case: _Case) -> str:
    return f"When {case.failed} fails{case.cause}, {word_changes(case.evidence.get('changed_arguments') or {})}"


def _word_edit(case: _Case) -> str:
    edits = case.evidence["edits"]
    if not any(edit["file"] for edit in edits):
        commands = [_quote_name(str(edit["diff"])[1:]) for edit in edits]
        return f"When {case.failed} fails{case.cause}, run {_join(list(dict.fromkeys(commands)), ' and ')} first"
    edits = [edit for edit in edits if edit["file"]]
    files = list(dict.fromkeys(PurePosixPath(edit["file"]).name for edit in edits))
    named = _join([_quote_name(file) or "a file" for file in files[:_MOST_NAMES]], " and ")
    return (
        f"When {case.failed} fails{case.cause}, look at {named}: {_word_replacement(edits) or 'an edit there fixed it'}"
    )


def _word_given_up(case: _Case) -> str:
    files = list(dict.fromkeys(PurePosixPath(edit["file"]).name for edit in case.evidence["tried"] if edit["file"]))
    named = _join([_quote_name(file) or "a file" for file in files[:_MOST_NAMES]], " and ")
    tried = f"edits of {named}" if files else "what was tried"
    return f"When {case.failed} fails{case.cause}, {tried} did not help {case.evidence['failures']} times: look elsewhere first"


def _word_replacement(edits: Sequence[Mapping[str, Any]]) -> str:
    """Return what a single edit of one line replaced; empty for a larger one, and for what belongs to one task."""
    if len(edits) != 1:
        return ""
    lines = str(edits[0]["diff"]).splitlines()
    sides = [[line[1:].strip() for line in lines if line[:1] == sign] for sign in "-+"]
    if [len(side) for side in sides] != [1, 1]:
        return ""
    before, after = (_quote_name(side[0]) for side in sides)
    return f"{after} in the place of {before} fixed it" if before and after else ""


def _word_constraint(case: _Case) -> str:
    kind = Constraint(case.evidence["constraint"])
    advice = _CONSTRAINTS[kind].format(tool=case.failed, subject=case.subject or "something it needs")
    return f"{advice}, or {case.other_way}" if case.other_way else advice


def _word_replan(case: _Case) -> str:
    tools = [name_tool(tool) for tool in case.evidence.get("worked_tools") or ()][:_MOST_NAMES]
    times = case.evidence.get("failures", _FEW)
    often = "twice" if times == _FEW else f"{times} times"
    return f"When {case.failed} has failed {often}{case.cause}, make a new plan: {_join(tools, ', then ')} worked"


def _word_failed_plans(case: _Case) -> str:
    tools = [name_tool(tool) for tool in case.evidence.get("failed_tools") or ()][:_MOST_NAMES]
    named = _join(tools or [case.failed], " and ")
    return (
        f"A new plan alone does not help against a failure{case.cause} of {named}: find its cause before the next one"
    )


_WORDINGS: Mapping[LessonKind, Callable[[_Case], str]] = {
    LessonKind.TOOL_SUBSTITUTION: _word_substitution,
    LessonKind.PARAMETER_CORRECTION: _word_correction,
    LessonKind.ENVIRONMENTAL_CONSTRAINT: _word_constraint,
    LessonKind.REPLAN_SUCCESS: _word_replan,
    LessonKind.FAILED_AFTER_REPLAN: _word_failed_plans,
    LessonKind.EDIT_FIX: _word_edit,
    LessonKind.GIVEN_UP: _word_given_up,
}


def _rate(kind: LessonKind, evidence: Mapping[str, Any]) -> float:
    """Return a lesson's confidence, from 0 to 1: a cause that the error names is more certain than a mere sequence."""
    if kind is LessonKind.ENVIRONMENTAL_CONSTRAINT:
        return _SURE if evidence.get("subject") else _LIKELY
    if not evidence.get("error"):
        return _GUESSED
    if kind is LessonKind.PARAMETER_CORRECTION:
        changes = len(evidence.get("changed_arguments") or ())
        if not _says_how(evidence.get("changed_arguments") or {}):
            return _EMPTY
        return _SURE if changes == 1 else _LIKELY if changes <= _MOST_NAMES else _GUESSED
    if kind is LessonKind.TOOL_SUBSTITUTION:
        return _LIKELY if evidence.get("shared_arguments") else _GUESSED
    return _LIKELY if kind in {LessonKind.REPLAN_SUCCESS, LessonKind.EDIT_FIX} else _GUESSED


class Wording(BaseModel):
    """The reply of a model: the lesson, and its reason."""

    model_config = ConfigDict(frozen=True)

    lesson: str
    why: str = ""


class LessonWording(Wording):
    """The same, with the tools that the lesson names, and how sure the model is, from 0 to 1, as far as it says."""

    tools: tuple[str, ...] = ()
    confidence: float | None = None


def write_lesson_prompt(skill: SkillMemory, attempts: Iterable[Attempt], messages: Sequence[str] = ()) -> str:
    """Return the prompt for a lesson that rules worded; the words of tools and agents, and messages, are redacted data in it."""
    made = list(attempts)
    redactor = make_redactor(made)
    case = {name: getattr(skill, name) for name in ("kind", "what_failed", "what_worked", "why", "context")}
    data: dict[str, object] = {
        "The lesson as rules worded it": skill.lesson,
        "The case": {**case, "evidence": plain(skill.evidence)},
        "The attempts": [redactor.value(_write_attempt(one)) for one in made[-_MOST_ATTEMPTS:]],
    }
    if messages:
        data["What was said meanwhile"] = redactor.value("\n\n".join(messages))
    return write_prompt(_MODEL_TASK, data)


def apply_wording(skill: SkillMemory, said: LessonWording | None, attempts: Iterable[Attempt]) -> SkillMemory:
    """Return the lesson in a model's words, not approved; in the words of the rules when the model's fail the checks.

    They must name something of the case and nothing that is not in the attempts, and pass the checks of every lesson; and the model
    must not call itself unsure.
    """
    if said is None or (said.confidence is not None and said.confidence < LEAST_CONFIDENCE):
        return skill
    worded = put_in_words(skill, said)
    is_true = _is_true(worded, said.tools, tuple(attempts))
    return worded if is_true and not check_lesson(worded) else skill


def put_in_words(skill: SkillMemory, said: Wording) -> SkillMemory:
    """Return a lesson in a model's words, redacted and not approved. Their truth is not checked."""
    lesson, why = (" ".join(redact(text).split()) for text in (said.lesson, said.why))
    why = why[:MOST_OF_REASON] or skill.why
    return skill.replace(lesson=lesson, why=why, source=LessonSource.MODEL, approved=False)


def list_parts(texts: Iterable[str]) -> set[str]:
    """Return the parts of the names in texts, so that `orders.csv` and `read_csv` are found in any context."""
    return {part for text in texts for part in _NAME_PART.findall(text)}


def _is_true(worded: SkillMemory, tools: Iterable[str], attempts: tuple[Attempt, ...]) -> bool:
    known = _list_known(worded, attempts)
    named = list_parts(match[1] or match[2] for match in _NAME_FORM.finditer(worded.lesson))
    if not named <= known or not {tool for tool in tools if tool.strip()} <= {one.tool for one in attempts}:
        return False
    words = list_parts([worded.lesson])
    return any(parts and parts <= words for parts in (list_parts([name]) for name in _list_subjects(worded)))


def _list_subjects(skill: SkillMemory) -> list[str]:
    evidence = skill.evidence
    names = [evidence.get(name) for name in ("failed_tool", "worked_tool", "subject")]
    return [str(name) for name in (*names, *evidence.get("changed_arguments", ())) if name]


def _list_known(skill: SkillMemory, attempts: tuple[Attempt, ...]) -> set[str]:
    texts = [json.dumps(plain(skill.evidence), ensure_ascii=False), skill.context]
    for one in attempts:
        texts += [one.tool, json.dumps(plain(one.arguments), ensure_ascii=False), one.error_message or ""]
    return list_parts(texts)


def _write_attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "tool": attempt.tool,
        "arguments": plain(attempt.arguments),
        "worked": attempt.success,
        "error": attempt.error_message,
        "plan": attempt.plan,
    }
