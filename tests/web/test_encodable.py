from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pytest_golden.web.api.routes import make_encodable


@pytest.mark.parametrize(
    "content",
    [
        {"steps": [{"content": "ä 😀", "metadata": {"row": 1, "at": None}}], "share": 0.5},
        {"created_at": datetime(2026, 1, 1, tzinfo=UTC), "tags": ("a", "b")},
        [],
        None,
    ],
)
def test_what_can_be_written_is_given_as_it_is_and_not_copied(content: object) -> None:
    assert make_encodable(content) is content


def test_halves_of_characters_become_escapes_wherever_they_are() -> None:
    told = {"a\ud800": ["😀", ("\udfff",)], "at": datetime(2026, 1, 1, tzinfo=UTC), "b": {"c": 1.5}}
    assert make_encodable(told) == {
        "a\\ud800": ["😀", ["\\udfff"]],
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "b": {"c": 1.5},
    }
