from __future__ import annotations

from pytest_golden.web.drawing import MOST_BARS, plot_runs
from tests.gate.past_results import results_of


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
