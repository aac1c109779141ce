"""The values of lessons: attempts, the patterns in them, lessons, verdicts, recalls and counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id, utc_now
from pytest_golden.learning import memories
from pytest_golden.trajectory.step import Step
from pytest_golden.trajectory.vocabulary import StepType
from pytest_golden.values import checking
from pytest_golden.values.checking import Checked, check_text, check_time, check_word, checked, optional
from pytest_golden.values.json_form import FrozenDict, json_form
from pytest_golden.values.shape import Shape, VersionedShape

if TYPE_CHECKING:
    from pytest_golden.trajectory.readers.model import StepDraft


class LessonKind(StrEnum):
    """The origin of a lesson: one of the seven patterns in attempts, the gate's history, or a person's correction."""

    TOOL_SUBSTITUTION = "tool_substitution"
    PARAMETER_CORRECTION = "parameter_correction"
    ENVIRONMENTAL_CONSTRAINT = "environmental_constraint"
    REPLAN_SUCCESS = "replan_success"
    FAILED_AFTER_REPLAN = "failed_after_replan"
    EDIT_FIX = "edit_fix"
    GIVEN_UP = "given_up"
    PROJECT_FIX = "project_fix"
    CORRECTION = "correction"


class LessonSource(StrEnum):
    """Who worded a lesson. One of a model or of an agent waits until a person approves it, or rules learn the same."""

    RULES = "rules"
    MODEL = "model"
    AGENT = "agent"
    PERSON = "person"


class RecallReason(StrEnum):
    """Why a lesson was recalled, the surest first."""

    SIGNATURE = "signature"
    PROJECT = "project"
    WORDS = "words"


class LessonChange(StrEnum):
    """The change that made a version of a lesson."""

    LEARNED = "learned"
    LEARNED_AGAIN = "learned again"
    SUPERSEDED = "superseded"
    REVIVED = "revived"
    APPROVED = "approved"
    REJECTED = "rejected"
    HELPED = "helped"
    HARMED = "harmed"
    MERGED = "merged"


_TEXT, _OPTIONAL_TEXT = checked(checking.check_any_text), checked(checking.check_optional_text)
_COUNT, _FLAG = checked(checking.check_count), checked(checking.check_flag)
_KIND = checked(partial(check_word, words=LessonKind))
_OPTIONAL_TIME = checked(optional(check_time))
_MOST_OF_AUTHOR = 60


@dataclass(frozen=True, slots=True)
class Attempt(Checked):
    """One call of a tool. `plan` rises with each replan.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    tool: str = field(metadata=checked(check_text))
    arguments: Mapping[str, Any] = field(default_factory=FrozenDict, metadata=checked(memories.freeze_json_mapping))
    success: bool = field(default=False, metadata=checked(checking.check_flag))
    error_message: str | None = field(default=None, metadata=checked(checking.check_optional_text))
    plan: int = field(default=1, metadata=checked(partial(checking.check_count, least=1)))

    @classmethod
    def from_step(cls, step: Step | StepDraft, plan: int = 1) -> Attempt:
        """Return a recorded step as an attempt, so that a trajectory can teach lessons.

        The tool is named by the step's metadata (`tool`, or `gen_ai.tool.name` of OpenTelemetry), else it is the content. `arguments` or
        `gen_ai.tool.call.arguments`, also as JSON text, are the arguments. A truthy `error` or `failed` makes it a failure.

        Raises:
            ValueError: the step has neither a tool nor a content.
        """
        told = step.metadata
        tool = told.get("tool") or told.get("gen_ai.tool.name") or step.content
        given = told.get("arguments", told.get("gen_ai.tool.call.arguments"))
        error = told.get("error")
        failed = bool(error or told.get("failed"))
        # Without words about the error, the content is what there is; the name of the tool says nothing of it.
        content = None if step.content == tool else step.content
        said = error if error and error is not True else content if failed else None
        message = None if said is None else _write(said)
        return cls("" if tool is None else _write(tool), _read_arguments(given), not failed, message, plan)

    def to_step(self, timestamp: datetime | None = None) -> Step:
        """Return the attempt as a step of a trajectory, at this time or now. `from_step` gives the same attempt again, in the first plan."""
        metadata: dict[str, Any] = {"tool": self.tool, "arguments": self.arguments}
        metadata |= {} if self.success else {"failed": True}
        metadata |= {} if self.error_message is None else {"error": self.error_message}
        return Step(new_id("step"), StepType.ACTION, self.tool, timestamp or utc_now(), metadata=metadata)


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(json_form(value), ensure_ascii=False)


