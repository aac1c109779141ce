from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.mcp.tool_answers import MOST_BYTES, MOST_TEXT_BYTES, make_answer, make_visible

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def size_of(value: Any, text: str) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode()) + len(json.dumps(text, ensure_ascii=False).encode())


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_text_is_the_same_json(value: dict[str, Any]) -> None:
    answer = make_answer(value)
    assert json.loads(answer.text) == answer.value
    answer.text.encode()


def test_a_long_text_is_cut_at_4_kib_and_marked() -> None:
    answer = make_answer({"a": "x" * (1 << 20), "b": "é" * 5_000, "c": "y" * MOST_TEXT_BYTES})
    for name in ("a", "b"):
        told = answer.value[name]
        assert len(told.encode()) <= MOST_TEXT_BYTES
        assert "more characters]" in told
    assert answer.value["c"] == "y" * MOST_TEXT_BYTES


def test_the_cut_mark_tells_how_much_is_left_out() -> None:
    kept, _, mark = make_answer({"a": "x" * 10_000}).value["a"].partition(" ... ")
    assert mark == f"[cut: {10_000 - len(kept):,} more characters]"


def test_of_an_outputs_tail_the_end_is_kept() -> None:
    told = make_answer({"output_tail": "x" * 9_000 + "the error"}).value["output_tail"]
    assert told.startswith("[cut: ")
    assert told.endswith("the error")
    assert len(told) <= MOST_TEXT_BYTES


@pytest.mark.parametrize("filling", ["x", '"', "é", "\U0001f600"])
def test_two_hundred_long_entries_fit_and_none_is_lost(filling: str) -> None:
    entries = [{"id": number, "intent": filling * 5_000, "notes": filling * 5_000} for number in range(200)]
    answer = make_answer({"entries": entries})
    assert size_of(answer.value, answer.text) < 256 * 1024
    assert [one["id"] for one in answer.value["entries"]] == list(range(200))
    assert "notice" not in answer.value


def test_what_does_not_fit_is_said() -> None:
    answer = make_answer(
        {"entries": [{"id": number, "data": {str(key): key for key in range(60)}} for number in range(900)]}
    )
    left = 900 - len(answer.value["entries"])
    assert left > 0
    assert answer.value["notice"].startswith(f"{left:,} items did not fit")
    assert size_of(answer.value, answer.text) <= MOST_BYTES * 1.05


def test_deep_and_wide_content_fits() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    answer = make_answer({"deep": deep, "wide": {f"{'k' * 3_000}{key}": "x" * 3_000 for key in range(5_000)}})
    assert size_of(answer.value, answer.text) < 256 * 1024


def test_numbers_that_json_has_not_are_null() -> None:
    assert make_answer({"a": float("nan"), "b": float("inf"), "c": 1.5}).value == {"a": None, "b": None, "c": 1.5}


def test_half_characters_become_escapes() -> None:
    assert make_answer({"a": "\ud800"}).value == {"a": "\\ud800"}


def test_control_and_bidi_characters_are_escapes_in_the_text() -> None:
    answer = make_answer({"a": "\x1b[31m\u202e\x9b\u2066\ufeff\U000e0041 Grüße"})
    assert "\\u001b[31m\\u202e\\u009b\\u2066\\ufeff\\udb40\\udc41 Grüße" in answer.text
    assert json.loads(answer.text) == answer.value


def test_an_error_shows_no_raw_control_characters() -> None:
    assert make_visible("a\x1bb\u202ec\rd\n") == "a\\u001bb\\u202ec\\rd\n"
