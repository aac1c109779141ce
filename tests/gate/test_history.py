from __future__ import annotations

import pytest

from pytest_golden.gate.history import count_leading_failures, flakiness, usual_duration
from tests.gate.past_results import results_of

A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("word", "commits", "share"),
    [
        ("", [], None),
        ("P", [A], None),
        ("PF", [A, B], None),
        ("PP", [A, A], 0.0),
        ("PF", [A, A], 1.0),
        ("PFPP", [A, A, A, A], 2 / 3),
        ("FE", [A, A], 1.0),
        ("PFPP", [A, B, A, B], 0.5),
        ("P-P", [A, A, A], 0.0),
        ("PF", [None, None], None),
    ],
)
def test_flakiness_is_the_share_of_neighbours_on_one_commit_that_differ(
    word: str, commits: list[str | None], share: float | None
) -> None:
    assert flakiness(results_of(word, commit=commits)) == share


def test_usual_duration_is_that_of_the_passes() -> None:
    results = results_of("PPPF-P", execution_time_seconds=[1.0, 2.0, 4.0, 99.0, 0.0, 3.0])
    assert usual_duration(results) == (2.5, 1.0)
    assert usual_duration(results_of("F")) == (None, None)


@pytest.mark.parametrize(("word", "count"), [("", 0), ("P", 0), ("PFE", 2), ("FF", 2), ("FP", 0)])
def test_failures_in_a_row_are_counted_from_the_newest(word: str, count: int) -> None:
    assert count_leading_failures(results_of(word)) == count
