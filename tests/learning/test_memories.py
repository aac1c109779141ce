from __future__ import annotations

from pytest_golden.learning.memories import add_words, measure_coverage, words_of


def test_values_are_words_and_field_names_are_not() -> None:
    value = {"error": ["no such", {"deep": "column"}], "n": 42, "flag": True, "none": None, "pair": ("a", 1.5)}
    assert words_of(value, "key", ("tag",)) == "key tag no such column 42 a 1.5"


def test_long_values_have_a_bounded_number_of_words() -> None:
    assert len(words_of(["x" * 60_000, "y" * 60_000, "z"])) < 100_010


def test_new_words_are_added_once_and_as_long_as_there_is_room() -> None:
    assert add_words("a b", "b c c", 100) == "a b c"
    assert add_words("a b", "b", 100) == "a b"
    assert add_words("a b", "c", 3) == "a b"


def test_coverage_is_the_share_of_words_that_are_there() -> None:
    assert measure_coverage(["column", "Münze"], "the COLUMN of munze") == 1.0
    assert measure_coverage(["column", "price"], "columns and price") == 0.5
    assert measure_coverage([], "anything") == 0.0
