from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.model import count_of, error_of, one_line, text_of, title_of, told_metadata
from tests.trajectory.insight.runs import run


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        ({"thought": "hm", "n": 1}, "hm"),
        ({"n": 1}, '{"n": 1}'),
        ({"text": 3, "message": "m"}, "m"),
        ([1, "a"], '[1, "a"]'),
        (3, "3"),
        (b"bytes", "bytes"),
    ],
)
def test_text_of_content(content: Any, text: str) -> None:
    assert text_of(content) == text


def test_text_of_huge_content_is_bounded() -> None:
    assert len(text_of("x" * 1_000_000)) == len(text_of({"text": "x" * 1_000_000})) == 20_000


def test_lines_breaks_colours_and_control_characters_do_not_pass() -> None:
    assert one_line("a\n\tb\x1b[31mred\x1b[0m\x00\u202e") == "a bred\ufffd\ufffd"


@given(st.text(), st.integers(10, 300))
def test_one_line_is_one_line_of_that_length(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()


def test_cut_text_says_so() -> None:
    assert one_line("x" * 20, 10) == "xxxxxxx..."
    assert one_line(" " * 100 + "x", 10).endswith("...")


def test_step_that_says_nothing_is_called_by_its_type() -> None:
    assert title_of(run(("tool_call", None)).steps[0]) == "a step of type tool_call"


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"error": True}, ""),
        ({"error": "e", "failed": "f"}, "e"),
        ({"error": True, "failed": "f"}, "f"),
        ({"error": {"code": 3}}, '{"code": 3}'),
    ],
)
def test_error_of_a_step(metadata: dict[str, Any], error: str) -> None:
    assert error_of(run(("action", "a", metadata)).steps[0]) == error


def test_metadata_is_told_by_its_scalars() -> None:
    metadata = {
        "error": "e",
        "rows": 3,
        "sql": "x" * 1_000,
        "list": [1],
        "rate": float("nan"),
        **{str(n): n for n in range(50)},
    }
    told = told_metadata(run(("action", "a", metadata)).steps[0])
    assert (told["rows"], len(told["sql"]), told["rate"], len(told)) == (3, 200, "NaN", 12)
    assert told.keys().isdisjoint({"error", "list"})


def test_counts_are_written_with_their_noun() -> None:
    assert [count_of(number, "step") for number in (0, 1, 2_000)] == ["0 steps", "1 step", "2,000 steps"]
