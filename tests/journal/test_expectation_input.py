from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.expectation_input import read_expectations
from tests.journal.conftest import BEGIN

if TYPE_CHECKING:
    from pytest_golden.journal.model import Expectation


def read(*given: Any, timestamp: datetime = BEGIN) -> tuple[Expectation, ...]:
    return read_expectations(given, entry_id="entry_1", timestamp=timestamp)


def make_deep(depth: int) -> dict[str, Any]:
    return {"a": make_deep(depth - 1) if depth > 1 else "end"}


def test_a_description_is_enough() -> None:
    [asked] = read({"description": "CI is green"})
    assert (asked.entry_id, asked.description, asked.created_at) == ("entry_1", "CI is green", BEGIN)
    assert (asked.polarity, asked.critical, asked.status) == ("positive", False, "open")
    assert (asked.match_hint, asked.expires_at, asked.check) == (None, None, None)


def test_null_means_none() -> None:
    nothing = dict.fromkeys(("match_hint", "expires_minutes", "polarity", "critical", "check"))
    [plain], [told] = read({"description": "x"}), read({"description": "x", **nothing})
    assert {**told.to_dict(), "id": plain.id} == plain.to_dict()


def test_a_check_is_kept_with_its_unit_and_in_words() -> None:
    [asked] = read({"description": "x", "check": {"after": 10, "command": "python 'check it.py'"}})
    assert asked.check == {"after": "10m", "command": ["python", "check it.py"]}


@pytest.mark.parametrize("after", [60, "1h", "3600s", 61])
def test_a_check_that_is_due_when_the_time_is_over_is_refused(after: Any) -> None:
    check = {"after": after, "url": "http://localhost/"}
    with pytest.raises(
        ValueError, match=r"expectations\[0\]: check is due after (60|61)m, when expires_minutes 60 are"
    ):
        read({"description": "x", "expires_minutes": 60, "check": check})
    assert read({"description": "x", "expires_minutes": 61.5, "check": check})


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"desciption": "x"}, "unknown key 'desciption'; did you mean 'description'?"),
        ({"description": " "}, r"expectations\[0\].description: is empty"),
        ({"description": "a\0"}, "NUL"),
        ({"description": 3}, "this must be a text, not 3"),
        (
            {"description": "x", "expires_minutes": 0},
            r"expectations\[0\].expires_minutes: 0 is not a number of minutes",
        ),
        ({"description": "x", "expires_minutes": -1}, "-1 is not a number of minutes above 0"),
        ({"description": "x", "expires_minutes": math.nan}, "nan is not a number of minutes above 0"),
        ({"description": "x", "expires_minutes": math.inf}, "inf is not a number of minutes above 0"),
        ({"description": "x", "expires_minutes": True}, "True is not a number of minutes above 0"),
        ({"description": "x", "expires_minutes": "60"}, "'60' is not a number of minutes above 0"),
        ({"description": "x", "expires_minutes": 1e300}, "ends after the year 9999"),
        ({"description": "x", "expires_minutes": 10**400}, "ends after the year 9999"),
        ({"description": "x", "polarity": "negative"}, "polarity negative needs expires_minutes"),
        ({"description": "x", "polarity": "bad"}, "'bad' is not known here; write positive or negative"),
        ({"description": "x", "critical": "yes"}, "'yes' is neither true nor false"),
        ({"description": "x", "match_hint": {}}, "must be a mapping with at least one key"),
        ({"description": "x", "match_hint": "pr"}, "this must be a mapping with at least one key, not 'pr'"),
        ({"description": "x", "match_hint": {"": 1}}, "is empty"),
        ({"description": "x", "match_hint": {"a": {"b": 1}}}, "a must be a text, a number, true, false or null"),
        ({"description": "x", "match_hint": dict.fromkeys(map(str, range(100)), 1)}, "has 100 keys, and 1 to 99"),
        ({"description": "x", "match_hint": {"k" * 301: 1}}, "is longer than 300 characters"),
        ({"description": "x", "match_hint": make_deep(50)}, "a must be a text, a number, true, false or null"),
        ({"description": "x", "match_hint": {"pr": [42]}}, "pr must be a text, a number, true, false or null"),
        ({"description": "x", "match_hint": {"pr": "\0"}}, "match_hint holds a NUL character"),
        ({"description": "x", "check": {"command": "x"}}, "the key after is missing"),
        ({"description": "x", "check": {"after": 0, "command": "x"}}, "0 is not above 0"),
        ({"description": "x", "check": {"after": 1, "command": []}}, "is empty; write the program"),
        ("CI is green", "this must be a mapping, not 'CI is green'"),
    ],
)
def test_a_wish_that_cannot_be_kept_is_refused_with_its_place(wish: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(wish)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"expectations\[0\].critical: .*; expectations\[2\]: unknown key 'x'"):
        read({"description": "a", "critical": 1}, {"description": "b"}, {"description": "c", "x": 1})


@pytest.mark.parametrize(
    "hint", [{"pr": 7, "token": "hunter22"}, {"url": "https://me:hunter22@example.org/"}, {"password": "[hidden]"}]
)
def test_a_hint_that_only_hidden_secrets_could_answer_is_refused(hint: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"match_hint: '(token|url|password)' names or holds a secret") as caught:
        read({"description": "x", "match_hint": hint})
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("given_one", ["CI is green", {"description": "x"}, 3])
def test_something_else_than_a_list_is_refused(given_one: Any) -> None:
    with pytest.raises(ValueError, match="expectations: this must be a list of mappings"):
        read_expectations(given_one, entry_id="entry_1", timestamp=BEGIN)


MOMENTS = st.datetimes(timezones=st.just(UTC)).filter(lambda moment: moment.year > 1970)


@given(st.floats(min_value=5e-324, max_value=1e9), MOMENTS)
def test_an_expiry_lies_so_far_after_its_beginning(minutes: float, moment: datetime) -> None:
    begin = moment.replace(microsecond=0, year=min(moment.year, 8000))
    [asked] = read({"description": "x", "expires_minutes": minutes}, timestamp=begin)
    assert asked.expires_at is not None
    assert asked.expires_at > begin
    assert abs(asked.expires_at - begin - timedelta(minutes=minutes)) <= timedelta(milliseconds=1)
