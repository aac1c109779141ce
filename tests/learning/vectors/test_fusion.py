from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.vectors.hybrid import fuse

RANKINGS = st.lists(st.lists(st.integers(1, 20), unique=True, max_size=8), max_size=3)


def test_what_stands_high_in_both_comes_first() -> None:
    fused = fuse([1, 2, 3], [3, 4])
    assert [number for number, _ in fused] == [3, 1, 4, 2]
    assert [score for _, score in fused] == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62])


def test_nothing_gives_nothing() -> None:
    assert fuse() == fuse([], []) == []


@given(rankings=RANKINGS)
def test_every_number_comes_once_in_an_order_that_the_rankings_do_not_change(rankings: list[list[int]]) -> None:
    fused = fuse(*rankings)
    assert sorted(number for number, _ in fused) == sorted({number for ranking in rankings for number in ranking})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    backwards = dict(fuse(*reversed(rankings)))
    assert {number: pytest.approx(score) for number, score in fused} == backwards


@given(ranking=st.lists(st.integers(1, 99), unique=True, max_size=9))
def test_one_ranking_stays_as_it_is(ranking: list[int]) -> None:
    assert [number for number, _ in fuse(ranking)] == ranking
