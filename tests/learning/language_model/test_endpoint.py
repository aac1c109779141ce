from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.learning.language_model.endpoint import find_endpoint, make_endpoint

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
