from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.doctor import State, examine_model

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Golden

KEY = "sk-golden-0123456789abcdefghij"
ELSEWHERE = {"GOLDEN_LLM_MODEL": "openai:llama3", "GOLDEN_LLM_BASE_URL": "http://localhost:11434/v1"}


def test_nothing_is_said_where_no_model_is_named() -> None:
    assert list(examine_model({"GOLDEN_LLM_API_KEY": KEY})) == []


def test_model_is_named_with_its_address_and_without_its_key() -> None:
    [found] = examine_model({"GOLDEN_LLM_MODEL": "anthropic:claude", "GOLDEN_LLM_API_KEY": KEY})
    assert found.state is State.GOOD
    assert found.told == "anthropic:claude at https://api.anthropic.com, with a key; not called now"
    [found] = examine_model(ELSEWHERE)
    assert found.told == "openai:llama3 at http://localhost:11434/v1, no key; not called now"


def test_key_that_goes_unencrypted_is_told() -> None:
    environ = {**ELSEWHERE, "GOLDEN_LLM_BASE_URL": "http://llm.example/v1", "GOLDEN_LLM_API_KEY": KEY}
    [found] = examine_model(environ)
    assert found.state is State.LIMITED
    assert "unencrypted" in found.told
    assert KEY not in f"{found}"


def test_wrong_setting_is_told_and_stops_no_gate(
    golden: Golden, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_LLM_MODEL", "gpt-4")
    ran = golden("doctor", "--json")
    [found] = [finding for finding in ran.json["findings"] if finding["subject"] == "model"]
    assert found["state"] == "limited"
    assert "write openai:NAME or anthropic:NAME" in found["told"]
    assert ran.json["can_run"] is True
