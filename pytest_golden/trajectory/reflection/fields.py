"""Reads the fields of a reflection out of JSON of any shape. What cannot be used is left out and told as a problem."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.reflection.model import (
    Priority,
    Suggestion,
    SuggestionCategory,
    SuggestionType,
    read_confidence,
)
from pytest_golden.trajectory.reflection.reply_json import key_form
from pytest_golden.trajectory.reflection.wording import infer_category, infer_type, settle_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

MOST_SUGGESTIONS, MOST_CAUSES = 100, 50
LONGEST_ANALYSIS, LONGEST_TEXT, LONGEST_SPECIFIC = 20_000, 4_000, 20_000
_NAMES = {
    "analysis": ("analysis", "summary", "diagnosis"),
    "root_causes": ("rootcauses", "rootcause", "causes"),
    "suggestions": ("suggestions", "suggestion", "recommendations", "improvements", "changes"),
    "expected_improvement": ("expectedimprovement", "expectedimprovements", "expectedimpact"),
    "confidence": ("confidence", "confidencescore", "confidencelevel"),
    "needs_clarification": ("needsclarification", "clarificationneeded"),
    "description": ("description", "suggestion", "change", "text", "title"),
    "specific_text": ("specifictext", "newtext", "exacttext"),
    "target_section": ("targetsection", "section", "target"),
    "rationale": ("rationale", "reason", "why", "justification"),
}
_TYPE_SYNONYMS = {
    "addition": "add",
    "insert": "add",
    "include": "add",
    "append": "add",
    "change": "modify",
    "modification": "modify",
    "edit": "modify",
    "update": "modify",
    "replace": "modify",
    "rewrite": "modify",
    "rephrase": "modify",
    "delete": "remove",
    "removal": "remove",
    "drop": "remove",
    "reorganize": "restructure",
    "reorganise": "restructure",
    "reorder": "restructure",
}
_CATEGORY_SYNONYMS = {
    "clarification": "clarity",
    "constraints": "constraint",
    "examples": "example",
    "format": "structure",
    "formatting": "structure",
    "logic": "reasoning",
}
_PRIORITY_SYNONYMS = {"critical": "high", "urgent": "high", "normal": "medium", "moderate": "medium", "minor": "low"}


class FieldReader:
    """Reads one answer; `problems` are sentences about what was left out or mended."""

    def __init__(self, answer: Mapping[Any, Any]) -> None:
        self._answer = _by_form(answer)
        self.problems: list[str] = []

    def analysis(self) -> str:
        """Give the analysis; empty when there is none."""
        text = as_text(_pick(self._answer, "analysis"), LONGEST_ANALYSIS)
        if not text:
            self.problems.append("analysis is missing: text is wanted")
        return text

    def root_causes(self) -> tuple[str, ...]:
        """Give the causes, each once, in order."""
        given = _pick(self._answer, "root_causes")
        listed = given if isinstance(given, list) else [given]
        texts = (as_text(cause, LONGEST_TEXT) for cause in listed[:MOST_CAUSES])
        return tuple(dict.fromkeys(text for text in texts if text))

    def expected_improvement(self) -> str:
        """Give what is hoped for; empty when nothing is said."""
        return as_text(_pick(self._answer, "expected_improvement"), LONGEST_TEXT)

    def confidence(self) -> float | None:
        """Give the confidence that is stated; None when it is not, or makes no sense."""
        given = _pick(self._answer, "confidence")
        confidence = read_confidence(given)
        if confidence is None and isinstance(given, str):
            confidence = _read_number(given)
        if confidence is None and given is not None:
            self.problems.append(f"confidence {_show(given)} is no number from 0 to 1 and none of high, medium, low")
        return confidence

    def needs_clarification(self) -> bool:
        """Tell whether the model says that it knows too little."""
        given = _pick(self._answer, "needs_clarification")
        return given is True or (isinstance(given, str) and given.strip().lower() in {"true", "yes"})

    def suggestions(self) -> tuple[Suggestion, ...]:
        """Give the suggestions that can be used, in order."""
        given = _pick(self._answer, "suggestions")
        if not isinstance(given, list):
            self.problems.append("suggestions is missing: a list is wanted")
            given = [] if given is None else [given]
        read = (self._suggestion(number, item) for number, item in enumerate(given[:MOST_SUGGESTIONS], 1))
        return tuple(suggestion for suggestion in read if suggestion is not None)

    def _suggestion(self, number: int, given: Any) -> Suggestion | None:
        place = f"suggestion {number}"
        if isinstance(given, str) and given.strip():
            self.problems.append(f"{place} is text: an object is wanted")
            given = {"description": given}
        if not isinstance(given, dict):
            self.problems.append(f"{place} is {_show(given)}: an object is wanted")
            return None
        fields = _by_form(given)
        specific = as_text(_pick(fields, "specific_text"), LONGEST_SPECIFIC)
        description = as_text(_pick(fields, "description"), LONGEST_TEXT) or specific[:LONGEST_TEXT]
        if not description:
            self.problems.append(f"{place} has no description")
            return None
        kind = self._word(place, "type", fields.get("type"), SuggestionType, _TYPE_SYNONYMS)
        category = self._word(place, "category", fields.get("category"), SuggestionCategory, _CATEGORY_SYNONYMS)
        if kind == "" or category == "":
            return None
        priority = self._word(place, "priority", fields.get("priority"), Priority, _PRIORITY_SYNONYMS)
        return Suggestion(
            type=SuggestionType(kind or infer_type(description)),
            category=SuggestionCategory(category or infer_category(description)),
            description=description,
            rationale=as_text(_pick(fields, "rationale"), LONGEST_TEXT),
            priority=Priority(priority or "medium"),
            specific_text=specific or None,
            target_section=as_text(_pick(fields, "target_section"), LONGEST_TEXT) or None,
        )

    def _word(
        self, place: str, field: str, given: Any, words: type[StrEnum], synonyms: Mapping[str, str]
    ) -> str | None:
        """Give the word, None when there is none, and empty text for one that is not known."""
        allowed = ", ".join(words)
        if given is None:
            self.problems.append(f"{place} has no {field}: give one of {allowed}")
            return None
        word = given.strip().lower() if isinstance(given, str) else ""
        word = synonyms.get(word, word)
        if word in list(words):
            return word
        self.problems.append(f"{place} has the {field} {_show(given)}: give one of {allowed}")
        return ""


def as_text(given: Any, limit: int) -> str:
    """Give text for text, numbers, lists of them, and objects that hold a description; empty for all else."""
    if isinstance(given, str):
        return settle_text(given, limit)
    if isinstance(given, bool) or given is None:
        return ""
    if isinstance(given, (int, float)):
        return str(given)[:limit]
    if isinstance(given, list):
        return settle_text(
            "\n".join(text for text in (_item_text(item) for item in given[:MOST_CAUSES]) if text), limit
        )
    return _item_text(given)[:limit]


def _item_text(given: Any) -> str:
    if isinstance(given, dict):
        fields = _by_form(given)
        said = _pick(fields, "description") or fields.get("cause") or fields.get("summary")
        return settle_text(said, LONGEST_TEXT) if isinstance(said, str) else ""
    return settle_text(given, LONGEST_TEXT) if isinstance(given, str) else ""


def _by_form(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in mapping.items():
        fields.setdefault(key_form(key), value)
    return fields


def _pick(fields: Mapping[str, Any], name: str) -> Any:
    return next((fields[form] for form in _NAMES[name] if fields.get(form) is not None), None)


def _read_number(text: str) -> float | None:
    """Read 0.8, 80% and 80 %."""
    stripped = text.strip()
    is_percent = stripped.endswith("%")
    try:
        number = float(stripped.rstrip("% ")) / (100 if is_percent else 1)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _show(value: Any) -> str:
    shown = repr(value) if isinstance(value, (str, float, bool)) else f"of type {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
