"""Pairing all of one side with all of the other."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.tables.multisets import can_all_be_paired

PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(st.integers(0, 5), PAIRS)
def test_it_says_what_trying_all_says(count: int, near: set[tuple[int, int]]) -> None:
    near = {(left, right) for left, right in near if left < count and right < count}
    tried = any(all((at, to) in near for at, to in enumerate(order)) for order in permutations(range(count)))
    assert can_all_be_paired(count, sorted(near)) is tried
