from __future__ import annotations

import pytest

from pytest_golden.history.trends import describe_streak
from tests.gate.past_results import results_of


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
