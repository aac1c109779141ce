"""From a model's reply to a `Reflection`. Pure; whatever a model replies, something comes of it, unless told to be strict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.reflection.fields import FieldReader
from pytest_golden.trajectory.reflection.model import CONFIDENCE_WORDS, Priority, Reflection
from pytest_golden.trajectory.reflection.reply_json import MOST_READ, read_reply
from pytest_golden.trajectory.reflection.wording import (
    find_hope,
    first_paragraph,
    list_causes,
    list_suggestions,
)

if TYPE_CHECKING:
    from pytest_golden.trajectory.reflection.model import Suggestion

_MOST_PROBLEMS = 5


def parse_reflection(reply: object, *, strict: bool = False, min_suggestions: int = 1) -> Reflection:
    """Read a model's reply: JSON, fenced JSON, JSON in prose, the APIs' wrappings of it, values, or plain prose.

    What cannot be used is left out: fields of wrong types, suggestions of an unknown type or category. Suggestions without
    these words get them from their wording, and prose has a confidence of 0.3 at most. Too few suggestions, a confidence
    below 0.5 and a missing analysis set `needs_clarification`.

    Raises:
        ValueError: only when `strict`: the reply is not JSON (one fence is allowed), or something in it is missing or
            wrong; the message says what.
    """
    found = read_reply(reply)
    if strict:
        _refuse_what_is_no_json(reply, found.value, is_whole=found.is_whole)
    answer = {"suggestions": found.value} if isinstance(found.value, list) else found.value
    if not isinstance(answer, dict):
        return _read_prose(found.text)
    reader = FieldReader(answer)
    reflection = _read_fields(reader, min_suggestions)
    if strict:
        _refuse_problems(reader.problems, len(reflection.suggestions), min_suggestions)
    return reflection


def _read_fields(reader: FieldReader, min_suggestions: int) -> Reflection:
    analysis, causes, suggestions = reader.analysis(), reader.root_causes(), reader.suggestions()
    stated = reader.confidence()
    confidence = _rate(analysis, causes, suggestions) if stated is None else stated
    is_thin = not analysis or confidence < 0.5 or len(suggestions) < min_suggestions
    return Reflection(
        analysis=analysis,
        root_causes=causes,
        suggestions=suggestions,
        expected_improvement=reader.expected_improvement(),
        confidence=confidence,
        needs_clarification=is_thin or reader.needs_clarification(),
    )


def _read_prose(text: str) -> Reflection:
    suggestions = list_suggestions(text)
    return Reflection(
        analysis=first_paragraph(text),
        root_causes=list_causes(text),
        suggestions=suggestions,
        expected_improvement=find_hope(text),
        confidence=CONFIDENCE_WORDS["low"] if suggestions else 0.0,
        needs_clarification=True,
    )


def _rate(analysis: str, causes: tuple[str, ...], suggestions: tuple[Suggestion, ...]) -> float:
    """Rate an answer that states no confidence by how complete it is, from 0 to 0.8."""
    if not suggestions:
        return 0.1 if analysis else 0.0
    specific = sum(suggestion.specific_text is not None for suggestion in suggestions) / len(suggestions)
    reasoned = sum(bool(suggestion.rationale) for suggestion in suggestions) / len(suggestions)
    is_ranked = any(suggestion.priority is not Priority.MEDIUM for suggestion in suggestions)
    parts = (0.3, 0.1 * bool(analysis), 0.1 * bool(causes), 0.15 * specific, 0.1 * reasoned, 0.05 * is_ranked)
    return round(sum(parts), 3)


def _refuse_what_is_no_json(reply: object, value: Any, *, is_whole: bool) -> None:
    if isinstance(reply, (str, bytes, bytearray)) and len(reply) > MOST_READ:
        raise ValueError(f"the reply has {len(reply):,} characters: at most {MOST_READ:,} are read")
    if not isinstance(value, dict) or not is_whole:
        raise ValueError("the reply is not one JSON object: answer with the object alone, or in one fence")


def _refuse_problems(problems: list[str], count: int, min_suggestions: int) -> None:
    if count < min_suggestions:
        problems = [*problems, f"there are {count} usable suggestions: at least {min_suggestions} are wanted"]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        told = "; ".join(problems[:_MOST_PROBLEMS])
        raise ValueError(f"the reply cannot be used: {told}{f'; and {more} more' if more > 0 else ''}")
