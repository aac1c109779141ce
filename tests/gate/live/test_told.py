from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.clock import new_id
from pytest_golden.gate.live import Told

NUMBERS = st.integers(0, 10**17)


@given(NUMBERS, st.lists(NUMBERS, max_size=20))
def test_what_was_told_is_read_back(newest: int, numbers: list[int]) -> None:
    told = Told(newest, {new_id("entry"): number for number in numbers})
    assert Told.parse(told.to_id()) == told


@given(st.text() | st.from_regex(r"\A[0-9._-]*\Z"))
def test_what_anybody_sends_is_read_or_nothing(text: str) -> None:
    told = Told.parse(text)
    assert told is None or told.newest >= 0


@pytest.mark.parametrize(
    "text",
    [None, "", "x", "-1", "1-", "1-entry", "1-entry.x", "1 ", "\u0661", "1-a.1\n", "9" * 19, "1" + "-run.1" * 21],
)
def test_id_of_somebody_else_tells_nothing(text: str | None) -> None:
    assert Told.parse(text) is None


def test_id_that_is_too_long_tells_nothing() -> None:
    assert Told.parse("1" + f"-{'a' * 64}.{'1' * 18}" * 20) is not None
    assert Told.parse("1" + f"-{'a' * 64}.{'1' * 18}" * 200) is None
