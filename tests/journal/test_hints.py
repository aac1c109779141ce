from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.hints import (
    LONGEST_KEY,
    allows_guess,
    anchors_of,
    count_keys,
    describe_misfit,
    fits,
    list_anchors,
    rank,
    read_shape,
    read_words,
    write_shape,
)

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
HINTS = st.dictionaries(st.text(min_size=1, max_size=8), PLAIN, min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        ({"pr": 42}, {"pr": "42"}),
        ({"pr": "42"}, {"pr": 42, "sha": "further keys do not matter"}),
        ({"green": True}, {"green": "true"}),
        ({"error": None}, {"error": None}),
        ({"pull_request.number": 7}, {"pull_request": {"number": 7}}),
        ({"pull_request.number": 7}, {"pull_request.number": 7}),
        ({"commits.1.id": "b"}, {"commits": [{"id": "a"}, {"id": "b"}]}),
        ({"a.b": 2}, {"a.b": 1, "a": {"b": 2}}),
        ({"source": "ci"}, {"source": "another"}),
    ],
)
def test_a_hint_fits_when_each_key_is_there_with_an_equal_text(hint: dict[str, Any], data: dict[str, Any]) -> None:
    words = read_words("ci", data)
    assert fits(hint, words)
    assert describe_misfit(hint, words) == ""
    assert set(list_anchors(hint)) <= set(anchors_of(words))


@pytest.mark.parametrize(
    ("hint", "data", "why"),
    [
        ({"pr": 42}, {}, "the signal has no pr"),
        ({"pr": 42}, {"pr": 43}, "pr is '43' in the signal, not '42'"),
        ({"pr": 42}, {"pr": [42]}, "pr is not a plain value in the signal, not '42'"),
        ({"source": "github"}, {"source": "github"}, "source is 'ci' in the signal, not 'github'"),
        ({"pr": "A"}, {"pr": "a"}, "pr is 'a' in the signal, not 'A'"),
        ({"pr": 1, "sha": 2}, {"pr": 3}, "pr is '3' in the signal, not '1'; the signal has no sha"),
        ({"pr": "x" * 99}, {"pr": 1}, "xxx ..."),
    ],
)
def test_a_hint_that_does_not_fit_says_why(hint: dict[str, Any], data: dict[str, Any], why: str) -> None:
    words = read_words("ci", data)
    assert not fits(hint, words)
    assert why in describe_misfit(hint, words)
    assert not allows_guess(hint, words)


def test_a_guess_needs_an_equal_key_and_no_other_value() -> None:
    words = read_words("ci", {"pr": 1})
    assert allows_guess(None, words)
    assert allows_guess({"pr": 1, "sha": "x"}, words)
    assert allows_guess({"source": "ci", "sha": "x"}, words)
    assert not allows_guess({"sha": "x"}, words)
    assert not allows_guess({"source": "ci", "pr": 2}, words)


@given(HINTS, st.dictionaries(st.text(max_size=8), PLAIN, max_size=3))
def test_whatever_fits_is_found_by_any_anchor_of_the_hint(hint: dict[str, Any], more: dict[str, Any]) -> None:
    words = read_words(str(hint.get("source", "ci")), {**more, **hint})
    if fits(hint, words):
        assert set(list_anchors(hint)) <= set(anchors_of(words))
    assert fits(hint, words) or "source" in hint


@given(HINTS)
def test_a_shape_is_read_as_it_was_written(hint: dict[str, Any]) -> None:
    shape = write_shape(hint)
    assert shape > write_shape(None) == ""
    source, keys = read_shape(shape)
    assert set(keys) == set(hint) - {"source"}
    assert (source is None) == ("source" not in hint)
    assert count_keys(shape) == len(hint)


@given(st.integers(0, 99), st.integers(0, 99), st.none() | st.integers(0, 2**47), st.none() | st.integers(0, 2**47))
def test_more_keys_come_first_and_then_the_nearer_expiry(
    keys: int, other_keys: int, expiry: int | None, other_expiry: int | None
) -> None:
    def order(count: int, moment: int | None) -> tuple[float, float]:
        return -count, float("inf") if moment is None else moment

    comes_first = order(keys, expiry) < order(other_keys, other_expiry)
    assert (rank(keys, expiry) < rank(other_keys, other_expiry)) == comes_first
    assert 0 <= rank(keys, expiry) < 2**63


def test_the_source_is_the_last_choice_for_an_anchor_and_long_values_are_the_first() -> None:
    hint = {"source": "a very long source", "pr": 1, "sha": "abcdef"}
    assert list_anchors(hint) == (
        *list_anchors({"sha": "abcdef"}),
        *list_anchors({"pr": 1}),
        *list_anchors({"source": "a very long source"}),
    )


def test_endless_keys_are_not_read() -> None:
    deep: dict[str, Any] = {"end": 1}
    for _ in range(150):
        deep = {"k" * 10: deep}
    assert all(len(key) <= LONGEST_KEY for key in read_words("ci", deep))


def test_half_characters_are_compared_too() -> None:
    assert fits({"name": "\udc80"}, read_words("ci", {"name": "\udc80"}))
    assert anchors_of(read_words("ci", {"name": "\udc80"}))
