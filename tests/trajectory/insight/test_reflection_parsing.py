from __future__ import annotations

import contextlib
import json
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pytest_golden.trajectory.insight.reflection import Reflection, Suggestion
from pytest_golden.trajectory.insight.reflection_parsing import (
    find_hope,
    first_paragraph,
    infer_category,
    infer_type,
    list_causes,
    list_suggestions,
    parse_reflection,
    settle_text,
)
from tests.patience import without_hanging
from tests.trajectory.insight.replies import ANSWER, REPLY, SUGGESTION, answer, suggesting

EXPECTED = Reflection(
    analysis=ANSWER["analysis"],
    root_causes=tuple(ANSWER["root_causes"]),
    suggestions=(Suggestion(**SUGGESTION),),
    expected_improvement=ANSWER["expected_improvement"],
    confidence=0.8,
)


class Answered(BaseModel):
    """What a library for structured output gives."""

    analysis: str
    suggestions: list[dict[str, Any]]


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        REPLY.encode(),
        bytearray(REPLY.encode()),
        ANSWER,
        MappingProxyType(ANSWER),
        f"\ufeff  {REPLY}\n",
        f"```json\n{json.dumps(ANSWER, indent=2)}\n```",
        f"Here is what I found:\n\n~~~\n{REPLY}\n~~~\nI hope it helps.",
        f"```json\n{REPLY}",
        f"```\n{{not json}}\n```\n```json\n{REPLY}\n```",
        f"Sure! {REPLY} That is all.",
        f"In {{braces}} it is {{}}: ```{REPLY}```",
        json.dumps(REPLY),
        {"reflection": ANSWER},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": REPLY}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": REPLY}]},
        json.dumps({"result": {"output": ANSWER}}),
        json.dumps({"response": REPLY}),
        SimpleNamespace(text=REPLY),
        {"Analysis": ANSWER["analysis"], "rootCauses": ANSWER["root_causes"], "Suggestions": [{**SUGGESTION}],
         "expected improvement": ANSWER["expected_improvement"], "CONFIDENCE": "80%", "needs-clarification": "no"},
    ],
)  # fmt: skip
def test_shapes_that_models_give_are_read(reply: object) -> None:
    assert parse_reflection(reply) == EXPECTED


@pytest.mark.parametrize("reply", [REPLY, ANSWER, REPLY.encode(), f"Sure:\n```json\n{REPLY}\n```"])
def test_strict_takes_json_and_one_fence(reply: object) -> None:
    assert parse_reflection(reply, strict=True) == EXPECTED


def test_object_of_a_library_is_read_by_its_fields() -> None:
    read = parse_reflection(Answered(analysis="It broke.", suggestions=[SUGGESTION]))
    assert (read.analysis, read.suggestions) == ("It broke.", (Suggestion(**SUGGESTION),))


def test_list_of_suggestions_is_a_reflection_without_analysis() -> None:
    read = parse_reflection(json.dumps([SUGGESTION]))
    assert (read.analysis, read.suggestions, read.needs_clarification) == ("", (Suggestion(**SUGGESTION),), True)


@pytest.mark.parametrize(
    ("given", "confidence"),
    [("high", 0.9), ("Medium", 0.6), ("0.4", 0.4), ("75 %", 0.75), (1, 1.0), (0, 0.0)],
)
def test_stated_confidence_is_kept(given: object, confidence: float) -> None:
    read = parse_reflection(answer(confidence=given))
    assert read.confidence == pytest.approx(confidence)
    assert read.needs_clarification == (confidence < 0.5)


@pytest.mark.parametrize("given", [None, float("nan"), float("inf"), -1, 7, "NaN", "certain", "400%", [1], True, {}])
def test_confidence_that_makes_no_sense_is_rated_instead(given: object) -> None:
    assert parse_reflection(answer(confidence=given)).confidence == 0.8
    thin = parse_reflection({"analysis": "hm", "suggestions": ["Add an example."], "confidence": given})
    assert thin.confidence < 0.5


