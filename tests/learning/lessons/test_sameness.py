from __future__ import annotations

import pytest

from pytest_golden.learning.lessons.likeness import contradicts, find_keys, list_errors
from tests.learning.lessons.conftest import make_skill


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
    assert list_errors(make_skill(evidence={"error": "Error a", "errors": [*many, 7, " "]})) == tuple(many[:10])
    assert list_errors(make_skill(evidence={"error": 5, "errors": "x"})) == ()
    assert find_keys(make_skill(evidence={"error": " "})).errors == ()
