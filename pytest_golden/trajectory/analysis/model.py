"""What an analysis finds in a trajectory, as frozen values, and its words. No finding is made here.

Every text in them is one line and bounded, and so is every list of step ids; `to_dict()` is JSON-safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.trajectory.vocabulary import TrajectoryOutcome


class _Ranked(StrEnum):
    """Words from least to most. As text they sort by letter; compare `rank` instead."""

    @property
    def rank(self) -> int:
        """Give 0 for the least of the words."""
        return list(type(self)).index(self)


class Severity(_Ranked):
    """How bad a finding is; the same words as a step's importance."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Quality(_Ranked):
    """How a trajectory went as a whole, from worst to best."""

    POOR = "poor"
    FAIR = "fair"
    GOOD = "good"
    EXCELLENT = "excellent"


class Detail(_Ranked):
    """How much a summary or a prompt tells."""

    BRIEF = "brief"
    NORMAL = "normal"
    DETAILED = "detailed"


class FailureCategory(StrEnum):
    """What failed: by the type of the step, or by how the trajectory ended."""

    TOOL_FAILURE = "tool_failure"
    STATE_ERROR = "state_error"
    LOGICAL_ERROR = "logical_error"
    ERROR = "error"
    TIMEOUT = "timeout"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


class SuccessType(StrEnum):
    """What went well in a trajectory that ended in success."""

    EFFICIENT_PATH = "efficient_path"
    CLEAR_REASONING = "clear_reasoning"
    PROPER_TOOL_USE = "proper_tool_use"
    GOOD_DECOMPOSITION = "good_decomposition"
    EFFECTIVE_RECOVERY = "effective_recovery"


class ReasoningIssueType(StrEnum):
    """What is wrong with what was thought, as far as words and order show it."""

    CONTRADICTION = "contradiction"
    CIRCULAR_REASONING = "circular_reasoning"
    REPEATED_ACTION = "repeated_action"
    UNSUPPORTED_CONCLUSION = "unsupported_conclusion"
    UNSUPPORTED_CERTAINTY = "unsupported_certainty"
    INCOMPLETE_LOGIC = "incomplete_logic"
    IGNORED_ERROR = "ignored_error"
    GAVE_UP = "gave_up"


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """Where something failed. `step_id` is None when no step stands for it.

    `context` has what is known of the step: `index` (from 0), `step`, `type`, `error`, `previous_step`, `recovered`,
    `metadata` (its scalars); of the end of a trajectory, `outcome` and `error`.
    """

    category: FailureCategory
    severity: Severity
    description: str
    step_id: str | None = None
    context: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)


@dataclass(frozen=True, slots=True)
class SuccessIndicator:
    """Something that went well, and the steps that show it."""

    type: SuccessType
    description: str
    step_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningIssue:
    """Something wrong with what was thought. `evidence` quotes what shows it, `step_ids` name where, in order."""

    type: ReasoningIssueType
    severity: Severity
    evidence: str
    step_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrajectoryAnalysis:
    """What was found in one trajectory. Findings are in the order of the steps; what concerns the end comes last.

    `quality` depends on all findings, also on those that were not asked for. `outcome` is None for an open trajectory.
    """

    trajectory_id: str
    outcome: TrajectoryOutcome | None
    quality: Quality
    step_count: int
    duration_ms: float | None = None
    failure_points: tuple[FailurePoint, ...] = ()
    success_indicators: tuple[SuccessIndicator, ...] = ()
    reasoning_issues: tuple[ReasoningIssue, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form
