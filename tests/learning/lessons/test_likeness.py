from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.likeness import (
    choose_query,
    contradicts,
    find_keys,
    holds_all_words,
    list_errors,
    measure_likeness,
    read_features,
)
from pytest_golden.learning.signature import error_signature
from tests.learning.lessons.conftest import make_skill

MISSING = "BinderException: Binder Error: Referenced column 'x' not found in FROM clause!"


def like(one: str, other: str) -> float:
    return measure_likeness(read_features(error_signature(one)), read_features(error_signature(other)))


def test_same_error_is_wholly_alike() -> None:
    assert like(MISSING, MISSING.replace("'x'", "'y'")) == 1.0
    assert 0.7 < like(MISSING, f"{MISSING} Check the query.") < 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MISSING, MISSING.replace("BinderException", "ParserException")),
        (MISSING, MISSING.replace(" not", "")),
        ("No module named 'x' in this place", "No module named 'y' in this place"),
        ("HTTP Error 503: no service for you", "HTTP Error 500: no service for you"),
        ("server closed the connection: refused", "server closed the connection: timed"),
        ("KeyError: 'amount'", "KeyError: 'API_TOKEN'"),
        ("Error: failed", "Error: failed"),
        ("", ""),
        ("exit code 1", "exit code 1"),
    ],
)
def test_another_cause_is_not_alike_at_all(one: str, other: str) -> None:
    assert like(one, other) == 0.0


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("KeyError: 'amount'", True),
        ("disk on fire", True),
        ("ValueError: 'x'", False),
        ("RuntimeError: failed", False),
        ("exit code 1, expected 0", False),
        ("12:00:03  Done. PASS=1 WARN=0 ERROR=1 SKIP=0 TOTAL=2", False),
        ("", False),
    ],
)
def test_a_failure_without_a_cause_tells_nothing(text: str, tells: bool) -> None:
    assert read_features(error_signature(text)).tells_a_cause is tells


def test_typed_words_must_all_be_there() -> None:
    told = "The vendor renamed the header; normalise the header before."
    assert holds_all_words(read_features("normalise vendor header"), told)
    assert not holds_all_words(read_features("normalise vendor footer"), told)
    assert not holds_all_words(read_features("vendor header"), told)


def test_query_has_classes_and_the_longest_words() -> None:
    assert choose_query([read_features("SomeError: the disk burns brightly")], 3) == "SomeError brightly burns"
    assert choose_query([], 3) == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_likeness_is_symmetric_and_from_0_to_1(one: str, other: str) -> None:
    assert like(one, other) == like(other, one)
    assert 0 <= like(one, other) <= 1
    assert like(one, one) in {0.0, 1.0}


def contradict(one: str, other: str) -> bool:
    left, right = (make_skill(text, what_failed="", what_worked="", evidence={}) for text in (one, other))
    shares = set(find_keys(left).about) & set(find_keys(right).about)
    assert contradicts(left, right) == contradicts(right, left)
    return bool(shares) and contradicts(left, right)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Pass dtype to read_csv", "Do not pass dtype to read_csv"),
        ("Always pass dtype to read_csv", "Never pass dtype to `read_csv`!"),
        ("Use threads for the upload", "Avoid threads for the upload"),
        ("Use pyarrow instead of fastparquet", "Use fastparquet instead of pyarrow"),
        ("Sort before the join", "Join before the sort"),
        ("Enable the cache in tests", "Disable the cache in tests"),
        ("Set index=True in to_csv", "Set index=False in to_csv"),
        ("Don't retry on 404", "Retry on 404"),
    ],
)
def test_opposite_advice_contradicts(one: str, other: str) -> None:
    assert contradict(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Pass dtype to read_csv", "Pass sep to read_csv"),
        ("Pass dtype to read_csv", "pass DTYPE to read_csv"),
        ("Never disable the cache in tests", "Enable the cache in tests"),
        ("Use threads and processes", "Use processes and threads"),
        ("Do not use pyarrow instead of fastparquet", "Use fastparquet instead of pyarrow"),
    ],
)
def test_other_advice_does_not_contradict(one: str, other: str) -> None:
    assert not contradict(one, other)


def test_errors_are_listed_once_and_ten_at_most() -> None:
    many = [f"Error {letter}" for letter in "abcdefghijklmnop"]
    assert list_errors({"error": "Error a", "errors": [*many, 7, " "]}) == tuple(many[:10])
    assert list_errors({"error": 5, "errors": "x"}) == ()
    assert find_keys(make_skill(evidence={"error": " "})).errors == ()
