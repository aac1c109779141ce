from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.review import SuccessRate
from pytest_golden.web.drawing import MOST_BARS, Scale, plot_runs, scale_counts, scale_seconds, spread, stack_periods
from tests.history.past_results import results_of


def words(scale: Scale) -> list[str]:
    return [tick.words for tick in scale.ticks]


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        (0.0, ["0s", "0.01s"]),
        (0.3, ["0s", "0.1s", "0.2s", "0.3s"]),
        (3.2, ["0s", "1s", "2s", "3s", "4s"]),
        (85.0, ["0s", "30s", "1m", "1m 30s"]),
        (440.0, ["0s", "2m", "4m", "6m", "8m"]),
        (7_000.0, ["0s", "30m", "1h", "1h 30m", "2h"]),
        (400_000.0, ["0s", "48h", "96h", "144h"]),
    ],
)
def test_seconds_have_a_few_round_ticks(longest: float, expected: list[str]) -> None:
    assert words(scale_seconds(longest)) == expected


def test_counts_have_whole_ticks() -> None:
    assert words(scale_counts(0)) == ["0", "1"]
    assert words(scale_counts(3)) == ["0", "1", "2", "3"]
    assert words(scale_counts(1_234)) == ["0", "500", "1,000", "1,500"]


@given(st.floats(0, 1e7))
def test_axis_reaches_from_nothing_to_above_the_longest(longest: float) -> None:
    scale = scale_seconds(longest)
    assert 2 <= len(scale.ticks) <= 5
    assert (scale.ticks[0].place, scale.ticks[-1].place) == (0, 100)
    assert 0 <= scale.place(longest) <= 100.0001


def test_words_along_the_foot_stand_below_what_they_name_and_within_the_plot() -> None:
    ticks = spread([str(number) for number in range(20)], 3)
    assert [(tick.words, tick.place, tick.anchor) for tick in ticks] == [
        ("0", 2.5, "start"),
        ("10", 52.5, "middle"),
        ("19", 97.5, "end"),
    ]
    assert [(tick.words, tick.place) for tick in spread(["only"], 4)] == [("only", 50)]
    assert spread([], 4) == ()


def test_runs_stand_from_the_oldest_to_the_newest_and_failures_hang() -> None:
    plot = plot_runs(results_of("PF-E", execution_time_seconds=[10.0, 20.0, 0.0, 40.0]), 10.0, None)
    assert plot is not None
    assert [round(bar.height) for bar in plot.bars] == [25, 50, 100]
    assert [bar.hangs for bar in plot.bars] == [False, True, True]
    assert plot.failed_count == 2
    assert (plot.median, plot.limit) == (25, None)


def test_no_more_bars_than_a_phone_has_room_for() -> None:
    plot = plot_runs(results_of("P" * 100), 1.0, 2.0)
    assert plot is not None
    assert len(plot.bars) == MOST_BARS
    assert plot.bars[-1].run.entry_id == "entry_99"
    assert plot.limit == 100


def test_nothing_is_drawn_where_none_ran_to_its_end() -> None:
    assert plot_runs(results_of("--"), None, None) is None


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
