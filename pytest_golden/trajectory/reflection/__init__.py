"""Reflection: what a language model is asked about a trajectory, and what is made of its replies.

Pure text and values: a model is plugged in elsewhere, and no status depends on it. What goes into a request goes to the
model, so it must have been redacted before.
"""

from pytest_golden.trajectory.reflection.aggregation import (
    AggregatedReflections,
    AggregatedSuggestion,
    aggregate_reflections,
)
from pytest_golden.trajectory.reflection.model import (
    Priority,
    Reflection,
    ReflectionPrompt,
    ReflectionRequest,
    Suggestion,
    SuggestionCategory,
    SuggestionType,
    build_reflection_request,
)
from pytest_golden.trajectory.reflection.parsing import parse_reflection
from pytest_golden.trajectory.reflection.prompt import reflection_prompt

__all__ = [
    "AggregatedReflections",
    "AggregatedSuggestion",
    "Priority",
    "Reflection",
    "ReflectionPrompt",
    "ReflectionRequest",
    "Suggestion",
    "SuggestionCategory",
    "SuggestionType",
    "aggregate_reflections",
    "build_reflection_request",
    "parse_reflection",
    "reflection_prompt",
]
