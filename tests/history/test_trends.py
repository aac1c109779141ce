from __future__ import annotations

import pytest

from pytest_golden.history.trends import (
    UsualDuration,
    count_leading_failures,
    count_passes,
    count_retried,
    describe_streak,
    flakiness,
    usual_duration,
)
from tests.history.past_results import results_of

A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("word", "earlier", "told"),
    [
        ("", 0, ""),
        ("P-", 0, ""),
        ("P", 0, "first run"),
        ("F", 0, "first run"),
        ("-P", 0, "first run"),
        ("PP", 0, "2nd pass in a row"),
        ("P", 11, "12th pass in a row"),
        ("PPPPPPPPPP", 0, "10th pass in a row"),
        ("PP", 21, "23rd pass in a row"),
        ("P", 110, "111th pass in a row"),
        ("P-P", 0, "2nd pass in a row"),
        ("P^P", 0, "2nd pass in a row"),
        ("P^", 0, ""),
        ("P---------P", 0, "2nd pass in a row"),
        ("F^-F", 0, "failed 2 times in a row"),
        ("FFPPPPPPPF", 0, "first failure after 7 passes, failed 3 of the last 10"),
        ("FFPPPP^PPP-F", 0, "first failure after 7 passes, failed 3 of the last 10"),
        (f"F{'-' * 40}P", 0, ""),
        ("FP", 0, "passes again after 1 failure"),
        ("PFEFP", 0, "passes again after 3 failures"),
        ("PFP", 0, "passes again after 1 failure"),
        ("FPP", 0, "2nd pass in a row, failed 1 of the last 3"),
        ("FFPPPFPPPP", 0, "4th pass in a row, failed 3 of the last 10"),
        ("FPPPPPPPPPP", 0, "10th pass in a row"),
        ("FFFFFFFFFP", 0, "passes again after 9 or more failures"),
        ("FFFFFFFFFF", 0, "failed in each of the last 10"),
        ("PF", 39, "first failure after 40 passes"),
        ("PF", 0, "first failure after 1 pass"),
        ("FF", 0, "failed 2 times in a row"),
        ("FPFPF", 0, "first failure after 1 pass, failed 3 of the last 5"),
        ("PFF", 0, "2nd failure in a row"),
        ("FPPPFF", 0, "2nd failure in a row, failed 3 of the last 6"),
        ("FPPPPPPPPPPPF", 0, "first failure after 11 passes"),
    ],
)
def test_streak_is_told(word: str, earlier: int, told: str) -> None:
    assert describe_streak(results_of(word, earlier_passes=earlier)) == told


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
    assert usual_duration(results) == UsualDuration(2.5, 1.0)
    assert usual_duration(results_of("F")) == UsualDuration(None, None)


@pytest.mark.parametrize(("word", "count"), [("", 0), ("P", 0), ("PFE", 2), ("FF", 2), ("FP", 0)])
def test_failures_in_a_row_are_counted_from_the_newest(word: str, count: int) -> None:
    assert count_leading_failures(results_of(word)) == count
