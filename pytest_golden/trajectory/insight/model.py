"""Define the findings of an analysis as frozen values, and write what a step says as bounded text. Nothing is analyzed here.

Each text is one line and bounded, and so is each list of step ids. `to_dict()` is JSON-safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.trajectory.vocabulary import Ranked, TrajectoryOutcome
from pytest_golden.values.json_form import FrozenDict, json_form, readable_text
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.trajectory.step import Step


class Severity(Ranked):
    """How bad a finding is; the same words as a step's importance."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Quality(Ranked):
    """How a trajectory went as a whole, from worst to best."""

    POOR = "poor"
    FAIR = "fair"
    GOOD = "good"
    EXCELLENT = "excellent"


class Detail(Ranked):
    """How long a summary or a prompt is."""

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
    """What is wrong with the reasoning, as far as words and order show it."""

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
    """A failure. `step_id` is None when it belongs to no step.

    `context` describes the step: `index` (from 0), `step`, `type`, `error`, `previous_step`, `recovered`,
    `metadata` (its scalars). For the end of a trajectory it holds `outcome` and `error`.
    """

    category: FailureCategory
    severity: Severity
    description: str
    step_id: str | None = None
    context: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False, metadata=form(write=json_form))


@dataclass(frozen=True, slots=True)
class SuccessIndicator:
    """Something that went well, and the steps that show it."""

    type: SuccessType
    description: str
    step_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningIssue:
    """A flaw in the reasoning. `evidence` quotes it; `step_ids` name its steps, in order."""

    type: ReasoningIssueType
    severity: Severity
    evidence: str
    step_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrajectoryAnalysis(Shape):
    """What was found in one trajectory. Findings are in the order of the steps; what concerns the end comes last.

    `quality` depends on all findings, also on those that were left out. `outcome` is None for an open trajectory.
    """

    trajectory_id: str
    outcome: TrajectoryOutcome | None
    quality: Quality
    step_count: int
    duration_ms: float | None = None
    failure_points: tuple[FailurePoint, ...] = ()
    success_indicators: tuple[SuccessIndicator, ...] = ()
    reasoning_issues: tuple[ReasoningIssue, ...] = ()


MOST_READ = 20_000
MOST_STEP_IDS = 50
_LONGEST_LINE = 300
_MOST_METADATA = 12
# Keys under which agents put their text, when a step's content is a mapping.
_SAYING_KEYS = ("text", "thought", "content", "message")


def text_of(content: Any) -> str:
    """Return the text of a step's content, its first 20,000 characters; empty for None."""
    if isinstance(content, str):
        return content[:MOST_READ]
    if content is None:
        return ""
    if isinstance(content, Mapping):
        said = next((content[key] for key in _SAYING_KEYS if isinstance(content.get(key), str)), None)
        if said is not None:
            return str(said)[:MOST_READ]
    return readable_text(content)[:MOST_READ]


def one_line(text: str, limit: int = _LONGEST_LINE) -> str:
    """Return the text in one line without control characters, cut to `limit` characters with three dots at its end."""
    shown = " ".join(strip_escapes(text[: limit * 4]).split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in shown)
    return shown if len(shown) <= limit and len(text) <= limit * 4 else f"{shown[: limit - 3]}..."


def title_of(step: Step, limit: int = 80) -> str:
    """Return a step's text in a few words; one without text is named by its type."""
    return one_line(text_of(step.content), limit) or f"a step of type {step.type.value}"


def error_of(step: Step) -> str:
    """Return the text of a step's error; empty when it says only that it failed."""
    for key in ("error", "failed"):
        told = step.metadata.get(key)
        if told and told is not True:
            return one_line(text_of(told))
    return ""


def told_metadata(step: Step) -> dict[str, Any]:
    """Return the first few scalars of a step's metadata without its error; long text is cut."""
    scalars = {
        one_line(str(key), 80): one_line(value, 200) if isinstance(value, str) else json_form(value)
        for key, value in step.metadata.items()
        if key not in {"error", "failed"} and isinstance(value, (str, int, float))
    }
    return dict(islice(scalars.items(), _MOST_METADATA))


def bounded_ids(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the ids of the first 50 steps, each once."""
    return tuple(islice(dict.fromkeys(step.id for step in steps), MOST_STEP_IDS))


def count_of(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
