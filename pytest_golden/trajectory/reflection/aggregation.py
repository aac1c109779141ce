"""Many reflections as one list of suggestions, each once, the weightiest first. Pure; the order of reflections is no matter.

Two suggestions are the same when they do the same (`type`) in the same words: case, marks and blanks do not count.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.reflection.model import Priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.trajectory.reflection.model import Reflection, Suggestion

_PRIORITY_WEIGHTS = {Priority.HIGH: 1.0, Priority.MEDIUM: 2 / 3, Priority.LOW: 1 / 3}


@dataclass(frozen=True, slots=True)
class AggregatedSuggestion:
    """A suggestion, how many reflections made it, and its weight from 0 to 1.

    The weight is the sum over these reflections of confidence times priority (high 1, medium 2/3, low 1/3), divided by the
    number of all reflections. Of several wordings the one of highest priority, then the most specific one is kept.
    """

    suggestion: Suggestion
    frequency: int
    weight: float


@dataclass(frozen=True, slots=True)
class AggregatedReflections:
    """The suggestions of many reflections, weightiest first.

    `deduplication_rate` is the share of the given suggestions that were the same as another one; 0.0 for none given.
    """

    suggestions: tuple[AggregatedSuggestion, ...] = ()
    deduplication_rate: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Give the same under the same names, JSON-safe."""
        form: dict[str, Any] = json_form(self)
        return form


def aggregate_reflections(reflections: Iterable[Reflection]) -> AggregatedReflections:
    """Put the suggestions of many reflections together; one that a reflection makes twice counts once for it."""
    wordings: dict[tuple[str, str], list[Suggestion]] = {}
    shares: dict[tuple[str, str], list[float]] = {}
    total, given = 0, 0
    for reflection in reflections:
        total += 1
        best: dict[tuple[str, str], float] = {}
        for suggestion in reflection.suggestions:
            given += 1
            key = (suggestion.type.value, normal_form(suggestion.description))
            wordings.setdefault(key, []).append(suggestion)
            best[key] = max(best.get(key, 0.0), reflection.confidence * _PRIORITY_WEIGHTS[suggestion.priority])
        for key, share in best.items():
            shares.setdefault(key, []).append(share)
    merged = [
        AggregatedSuggestion(max(wordings[key], key=_rank), len(each), math.fsum(each) / total)
        for key, each in shares.items()
    ]
    merged.sort(key=lambda one: (-one.weight, -one.frequency, _rank(one.suggestion)))
    return AggregatedReflections(tuple(merged), 1 - len(merged) / given if given else 0.0)


def normal_form(text: str) -> str:
    """Give the words of a text without case, marks and blanks; a text of marks alone as it is."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(character if character.isalnum() else " " for character in folded).split()
    return " ".join(words) if words else folded.strip()


def _rank(suggestion: Suggestion) -> tuple[Any, ...]:
    """Order wordings of one suggestion so that the last is the best; no two different ones are equal."""
    return (
        suggestion.priority.rank,
        suggestion.specific_text is not None,
        len(suggestion.rationale),
        suggestion.description,
        suggestion.rationale,
        suggestion.specific_text or "",
        suggestion.target_section or "",
        suggestion.category.value,
        suggestion.type.value,
    )