def test_nan_in_json_is_no_confidence() -> None:
    assert parse_reflection(REPLY.replace("0.8", "NaN")).confidence == 0.8
    assert parse_reflection(REPLY.replace("0.8", "1e999")).confidence == 0.8


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"type": "ADD "}, ("add", "constraint", "high")),
        ({"type": "insert", "category": "examples", "priority": "critical"}, ("add", "example", "high")),
        ({"type": None, "category": None, "priority": None}, ("modify", "clarity", "medium")),
        ({"priority": 3}, ("add", "constraint", "medium")),
    ],
)
def test_words_are_read_with_tolerance(changes: dict[str, Any], read: tuple[str, ...]) -> None:
    (suggestion,) = parse_reflection(suggesting(**changes)).suggestions
    assert (suggestion.type, suggestion.category, suggestion.priority) == read


@pytest.mark.parametrize(
    "wrong",
    [{"type": "invalid_type"}, {"category": 7}, {"description": None, "specific_text": None}, {"description": []}],
)
def test_suggestion_that_cannot_be_used_is_left_out(wrong: dict[str, Any]) -> None:
    given: list[Any] = [{**SUGGESTION, "specific_text": None, **wrong}, SUGGESTION, None, 3, "", []]
    assert parse_reflection(answer(suggestions=given)).suggestions == (Suggestion(**SUGGESTION),)


def test_suggestions_as_text_or_as_one_object_are_read() -> None:
    texts = ["Add an example of a join.", "Remove the second section.", "Restructure it.", "Think step by step."]
    read = parse_reflection(answer(suggestions=texts)).suggestions
    assert [(one.type, one.category) for one in read] == [
        ("add", "example"),
        ("remove", "structure"),
        ("restructure", "structure"),
        ("modify", "reasoning"),
    ]
    assert parse_reflection(answer(suggestions=SUGGESTION)).suggestions == (Suggestion(**SUGGESTION),)
    assert parse_reflection(suggesting(description=None)).suggestions[0].description == SUGGESTION["specific_text"]


def test_fields_of_other_types_are_made_text_or_left_out() -> None:
    read = parse_reflection(
        {
            "analysis": ["One.", {"text": "Two."}, 3, None],
            "root_causes": [{"cause": "a"}, {"description": "b"}, "b", 5, {}, [], True],
            "suggestions": {"not": "a list"},
            "expected_improvement": {"summary": "better"},
            "needs_clarification": "yes",
        }
    )
    assert (read.analysis, read.root_causes, read.suggestions) == ("One.\nTwo.", ("a", "b", "5"), ())
    assert (read.expected_improvement, read.needs_clarification) == ("better", True)
    assert parse_reflection(answer(root_causes="one")).root_causes == ("one",)


@pytest.mark.parametrize(
    "changes",
    [{"needs_clarification": True}, {"analysis": None}, {"suggestions": []}, {"confidence": 0.2}],
)
def test_thin_answer_needs_clarification(changes: dict[str, Any]) -> None:
    assert parse_reflection(answer(**changes)).needs_clarification


def test_fenced_example_in_prose_is_not_the_answer() -> None:
    example = '```json\n{"path": "a"}\n```\n```json\n["a", "b"]\n```'
    (suggestion,) = parse_reflection(f"You should add an example:\n{example}\n").suggestions
    assert suggestion.description == "You should add an example:"
    assert parse_reflection(f"{example}\n```json\n{REPLY}\n```\n") == EXPECTED
    listed = parse_reflection(f"These:\n```json\n{json.dumps([SUGGESTION])}\n```")
    assert listed.suggestions == (Suggestion(**SUGGESTION),)


@pytest.mark.parametrize("reply", [{"response": "You should add it."}, json.dumps({"message": "You should add it."})])
def test_prose_in_a_wrapper_is_prose(reply: object) -> None:
    (suggestion,) = parse_reflection(reply).suggestions
    assert (suggestion.type, suggestion.description) == ("add", "You should add it.")


