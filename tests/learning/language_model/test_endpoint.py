from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, field_validator

from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.language_model.client import find_candidates, read_value
from pytest_golden.learning.language_model.endpoint import find_endpoint, find_message, list_replies, make_endpoint
from tests.patience import without_hanging

if TYPE_CHECKING:
    from collections.abc import Mapping


KEY = "sk-golden-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("model", "base_url", "url"),
    [
        ("openai:gpt", None, "https://api.openai.com/v1/chat/completions"),
        ("openai:gpt", "", "https://api.openai.com/v1/chat/completions"),
        ("OpenAI: gpt ", "http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
        ("openai:org/gpt:7b", "https://llm.example/api", "https://llm.example/api/chat/completions"),
        ("openai:gpt", "https://llm.example/v1/chat/completions", "https://llm.example/v1/chat/completions"),
        ("anthropic:claude", None, "https://api.anthropic.com/v1/messages"),
        ("anthropic:claude", "https://llm.example", "https://llm.example/v1/messages"),
        ("anthropic:claude", "https://llm.example/v1", "https://llm.example/v1/messages"),
        ("anthropic:claude", "https://llm.example/v1/messages/", "https://llm.example/v1/messages"),
    ],
)
def test_prompts_go_to_the_address_of_the_protocol(model: str, base_url: str | None, url: str) -> None:
    assert make_endpoint(model, base_url).url == url


def test_name_may_hold_colons() -> None:
    assert make_endpoint("openai:llama3:8b").name == "llama3:8b"


@pytest.mark.parametrize(
    "model", ["", "gpt-4", "openai", "openai:", "openai: ", "gemini:pro", ":x", "openai:a\nb", "openai:\x1b[31m"]
)
def test_model_without_provider_or_name_is_refused(model: str) -> None:
    with pytest.raises(SettingsError, match="write openai:NAME or anthropic:NAME"):
        make_endpoint(model)


@pytest.mark.parametrize(
    "url",
    [
        "llm.example/v1",
        "ftp://llm.example",
        "https://",
        "http://h:99999999/v1",
        "http://h:x/v1",
        "http://[::1/v1",
        "http://a b/",
        "http://h\u00e9/",
    ],
)
def test_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="GOLDEN_LLM_BASE_URL must be an address"):
        make_endpoint("openai:gpt", url)


@pytest.mark.parametrize(
    "url", [f"https://u:{KEY}@llm.example/v1", f"https://llm.example/v1?key={KEY}", f"https://llm.example/#{KEY}"]
)
def test_key_in_the_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match="GOLDEN_LLM_API_KEY") as caught:
        make_endpoint("openai:gpt", url)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\nx-other: 1", f"{KEY} {KEY}", f"{KEY}\u00e9", f"{KEY}\x00"])
def test_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="copy it again") as caught:
        make_endpoint("openai:gpt", None, key)
    assert KEY not in str(caught.value)


def test_blanks_around_a_key_are_no_part_of_it() -> None:
    assert make_endpoint("openai:gpt", None, f" {KEY}\n").api_key == KEY
    assert make_endpoint("openai:gpt", None, " ").api_key is None


@pytest.mark.parametrize(
    "environ", [{}, {"GOLDEN_LLM_MODEL": ""}, {"GOLDEN_LLM_MODEL": " "}, {"GOLDEN_LLM_API_KEY": KEY}]
)
def test_no_model_named_is_none(environ: Mapping[str, str]) -> None:
    assert find_endpoint(environ) is None


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_providers_own_service_without_a_key_is_refused(provider: str) -> None:
    with pytest.raises(SettingsError, match="set GOLDEN_LLM_API_KEY, or GOLDEN_LLM_BASE_URL"):
        find_endpoint({"GOLDEN_LLM_MODEL": f"{provider}:x"})


def test_model_elsewhere_needs_no_key() -> None:
    endpoint = find_endpoint({"GOLDEN_LLM_MODEL": "openai:x", "GOLDEN_LLM_BASE_URL": "http://localhost:11434/v1"})
    assert endpoint is not None
    assert endpoint.api_key is None
    assert not endpoint.bares_its_key


def test_refused_setting_names_its_variable() -> None:
    with pytest.raises(SettingsError, match="GOLDEN_LLM_MODEL 'gpt'"):
        find_endpoint({"GOLDEN_LLM_MODEL": "gpt"})


def test_key_that_goes_unencrypted_is_known() -> None:
    assert make_endpoint("openai:x", "http://llm.example/v1", KEY).bares_its_key
    assert not make_endpoint("openai:x", "https://llm.example/v1", KEY).bares_its_key
    assert not make_endpoint("openai:x", "http://[::1]:8000/v1", KEY).bares_its_key


def test_no_representation_shows_the_key() -> None:
    endpoint = make_endpoint("openai:x", None, KEY)
    assert KEY not in f"{endpoint} {endpoint!r}"
    assert str(endpoint) == "openai:x at https://api.openai.com/v1"


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
        ([], "not a JSON object"),
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
