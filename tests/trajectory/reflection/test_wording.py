from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.reflection_parsing import (
    find_hope,
    first_paragraph,
    infer_category,
    infer_type,
    list_causes,
    list_suggestions,
    settle_text,
)


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
