from __future__ import annotations

import pytest

from pytest_golden.clock import new_id, new_id_after


def test_ids_made_one_after_the_other_sort_in_that_order() -> None:
    ids = [new_id("value")]
    for _ in range(5_000):
        ids.append(new_id_after(ids[-1], "value"))
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {len(each) for each in ids} == {len(ids[0])}


def test_ids_that_follow_the_same_one_differ_and_sort_behind_it() -> None:
    # From a clock that is ahead, so that each must be made out of the last one.
    last = "value_7" + "0" * 25
    following = [new_id_after(last, "value") for _ in range(1_000)]
    assert len(set(following)) == 1_000
    assert min(following) > last


@pytest.mark.parametrize(
    "last_id",
    ["", "zzz", "value_", "value_zzz", "value_7IIIIIIIIIIIIIIIIIIIIIIIII", "zebra_7" + "0" * 25, "value_é" + "0" * 25],
)
def test_whatever_the_last_id_is_one_is_made(last_id: str) -> None:
    made = new_id_after(last_id, "value")
    assert made.startswith("value_")
    assert len(made) == len(new_id("value"))


def test_a_carry_goes_through_all_digits() -> None:
    following = new_id_after("value_6" + "Z" * 25, "value")
    assert following.startswith("value_70000")
