from __future__ import annotations

from datetime import date, timedelta

import pytest

from pytest_golden.journal.review import SuccessRate
from pytest_golden.web.drawing import stack_periods

RATE = SuccessRate(4, 0.75, 1, 1)


@pytest.mark.parametrize(
    ("span", "unit", "columns", "newest"),
    [
        (0, "day", 1, "2026-06-30"),
        (30, "day", 31, "2026-06-30"),
        (100, "week", 16, "week of 2026-06-29"),
        (365, "month", 13, "2026-06"),
        (4_000, "year", 12, "2026"),
        (60_000, "year", 60, "2026"),
    ],
)
def test_unit_fits_how_far_apart_the_days_lie(span: int, unit: str, columns: int, newest: str) -> None:
    last = date(2026, 6, 30)
    stacks = stack_periods({(last - timedelta(days=span)).isoformat(): RATE, last.isoformat(): RATE})
    assert (stacks.unit, len(stacks.columns), stacks.columns[-1].name) == (unit, columns, newest)
    assert stacks.left_out is (span == 60_000)


def test_days_of_one_period_are_added_up() -> None:
    stacks = stack_periods({"2026-01-05": RATE, "2026-01-06": SuccessRate(4, 0.0), "2026-03-05": RATE})
    first, empty = stacks.columns[:2]
    assert first.rate == SuccessRate(8, 0.375, 1, 1)
    assert (first.success, first.assessed, first.whole) == (30, 80, 100)
    assert empty.rate == SuccessRate()


def test_without_a_day_there_is_no_column() -> None:
    assert stack_periods({}).columns == ()