def _read_arguments(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {"input": given}
    return given if isinstance(given, Mapping) else {} if given is None else {"input": given}


@dataclass(frozen=True, slots=True)
class LessonPattern(Checked, Shape):
    """A pattern in attempts. `evidence`: `changed_arguments, failed_tool, worked_tool, error` as far as they apply."""

    kind: LessonKind = field(metadata=_KIND)
    evidence: Mapping[str, Any] = field(metadata=checked(memories.freeze_json_mapping))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillMemory(Checked, VersionedShape):
    """A lesson: what failed, what worked and why.

    A recall goes by `evidence["error"]`, the error's text, and `evidence["project"]`, the golden project. `confidence` is 0 to
    1. `support` counts how often it was learned, `success_count` and `harm_count` the passes and failures that followed when
    it was shown. `superseded_by` is the id of the lesson that contradicted it. `proposed_by` names the agent or program that
    proposed it, and stays whatever becomes of the lesson.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    lesson: str = field(metadata=_TEXT)
    context: str = field(default="", metadata=_TEXT)
    what_failed: str = field(default="", metadata=_TEXT)
    what_worked: str = field(default="", metadata=_TEXT)
    why: str = field(default="", metadata=_TEXT)
    tool_name: str | None = field(default=None, metadata=_OPTIONAL_TEXT)
    kind: str = field(default=LessonKind.CORRECTION, metadata=_KIND)
    confidence: float = field(default=0.8, metadata=checked(memories.check_confidence))
    evidence: Mapping[str, Any] = field(default_factory=FrozenDict, metadata=checked(memories.freeze_json_mapping))
    success_count: int = field(default=0, metadata=_COUNT)
    harm_count: int = field(default=0, metadata=_COUNT)
    support: int = field(default=1, metadata=_COUNT)
    approved: bool = field(default=True, metadata=_FLAG)
    source: str = field(default=LessonSource.RULES, metadata=checked(partial(check_word, words=LessonSource)))
    proposed_by: str | None = field(default=None, metadata=_OPTIONAL_TEXT)
    superseded_by: str | None = field(default=None, metadata=_OPTIONAL_TEXT)
    rejected: bool = field(default=False, metadata=_FLAG)
    judged_by: str | None = field(default=None, metadata=_OPTIONAL_TEXT)
    judged_at: datetime | None = field(default=None, metadata=_OPTIONAL_TIME)
    created_at: datetime = field(default_factory=utc_now, metadata=checked(check_time))
    last_used: datetime | None = field(default=None, metadata=_OPTIONAL_TIME)
    id: str = field(default_factory=lambda: new_id("lesson"), metadata=checked(check_text))

    def __hash__(self) -> int:
        return hash(self.id)

    def say(self, text: str) -> str:
        """Return words of the lesson in one line: those of our rules as they are, those of anybody else quoted behind their author.

        Whoever reads a lesson may take it for an order; so it is plain who says it, and nothing in it ends the quotation.
        """
        line = _join_line(text)
        if self.source == LessonSource.RULES and self.proposed_by is None:
            return line
        author = _join_line((self.proposed_by or f"a {self.source}").replace('"', ""))
        return f"{author[:_MOST_OF_AUTHOR]} says: {json.dumps(line, ensure_ascii=False)}"

    def replace(self, **changes: Any) -> SkillMemory:
        """Return the lesson with other values in these fields."""
        return replace(self, **changes)


def _join_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


@dataclass(frozen=True, slots=True)
class LessonVerdict(Shape):
    """Whether a lesson was stored; if not, `reason` says why. `skill` is the stored lesson, or else the given one."""

    kept: bool
    reason: str
    skill: SkillMemory


@dataclass(frozen=True, slots=True)
class Recalled(Shape):
    """A lesson that applies to a failure. A higher score fits better; `settle(recall_id, passed)` records the result.

    `stale` says what has changed since it was learned, where that was looked for; empty if nothing is seen to have.
    """

    lesson: SkillMemory
    score: float
    why: RecallReason
    recall_id: str = ""
    stale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonStats(Shape):
    """The numbers of lessons, and of the results of showing them.

    `shown` may be recalled, `unapproved` wait for a person, `harmful` harmed five times and never helped. `recalled`
    counts all recalls; a pass followed `helped` of them, a failure `harmed`, and the others have no result yet.
    """

    total: int
    shown: int
    unapproved: int
    rejected: int
    superseded: int
    harmful: int
    recalled: int
    helped: int
    harmed: int
    by_kind: Mapping[str, int]
    by_agent: Mapping[str, int]
