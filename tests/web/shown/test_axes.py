from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.web.drawing import Scale, scale_counts, scale_seconds, spread


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
