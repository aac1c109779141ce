from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.figures import flakiness, flakiness_of_groups


class Run(NamedTuple):
    status: str
    seconds: float


@pytest.mark.parametrize(
    ("results", "share"),
    [
        ([], None),
        (["PASSED"], None),
        (["PASSED", "PASSED"], 0.0),
        (["PASSED", "FAILED", "PASSED"], 1.0),
        ([True, True, False, False], 1 / 3),
        ([1, 0, None], 1.0),
    ],
)
def test_flakiness_is_the_share_of_neighbours_that_differ(results: list[object], share: float | None) -> None:
    assert flakiness(results) == share
    assert flakiness(iter(results)) == share


def test_of_a_result_only_the_status_counts() -> None:
    assert flakiness([Run("PASSED", 1.0), Run("PASSED", 2.0), Run("FAILED", 2.0)]) == 0.5


def test_groups_are_not_neighbours() -> None:
    assert flakiness_of_groups(["PP", "FF"]) == 0.0
    assert flakiness_of_groups(["PF", "F", "", "FF"]) == 0.5
    assert flakiness_of_groups(["P", "F"]) is None


@given(st.lists(st.booleans(), min_size=2))
def test_flakiness_is_the_same_backwards_and_never_outside_0_and_1(results: list[bool]) -> None:
    share = flakiness(results)
    assert share is not None
    assert 0.0 <= share <= 1.0
    assert flakiness(results[::-1]) == share
