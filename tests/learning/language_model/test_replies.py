from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, field_validator

from pytest_golden.errors import LanguageModelError
from pytest_golden.learning.language_model.client import find_candidates, read_value
from pytest_golden.learning.language_model.endpoint import find_message, list_replies
from tests.patience import without_hanging

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=10,
)
_PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='{[`~<"'), max_size=60)


class Lesson(BaseModel):
    lesson: str
    why: str = ""


VALUE = Lesson(lesson="cast the key", why="types differ")
PLAIN = VALUE.model_dump_json()


def read(*replies: object, schema: Any = Lesson) -> Any:
    return read_value(replies, TypeAdapter(schema))


@given(st.dictionaries(_TEXT, _JSON, min_size=1), _PROSE, _PROSE)
@example({"": "</think>"}, "", "")
@example({"a": "</think>{}", "b": ["</think>"]}, "Here: ", " Good?")
def test_object_is_found_whatever_stands_around_it(value: dict[str, Any], before: str, after: str) -> None:
    plain = json.dumps(value)
    for reply in (
        value,
        plain,
        json.dumps(value, ensure_ascii=False, indent=2),
        f"{before}{plain}{after}",
        f"{before}\n```json\n{plain}\n```\n{after}",
        f"{before}\n~~~~\n{plain}",
        f"<think>maybe {{}}</think>{plain}",
        json.dumps(plain),
        json.dumps({"result": plain}),
        json.dumps([value]),
    ):
        assert value in list(find_candidates(reply))


@given(_TEXT | st.binary() | _JSON)
def test_any_reply_gives_a_value_or_the_one_error(reply: object) -> None:
    with suppress(LanguageModelError):
        assert isinstance(read(reply), Lesson)


@pytest.mark.parametrize(
    "reply",
    [
        PLAIN,
        VALUE,
        VALUE.model_dump(),
        f"Sure! Here it is:\n```json\n{PLAIN}\n```\nAnything else?",
        f"```\n{PLAIN}\n```",
        f"```json {PLAIN} ```",
        f"  ```JSON\n  {PLAIN}\n  ```",
        f"```json\n{PLAIN}",
        f"The answer is {PLAIN}. I hope it helps {{you}}.",
        f'Not {{"x": 1}} but {PLAIN}',
        f'```json\n{{"x": 1}}\n```\nor rather\n```json\n{PLAIN}\n```',
        f'<think>It could be {{"lesson": "no"}}.</think>\n{PLAIN}',
        f"\ufeff{PLAIN}",
        "{'lesson': 'cast the key', 'why': 'types differ'}",
        "```python\n{'lesson': 'cast the key', 'why': 'types differ'}\n```",
        json.dumps({"answer": VALUE.model_dump()}),
        json.dumps({"arguments": PLAIN}),
        json.dumps([VALUE.model_dump(), {"lesson": "second"}]),
    ],
)
def test_shapes_that_models_give_are_read(reply: object) -> None:
    assert read(reply) == VALUE


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("{'a': None, 'b': [True, False,], }", {"a": None, "b": [True, False]}),
        (r"""{'a': 'it\'s "so"', "b": "don't, ]"}""", {"a": 'it\'s "so"', "b": "don't, ]"}),
        (r"{'a': 'tab\t\u00e9 \\'}", {"a": "tab\t\u00e9 \\"}),
        ('{"a": "None, ]",}', {"a": "None, ]"}),
    ],
)
def test_what_is_nearly_json_is_read(reply: str, value: object) -> None:
    assert read(reply, schema=dict[str, Any]) == value


def test_first_value_that_fits_is_taken() -> None:
    assert read(f'{{"a": 1}} {PLAIN} {{"lesson": "other"}}') == VALUE
    assert read("nothing here", PLAIN) == VALUE


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "<think>maybe {{'lesson': 'no'}}</think>{}",
        'hm, {{"lesson": "no </think>"}}?</think> So: {}.',
        "```json\n{}\n```\nAnd no </ think>",
        "<think>\n```json\n{{}}\n```\n</think>\n```\n{}\n```",
    ],
)
@pytest.mark.parametrize("told", ['{"lesson": "mind </think> tags"}', '{"lesson": "mind </think> tags", "why": ""}'])
def test_closing_thought_inside_of_json_is_text(around: str, told: str) -> None:
    assert read(around.format(told)) == Lesson(lesson="mind </think> tags")