def test_number_of_suggestions_that_is_wanted_decides_too() -> None:
    assert parse_reflection(REPLY, min_suggestions=2).needs_clarification
    assert not parse_reflection(answer(suggestions=[]), min_suggestions=0).needs_clarification


def test_prose_is_read_for_orders_and_causes() -> None:
    read = parse_reflection(
        "The run failed because the join key was unknown.\n\n"
        "## What to do\n"
        "1. **Add** the key of each table to the prompt.\n"
        "- You should remove the second example. Nothing else is wrong.\n"
        "With this the join will fail less and results improve.\n"
        "All in all it will prevent such failures.\n"
    )
    assert read.analysis == "The run failed because the join key was unknown."
    assert read.root_causes == ("The run failed because the join key was unknown.",)
    assert [(one.type, one.description) for one in read.suggestions] == [
        ("add", "Add the key of each table to the prompt."),
        ("remove", "You should remove the second example."),
    ]
    assert read.expected_improvement == "All in all it will prevent such failures."
    assert (read.confidence, read.needs_clarification) == (0.3, True)


@pytest.mark.parametrize(
    "reply",
    [
        "This text has nothing to act on.",
        "",
        " \n",
        "# Title\n\n```",
        "null",
        "3",
        None,
        3,
        [],
        {},
        b"\xff\xfe",
        object(),
    ],
)
def test_reply_without_anything_to_act_on_gives_no_suggestion(reply: object) -> None:
    read = parse_reflection(reply)
    assert (read.suggestions, read.needs_clarification) == ((), True)
    assert read.confidence <= 0.1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("You should add more.", "the reply is not one JSON object: answer with the object alone"),
        (f"Sure! {REPLY}", "the reply is not one JSON object"),
        ("", "the reply is not one JSON object"),
        (None, "the reply is not one JSON object"),
        ("[" * 100_000, "the reply is not one JSON object"),
        (json.dumps([SUGGESTION]), "the reply is not one JSON object"),
        (" " * 2_000_000, "the reply has 2,000,000 characters: at most 1,000,000 are read"),
        ({"foo": 1}, "analysis is missing: text is expected; suggestions is missing: a list is expected"),
        (answer(suggestions=[]), "there are 0 usable suggestions: at least 1 are expected"),
        (
            suggesting(type="enhance"),
            "suggestion 1 has the type 'enhance': give one of add, modify, remove, restructure",
        ),
        (suggesting(category=None), "suggestion 1 has no category: give one of clarity"),
        (suggesting(priority="dire"), "suggestion 1 has the priority 'dire'"),
        (suggesting(priority=["x"]), "suggestion 1 has the priority of type list"),
        (answer(suggestions=["Add it."]), "suggestion 1 is text: an object is expected"),
        (answer(suggestions=[3]), "suggestion 1 is of type int: an object is expected"),
        (suggesting(description="", specific_text=""), "suggestion 1 has no description"),
        (answer(confidence=float("nan")), "confidence 'NaN' is not a number from 0 to 1"),
        (answer(confidence="x" * 500), "confidence 'xxxx"),
        (answer(suggestions=[None] * 9), "; and 5 more"),
    ],
)
def test_strict_says_what_is_wrong(reply: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[")) as refusal:
        parse_reflection(reply, strict=True)
    assert len(str(refusal.value)) < 1_500


NESTED: dict[str, Any] = {}
NESTED["analysis"] = NESTED["suggestions"] = NESTED["result"] = [NESTED]
WRAPPED: dict[str, Any] = {}
WRAPPED["result"] = WRAPPED


@pytest.mark.parametrize(
    "reply",
    [
        "x" * 10_000_000,
        "{" * 10_000_000,
        '{"a":' * 2_000_000,
        "[" * 10_000_000,
        "```\n" * 2_500_000,
        "\n".join("`" * length for length in range(3, 1_400)),
        '{"analysis": "' + "x" * 10_000_000,
        json.dumps({**ANSWER, "analysis": "y" * 10_000_000}),
        {**ANSWER, "analysis": "y" * 10_000_000, "root_causes": ["z"] * 1_000_000, "suggestions": [SUGGESTION] * 1_000_000},
        "You should add it. " * 500_000,
        "add " * 2_500_000,
        '{"analysis": ' + "9" * 10_000 + "}",
        '{"analysis": "\\ud800\\u0000", "suggestions": ["Add \\udfff."]}',
        {"result": {"result": {"result": {"result": {"result": {"result": {"result": "x"}}}}}}},
        [[[[[]]]]],
        NESTED,
        WRAPPED,
        Hostile(),
        {Hostile(): "a", "analysis": {Hostile(): Hostile()}},
        {"suggestions": [Hostile()], "analysis": Hostile(), "confidence": Hostile()},
        {3: 4, None: [], ("a",): "b"},
    ],
    ids=range(21),
)  # fmt: skip
def test_hostile_reply_gives_a_bounded_reflection_in_little_time(reply: object) -> None:
    with without_hanging():
        read = parse_reflection(reply)
    text = json.dumps(read.to_dict(), allow_nan=False, ensure_ascii=False)
    assert len(text) < 2_000_000
    text.encode("utf-8")
    assert 0 <= read.confidence <= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*ANSWER, *SUGGESTION, "result", "content"]) | st.text(max_size=5), inner, max_size=6
        )
    ),
)


