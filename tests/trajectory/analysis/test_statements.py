from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.reasoning import list_statements, split_sentences, takes_back, words_of


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("The value is positive.", "The value is not positive."),
        ("The value is positive", "So the value isn't positive!"),
        ("The table has duplicates", "The table does not have any duplicates"),
        ("The load failed", "The load did not fail"),
        ("The file passes the check", "The file doesn't pass the check"),
        ("We can use the cache", "We cannot use the cache"),
        ("There are errors in the log", "There are no errors in the log"),
        ("The schema is valid", "The schema is invalid"),
        ("The job never fails", "The job fails"),
        ("The load succeeded", "The load failed"),
        ("The check did not pass", "The check did not fail"),
        ("The API won\u2019t answer", "The API will answer"),
    ],
)
def test_statement_and_its_negation_have_the_same_words(said: str, denied: str) -> None:
    (one,), (other,) = list_statements(said), list_statements(denied)
    assert one.words == other.words
    assert one.is_denied != other.is_denied


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I know the schema", "I now see the schema"),
        ("The job failed", "The job does not fail"),
        ("Orders are empty", "Customers are not empty"),
        ("The test was not green", "The test is green"),
        ("The value is 4", "The value is not 5"),
        ("The schema is valid", "The schema is not invalid"),
    ],
)
def test_these_do_not_deny_each_other(one: str, other: str) -> None:
    said = {(statement.words, statement.is_denied) for statement in list_statements(one)}
    denied = {(statement.words, not statement.is_denied) for statement in list_statements(other)}
    assert said.isdisjoint(denied)


@pytest.mark.parametrize(
    "text",
    [
        "Is the value positive?",
        "If the value is positive",
        "The value may be positive",
        "The table is now empty",
        "The table is no longer empty",
        "It is empty",
        "Not X",
        "",
        "...",
    ],
)
def test_questions_suppositions_changes_and_pronouns_state_nothing(text: str) -> None:
    assert list(list_statements(text)) == []


def test_clauses_are_statements_of_their_own() -> None:
    said = [statement.said for statement in list_statements("The load works, but the join fails. Rows are lost")]
    assert said == ["The load works", "the join fails.", "Rows are lost"]


@pytest.mark.parametrize("text", ["Wait, that is off.", "Actually the value is 3", "No, it is not", "I was wrong"])
def test_words_that_take_back_are_known(text: str) -> None:
    assert takes_back(text)


@pytest.mark.parametrize("text", ["There is no row", "We know it", "awaiting the answer", "He waited"])
def test_words_that_only_look_so_take_nothing_back(text: str) -> None:
    assert not takes_back(text)


def test_words_are_whole_and_contractions_written_out() -> None:
    assert words_of("I can't know, it's 1.5 o'clock; n't") == [
        "i",
        "can",
        "not",
        "know",
        "it",
        "is",
        "1.5",
        "o'clock",
        "n't",
    ]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(len(statement.words) > 1 for statement in list_statements(text))
    assert all(sentence.strip() for sentence in split_sentences(text))