def test_what_was_only_thought_is_no_value() -> None:
    with pytest.raises(LanguageModelError):
        read('<think>It could be {"lesson": "no"}.</think> I do not know.')
    assert read('<think>It could be {"lesson": "no"}.</think> Cast the key.', schema=str) == "Cast the key."


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " ",
        "no",
        "{",
        PLAIN[:-1],
        "{'lesson': open('x')}",
        '{"lesson": NaN}',
        "[]",
        None,
        7,
        "{'lesson': {1, 2}}",
        "[" * 200_000,
        "{" * 200_000,
        '{"a":' * 100_000,
        "{'a': " * 300,
    ],
    ids=range(15),
)
def test_what_does_not_fit_is_the_one_error(reply: object) -> None:
    with pytest.raises(LanguageModelError, match="does not fit the schema"):
        read(reply)


def test_error_names_fields_and_quotes_nothing() -> None:
    with pytest.raises(LanguageModelError) as caught:
        read('{"lesson": 7, "why": ["hunter22"]}')
    assert "lesson: string_type" in str(caught.value)
    assert "hunter22" not in str(caught.value)


def test_plain_text_is_a_value_where_text_is_wanted() -> None:
    assert read(" Cast the key. ", schema=str) == "Cast the key."
    assert read('"Cast the key."', schema=str) == "Cast the key."


def test_validator_that_raises_anything_is_the_one_error() -> None:
    class Touchy(BaseModel):
        lesson: str

        @field_validator("lesson")
        @classmethod
        def break_down(cls, value: str) -> str:
            raise RuntimeError(value)

    with pytest.raises(LanguageModelError, match="RuntimeError in a validator"):
        read(PLAIN, schema=Touchy)


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "[",
        '{"a": ',
        "```\n",
        "{'a': ",
        "</think>",
        "{}</think>",
        '"',
        "[{",
        " ",
        "\n",
        "{'\\'",
        '[\\"',
        "{,",
        "`",
        "~",
    ],
)
def test_reply_of_any_length_takes_bounded_time(unit: str) -> None:
    with without_hanging(), pytest.raises(LanguageModelError):
        read(unit * (1_000_000 // len(unit)))


CALL = {"function": {"name": "answer", "arguments": PLAIN}}


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"content": PLAIN}}]},
        {"choices": [{"message": {"content": VALUE.model_dump()}}]},
        {
            "choices": [
                {"message": {"content": [{"type": "text", "text": PLAIN[:10]}, {"type": "text", "text": PLAIN[10:]}]}}
            ]
        },
        {"choices": [{"message": {"content": [PLAIN]}}]},
        {"choices": [{"message": {"content": "I call it.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"arguments": VALUE.model_dump()}}]}}]},
        {"choices": [{"message": {"content": None, "function_call": CALL["function"]}}]},
        {"choices": [{"message": {"content": "", "parsed": VALUE.model_dump()}}]},
        {"choices": [{"text": PLAIN}]},
        {
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": PLAIN}],
            "stop_reason": "end_turn",
        },
        {"content": [{"type": "text", "text": "I call it."}, {"type": "tool_use", "input": VALUE.model_dump()}]},
        {"content": PLAIN},
    ],
    ids=range(12),
)
def test_answers_of_both_protocols_are_read(answer: object) -> None:
    assert read(*list_replies(answer)) == VALUE


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([], "no JSON object"),
        ({}, "no reply"),
        ({"choices": [None]}, "no reply"),
        ({"choices": [{"message": {"content": None, "tool_calls": "x", "refusal": "no"}}]}, "no reply"),
        ({"choices": [{"message": {"content": PLAIN}, "finish_reason": "length"}]}, "cut off"),
        ({"content": [{"type": "text", "text": PLAIN}], "stop_reason": "max_tokens"}, "cut off"),
        ({"choices": [{"message": {"content": PLAIN}, "finish_reason": "content_filter"}]}, "refused"),
        ({"content": [{"type": "image"}], "stop_reason": "end_turn"}, "no reply"),
        ({"error": {"message": "over\nloaded"}}, "over loaded"),
        ({"error": {"type": "busy"}}, "busy"),
        ({"type": "error", "error": "overloaded"}, "overloaded"),
        ({"error": {"code": 1}}, "no message"),
    ],
)
def test_answer_without_a_whole_reply_says_why(answer: object, told: str) -> None:
    with pytest.raises(LanguageModelError, match=told):
        list_replies(answer)


def test_message_of_a_provider_is_one_short_line() -> None:
    assert len(find_message("x\n" * 10_000)) <= 200
    assert "\n" not in find_message({"error": {"message": "a\nb"}})
    assert find_message({"error": {"message": "\x1b[2Jgone\x07 \u202eback"}}).isprintable()
