"""The values of lessons: attempts, the patterns in them, lessons, verdicts, recalls and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from pytest_golden.clock import new_id, utc_now
from pytest_golden.learning import memories
from pytest_golden.values.checking import check_text, check_time, check_word
from pytest_golden.values.frozen import FrozenDict
from pytest_golden.values.shape import Shape, VersionedShape


class LessonKind(StrEnum):
    """The origin of a lesson: one of the five patterns in attempts, the gate's history, or a person's correction."""

    TOOL_SUBSTITUTION = "tool_substitution"
    PARAMETER_CORRECTION = "parameter_correction"
    ENVIRONMENTAL_CONSTRAINT = "environmental_constraint"
    REPLAN_SUCCESS = "replan_success"
    FAILED_AFTER_REPLAN = "failed_after_replan"
    PROJECT_FIX = "project_fix"
    CORRECTION = "correction"


class LessonSource(StrEnum):
    """Who worded a lesson. A model's is not approved until a pass or a person confirms it."""

    RULES = "rules"
    MODEL = "model"
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


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a tool. `plan` rises with each replan.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=FrozenDict)
    success: bool = False
    error_message: str | None = None
    plan: int = 1

    def __post_init__(self) -> None:
        check_text("tool", self.tool)
        object.__setattr__(self, "arguments", memories.freeze_json_mapping("arguments", self.arguments))
        memories.check_flag("success", self.success)
        memories.check_any_text("error_message", self.error_message, is_optional=True)
        memories.check_count("plan", self.plan, least=1)


@dataclass(frozen=True, slots=True)
class LessonPattern(Shape):
    """A pattern in attempts. `evidence`: `changed_arguments, failed_tool, worked_tool, error` as far as they apply."""

    kind: LessonKind
    evidence: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", check_word("kind", self.kind, LessonKind))
        object.__setattr__(self, "evidence", memories.freeze_json_mapping("evidence", self.evidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillMemory(VersionedShape):
    """A lesson: what failed, what worked and why.

    A recall goes by `evidence["error"]`, the error's text, and `evidence["project"]`, the golden project. `confidence` is 0 to
    1. `support` counts how often it was learned, `success_count` and `harm_count` the passes and failures that followed when
    it was shown. `superseded_by` is the id of the lesson that contradicted it.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    lesson: str
    context: str = ""
    what_failed: str = ""
    what_worked: str = ""
    why: str = ""
    tool_name: str | None = None
    kind: str = LessonKind.CORRECTION
    confidence: float = 0.8
    evidence: Mapping[str, Any] = field(default_factory=FrozenDict)
    success_count: int = 0
    harm_count: int = 0
    support: int = 1
    approved: bool = True
    source: str = LessonSource.RULES
    superseded_by: str | None = None
    rejected: bool = False
    judged_by: str | None = None
    judged_at: datetime | None = None
    created_at: datetime = field(default_factory=utc_now)
    last_used: datetime | None = None
    id: str = field(default_factory=lambda: new_id("lesson"))

    def __post_init__(self) -> None:
        settle = object.__setattr__
        for name in ("lesson", "context", "what_failed", "what_worked", "why"):
            memories.check_any_text(name, getattr(self, name))
        for name in ("tool_name", "superseded_by", "judged_by"):
            memories.check_any_text(name, getattr(self, name), is_optional=True)
        check_text("id", self.id)
        for kind, name in ((LessonKind, "kind"), (LessonSource, "source")):
            settle(self, name, check_word(name, getattr(self, name), kind))
        settle(self, "confidence", memories.check_confidence(self.confidence))
        for name in ("success_count", "harm_count", "support"):
            memories.check_count(name, getattr(self, name))
        for name in ("approved", "rejected"):
            memories.check_flag(name, getattr(self, name))
        settle(self, "evidence", memories.freeze_json_mapping("evidence", self.evidence))
        settle(self, "created_at", check_time("created_at", self.created_at))
        for name in ("last_used", "judged_at"):
            timestamp = getattr(self, name)
            settle(self, name, None if timestamp is None else check_time(name, timestamp))

    def __hash__(self) -> int:
        return hash(self.id)

    def replace(self, **changes: Any) -> SkillMemory:
        """Return the lesson with other values in these fields."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class LessonVerdict(Shape):
    """Whether a lesson was stored; if not, `reason` says why. `skill` is the stored lesson, or else the given one."""

    kept: bool
    reason: str
    skill: SkillMemory


@dataclass(frozen=True, slots=True)
class Recalled(Shape):
    """A lesson that applies to a failure. A higher score fits better; `settle(recall_id, passed)` records the result."""

    lesson: SkillMemory
    score: float
    why: RecallReason
    recall_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonStats(Shape):
    """The numbers of lessons, and of the results of showing them.

    `shown` may be recalled, `unapproved` wait for a pass or a person, `harmful` harmed five times and never helped. `recalled`
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