@given(JSON | st.text() | st.binary())
def test_parsing_never_raises(reply: object) -> None:
    for given_form in (reply, json.dumps(reply, default=str)):
        read = parse_reflection(given_form)
        json.dumps(read.to_dict(), allow_nan=False)
        with contextlib.suppress(ValueError):
            assert parse_reflection(given_form, strict=True).suggestions


@given(st.builds(suggesting, description=st.text(max_size=30), rationale=st.none() | JSON))
def test_what_was_read_can_be_read_again(reply: dict[str, Any]) -> None:
    read = parse_reflection(reply)
    assert parse_reflection(read.to_dict()) == read
    assert parse_reflection(json.dumps(read.to_dict())) == read


@pytest.mark.parametrize(
    ("text", "kind", "category"),
    [
        ("Include a sample of each table", "add", "example"),
        ("Delete the limits on time", "remove", "constraint"),
        ("Split the prompt into sections", "restructure", "structure"),
        ("Explain how to verify a result", "modify", "reasoning"),
        ("Be plain", "modify", "clarity"),
        ("Use the address, not the paddle", "modify", "clarity"),
    ],
)
def test_type_and_category_follow_whole_words(text: str, kind: str, category: str) -> None:
    assert (infer_type(text), infer_category(text)) == (kind, category)


@pytest.mark.parametrize(
    "text",
    [
        "Add constraints.",
        "Please consider adding examples.",
        "The prompt should clearly state the key.",
        "2) Use JSON.",
    ],
)
def test_orders_and_recommendations_are_suggestions(text: str) -> None:
    assert len(list_suggestions(text)) == 1


@pytest.mark.parametrize("text", ["The address is wrong.", "It added a row.", "# Add it", "This should be fine."])
def test_other_sentences_are_none(text: str) -> None:
    assert list_suggestions(text) == ()


def test_the_same_sentence_is_one_suggestion_and_many_are_bounded() -> None:
    assert len(list_suggestions("Add it.\n- Add it.\n")) == 1
    assert len(list_suggestions("\n".join(f"Add {number}." for number in range(500)))) == 20
    assert len(list_causes("\n".join(f"Because of {number}." for number in range(500)))) == 20


def test_first_paragraph_is_no_heading() -> None:
    assert first_paragraph("# Title\n\n\nBody\nmore\n\nlast") == "Body\nmore"
    assert first_paragraph("\n\n") == find_hope("") == ""


@given(st.text())
def test_settled_text_can_be_sent(text: str) -> None:
    settled = settle_text(text, 10)
    settled.encode("utf-8")
    assert len(settled) <= 10
    assert settled == settle_text(settled, 10)
