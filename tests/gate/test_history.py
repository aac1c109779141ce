from __future__ import annotations

import pytest

from pytest_golden.history.trends import count_leading_failures, count_passes, count_retried, flakiness, usual_duration
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
        ("P^P", [A, A, A], 0.0),
        ("PF", [None, None], None),
    ],
)
def test_flakiness_is_the_share_of_neighbours_on_one_commit_that_differ(
    word: str, commits: list[str | None], share: float | None
) -> None:
    assert flakiness(results_of(word, commit=commits)) == share


def test_flakiness_leaves_out_what_ran_on_edits() -> None:
    assert flakiness(results_of("PF", dirty=True)) is None
    assert flakiness(results_of("PFPP", dirty=[False, True, None, False])) == 0.0


def test_passes_that_took_a_retry_are_counted() -> None:
    assert count_retried(results_of("P~F~-")) == 2


@pytest.mark.parametrize(("word", "earlier", "count"), [("F", 0, 0), ("FPP", 0, 2), ("P", 7, 8), ("PF", 7, 0)])
def test_passes_in_a_row_are_counted_from_the_newest(word: str, earlier: int, count: int) -> None:
    assert count_passes(results_of(word, earlier_passes=earlier)) == count


def test_usual_duration_is_that_of_the_passes() -> None:
    results = results_of("PPPF-P", execution_time_seconds=[1.0, 2.0, 4.0, 99.0, 0.0, 3.0])
    assert usual_duration(results) == (2.5, 1.0)
    assert usual_duration(results_of("F")) == (None, None)


@pytest.mark.parametrize(("word", "count"), [("", 0), ("P", 0), ("PFE", 2), ("FF", 2), ("FP", 0)])
def test_failures_in_a_row_are_counted_from_the_newest(word: str, count: int) -> None:
    assert count_leading_failures(results_of(word)) == count
