from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.report.history_text import plot_durations


def test_bars_stand_oldest_left_with_median_and_limit_marked() -> None:
    told = plot_durations([1.0, None, 2.0, 6.0], 80, median=2.0, limit=4.0, is_unicode=True)
    assert told == (
        "       6.00s │            ███",
        "             │            ███",
        " limit 4.00s │            ███",
        "             │            ███",
        "median 2.00s │        ███ ███",
        "             │███     ███ ███",
    )


def test_without_unicode_bars_are_drawn_in_ascii() -> None:
    told = plot_durations([0.5, 1.0], 30, is_unicode=False)
    assert "\n".join(told).isascii()
    assert told[0] == "1.00s |    ###"
    assert told[-1].endswith("|### ###")


def test_median_and_limit_in_one_row_share_it() -> None:
    told = plot_durations([1.0, 6.0], 80, median=5.1, limit=5.5, is_unicode=True)
    assert told[0].startswith("median 5.10s")


@pytest.mark.parametrize(("durations", "width"), [([], 80), ([None, None], 80), ([1.0], 5)])
def test_nothing_known_or_no_room_draws_nothing(durations: list[float | None], width: int) -> None:
    assert plot_durations(durations, width) == ()


def test_newest_runs_stay_where_there_is_no_room_for_all() -> None:
    told = plot_durations([5.0] * 100 + [1.0], 20, is_unicode=True)
    assert max(map(len, told)) <= 20
    assert told[0].endswith("█")
    assert not told[0].endswith("██████████████")


@given(st.lists(st.none() | st.floats(0, 1e7), max_size=60), st.integers(1, 120), st.booleans())
def test_plot_is_never_wider_than_the_terminal(durations: list[float | None], width: int, is_unicode: bool) -> None:
    for line in plot_durations(durations, width, median=1.0, limit=2.0, is_unicode=is_unicode):
        assert len(line) <= width
