from __future__ import annotations

import json
from typing import Any

import pytest

import pytest_golden
from pytest_golden.trajectory.insight.analysis import analyze_trajectory
from pytest_golden.trajectory.insight.reflection import (
    Priority,
    Reflection,
    Suggestion,
    build_reflection_request,
    reflection_prompt,
)
from tests.trajectory.analysis.runs import failed_odibi_run

ANALYSIS = analyze_trajectory(failed_odibi_run())


def suggestion(**changes: Any) -> Suggestion:
    return Suggestion(**{"type": "add", "category": "clarity", "description": "Name the key.", **changes})


def test_words_may_be_plain_and_equal_them() -> None:
    made = suggestion(priority="high")
    assert (made.type, made.category, made.priority, made.priority.rank) == ("add", "clarity", "high", 2)
    assert (suggestion().priority, suggestion().specific_text, suggestion().rationale) == (Priority.MEDIUM, None, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "enhance"}, "type 'enhance' is unknown: give one of add, modify, remove, restructure"),
        (
            {"category": "style"},
            "category 'style' is unknown: give one of clarity, constraint, example, structure, reasoning",
        ),
        ({"priority": "dire"}, "priority 'dire' is unknown"),
        ({"description": " "}, "description must be text that is not blank"),
    ],
)
def test_wrong_suggestion_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        suggestion(**changes)


@pytest.mark.parametrize(("given", "confidence"), [("high", 0.9), (" Low ", 0.3), (1, 1.0), (0.25, 0.25)])
def test_confidence_is_a_number_or_a_word(given: Any, confidence: float) -> None:
    assert Reflection(confidence=given).confidence == confidence


@pytest.mark.parametrize("given", [float("nan"), 1.5, -1, "certain", None, True])
def test_other_confidence_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="confidence must be a number from 0 to 1"):
        Reflection(confidence=given)


def test_sequences_become_tuples_and_all_is_json_safe() -> None:
    causes: Any = ["no key"]
    made: Any = [suggestion()]
    reflection = Reflection(root_causes=causes, suggestions=made)
    assert (reflection.root_causes, reflection.suggestions) == (("no key",), (suggestion(),))
    form = json.loads(json.dumps(reflection.to_dict(), allow_nan=False))
    assert form["suggestions"][0]["type"] == "add"


def test_request_keeps_what_is_asked() -> None:
    request = build_reflection_request(
        ANALYSIS,
        original_prompt="Load the orders.",
        task_description="Nightly load",
        detail="brief",
        focus_areas=["clarity"],
    )
    assert (request.analysis, request.original_prompt, request.detail) == (ANALYSIS, "Load the orders.", "brief")
    assert (request.task_description, request.focus_areas) == ("Nightly load", ("clarity",))
    json.dumps(request.to_dict(), allow_nan=False)
    json.dumps(reflection_prompt(request).to_dict())
    assert build_reflection_request(ANALYSIS, original_prompt="x", focus_areas="one").focus_areas == ("one",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"original_prompt": ""}, "original_prompt must be text"),
        ({"original_prompt": None}, "original_prompt must be text"),
        ({"task_description": 3}, "task_description must be text"),
        ({"detail": "long"}, "detail 'long' is unknown"),
        ({"focus_areas": [""]}, "focus_areas must be text"),
        ({"analysis": failed_odibi_run()}, "analysis must be what analyze_trajectory gives, not a Trajectory"),
    ],
)
def test_wrong_request_is_refused(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"analysis": ANALYSIS, "original_prompt": "x", **changes}
    with pytest.raises(ValueError, match=message):
        build_reflection_request(given.pop("analysis"), **given)


def test_names_are_public() -> None:
    assert pytest_golden.Suggestion is Suggestion
    assert pytest_golden.reflection_prompt is reflection_prompt
