from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.reflection import Reflection, Suggestion, aggregate_reflections, normal_form


def suggestion(description: str = "Name the key.", **changes: Any) -> Suggestion:
    return Suggestion(**{"type": "add", "category": "clarity", "description": description, **changes})


def reflection(*suggestions: Suggestion, confidence: float = 1.0) -> Reflection:
    return Reflection(analysis="x", suggestions=suggestions, confidence=confidence)


SUGGESTIONS = st.builds(
    suggestion,
    st.sampled_from(["Name the key.", "name  the KEY", "Add an example", "!"]),
    type=st.sampled_from(["add", "remove"]),
    category=st.sampled_from(["clarity", "example"]),
    priority=st.sampled_from(["low", "medium", "high"]),
    rationale=st.sampled_from(["", "because", "as it is"]),
    specific_text=st.none() | st.sampled_from(["a", "b"]),
)
REFLECTIONS = st.builds(
    Reflection, suggestions=st.lists(SUGGESTIONS, max_size=4).map(tuple), confidence=st.floats(0, 1)
)


def test_the_same_words_are_one_suggestion() -> None:
    merged = aggregate_reflections(
        [
            reflection(suggestion("Name the key."), suggestion("Add an example")),
            reflection(suggestion("  name the KEY! ", priority="high", specific_text="on customer_id")),
            reflection(suggestion("\uff2eame the key")),
        ]
    )
    first, second = merged.suggestions
    assert (first.suggestion.specific_text, first.frequency) == ("on customer_id", 3)
    assert first.weight == pytest.approx((2 / 3 + 1 + 2 / 3) / 3)
    assert (second.suggestion.description, second.frequency) == ("Add an example", 1)
    assert merged.deduplication_rate == 0.5


def test_opposite_suggestions_in_the_same_words_stay_two() -> None:
    merged = aggregate_reflections([reflection(suggestion(), suggestion(type="remove"))])
    assert (len(merged.suggestions), merged.deduplication_rate) == (2, 0.0)


def test_confidence_frequency_and_priority_weigh() -> None:
    sure, unsure = reflection(suggestion("a"), confidence=0.9), reflection(suggestion("b"), confidence=0.1)
    assert [one.suggestion.description for one in aggregate_reflections([unsure, sure]).suggestions] == ["a", "b"]
    often = aggregate_reflections(
        [reflection(suggestion("a")), reflection(suggestion("b")), reflection(suggestion("b"))]
    )
    assert [(one.suggestion.description, one.frequency) for one in often.suggestions] == [("b", 2), ("a", 1)]
    ranked = aggregate_reflections([reflection(suggestion("a", priority="low"), suggestion("b", priority="high"))])
    assert [one.suggestion.description for one in ranked.suggestions] == ["b", "a"]


def test_reflection_that_says_it_twice_counts_once() -> None:
    (one,) = aggregate_reflections(
        [reflection(suggestion("a", priority="low"), suggestion("A", priority="high"))]
    ).suggestions
    assert (one.frequency, one.weight, one.suggestion.priority) == (1, 1.0, "high")


def test_nothing_gives_nothing() -> None:
    for reflections in ([], [reflection()]):
        merged = aggregate_reflections(reflections)
        assert (merged.suggestions, merged.deduplication_rate) == ((), 0.0)


def test_marks_alone_are_words_too() -> None:
    assert (normal_form("!"), normal_form(" A-b "), normal_form("\u00c4")) == ("!", "a b", "\u00e4")


@given(st.lists(REFLECTIONS, max_size=6), st.randoms())
def test_order_of_the_reflections_does_not_matter(reflections: list[Reflection], random: Any) -> None:
    merged = aggregate_reflections(reflections)
    assert aggregate_reflections(random.sample(reflections, len(reflections))) == merged
    given_count = sum(len(one.suggestions) for one in reflections)
    assert 0 <= merged.deduplication_rate < 1
    assert len(merged.suggestions) <= given_count
    assert all(0 <= one.weight <= 1 and 1 <= one.frequency <= len(reflections) for one in merged.suggestions)
    json.dumps(merged.to_dict(), allow_nan=False)


@given(st.lists(REFLECTIONS, min_size=1, max_size=4))
def test_saying_it_all_again_changes_no_weight(reflections: list[Reflection]) -> None:
    once, twice = aggregate_reflections(reflections), aggregate_reflections([*reflections, *reflections])
    assert [one.suggestion for one in twice.suggestions] == [one.suggestion for one in once.suggestions]
    assert [one.frequency for one in twice.suggestions] == [2 * one.frequency for one in once.suggestions]
