"""What a model is asked when it is to reflect on a trajectory, and what it answered, as frozen values. No text is read here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.analysis.model import Detail, TrajectoryAnalysis
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import check_text, check_word

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a word for a confidence stands for, where a number is wanted.
CONFIDENCE_WORDS = {"high": 0.9, "medium": 0.6, "low": 0.3}


class SuggestionType(StrEnum):
    """What is to be done to the prompt."""

    ADD = "add"
    MODIFY = "modify"
    REMOVE = "remove"
    RESTRUCTURE = "restructure"


class SuggestionCategory(StrEnum):
    """What about the prompt it concerns."""

    CLARITY = "clarity"
    CONSTRAINT = "constraint"
    EXAMPLE = "example"
    STRUCTURE = "structure"
    REASONING = "reasoning"


class Priority(StrEnum):
    """How urgent a suggestion is, from least to most."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Give 0 for low up to 2 for high."""
        return list(Priority).index(self)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change to a prompt. Words may be given plain; `specific_text` is what to write, `target_section` where.

    Raises:
        ValueError: a word is not allowed, or the description is blank.
    """

    type: SuggestionType
    category: SuggestionCategory
    description: str
    rationale: str = ""
    priority: Priority = Priority.MEDIUM
    specific_text: str | None = None
    target_section: str | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "type", check_word("type", self.type, SuggestionType))
        settle(self, "category", check_word("category", self.category, SuggestionCategory))
        settle(self, "priority", check_word("priority", self.priority, Priority))
        check_text("description", self.description)


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a model made of a trajectory.

    `confidence` goes from 0 to 1; the words high, medium and low may be given for 0.9, 0.6 and 0.3.
    `needs_clarification` says that it is too thin to act on.

    Raises:
        ValueError: the confidence is neither.
    """

    analysis: str = ""
    root_causes: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    expected_improvement: str = ""
    confidence: float = 0.5
    needs_clarification: bool = False

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "root_causes", tuple(self.root_causes))
        settle(self, "suggestions", tuple(self.suggestions))
        confidence = read_confidence(self.confidence)
        if confidence is None:
            allowed = "a number from 0 to 1, or high, medium or low"
            raise ValueError(f"confidence must be {allowed}, not {self.confidence!r}")
        settle(self, "confidence", confidence)

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form


@dataclass(frozen=True, slots=True)
class ReflectionRequest:
    """What is asked: which analysis, of a run under which prompt, for what task."""

    analysis: TrajectoryAnalysis
    original_prompt: str
    task_description: str | None = None
    detail: Detail = Detail.NORMAL
    focus_areas: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form


@dataclass(frozen=True, slots=True)
class ReflectionPrompt:
    """The two messages for a language model."""

    system: str
    user: str

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names."""
        return {"system": self.system, "user": self.user}


def read_confidence(given: object) -> float | None:
    """Give a number from 0 to 1 for such a number or one of the three words, else None."""
    if isinstance(given, str):
        return CONFIDENCE_WORDS.get(given.strip().lower())
    if isinstance(given, (int, float)) and not isinstance(given, bool) and 0 <= given <= 1:
        return float(given)
    return None


def build_reflection_request(
    analysis: TrajectoryAnalysis,
    *,
    original_prompt: str,
    task_description: str | None = None,
    detail: Detail | str = "normal",
    focus_areas: Iterable[str] = (),
) -> ReflectionRequest:
    """Put together what a model is to be asked. Nothing is redacted here: give an analysis of redacted values.

    Raises:
        ValueError: the prompt is blank, an argument is of another type, or the detail is unknown.
    """
    given: object = analysis
    if not isinstance(given, TrajectoryAnalysis):
        message = f"analysis must be what analyze_trajectory gives, not a {type(given).__name__}"
        raise ValueError(message)  # noqa: TRY004 - one kind of refusal
    areas = (focus_areas,) if isinstance(focus_areas, str) else tuple(focus_areas)
    return ReflectionRequest(
        analysis=analysis,
        original_prompt=check_text("original_prompt", original_prompt),
        task_description=None if task_description is None else check_text("task_description", task_description),
        detail=check_word("detail", detail, Detail),
        focus_areas=tuple(check_text("focus_areas", area) for area in areas),
    )
