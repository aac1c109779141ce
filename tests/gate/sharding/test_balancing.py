from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gate.sharding import ShardPlan, complete_plan, form_groups, total_seconds
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


def declare(*names: str, **needs: list[str]) -> list[GoldenProjectConfig]:
    return [GoldenProjectConfig(name, f"{name}.sh", needs=tuple(needs.get(name, ()))) for name in names]


def plan(seconds: Mapping[str, float], count: int, **needs: list[str]) -> ShardPlan:
    return complete_plan(declare(*seconds, **needs), ShardPlan(count, seconds=dict(seconds)))


@pytest.mark.parametrize("count", [2, 4, 8, 10, 20])
def test_a_hundred_projects_are_parted_evenly(count: int) -> None:
    for seed in range(10):
        random = Random(seed)
        seconds = {f"p{number}": random.lognormvariate(1, 1) for number in range(100)}
        ideal = max(sum(seconds.values()) / count, *seconds.values())
        assert max(total_seconds(plan(seconds, count))) <= 1.15 * ideal


def test_what_needs_each_other_stays_together() -> None:
    groups = form_groups(declare("a", "b", "c", "d", "e", "f", c=["a"], d=["b"], f=["d", "c"]))
    assert groups == [("a", "b", "c", "d", "f"), ("e",)]
    parted = plan({"a": 1, "b": 9, "c": 1, "d": 1}, 2, c=["a"], d=["c"]).shards
    assert parted == {"a": 2, "b": 1, "c": 2, "d": 2}


def test_unknown_durations_are_taken_to_be_the_median_and_without_any_it_goes_by_number() -> None:
    known = ShardPlan(2, seconds={"a": 10.0, "b": 2.0, "c": 1.0})
    completed = complete_plan(declare("a", "b", "c", "d"), known)
    assert completed.shards == {"a": 1, "b": 2, "c": 2, "d": 2}
    assert total_seconds(completed) == (10.0, 5.0)
    assert complete_plan(declare("a", "b", "c", "d", "e"), ShardPlan(2)).shards == {
        "a": 1,
        "b": 2,
        "c": 1,
        "d": 2,
        "e": 1,
    }


def test_a_plan_is_kept_and_what_is_new_comes_into_the_shortest_shard() -> None:
    old = ShardPlan(3, {"a": 1, "b": 2, "c": 2, "gone": 3}, {"a": 5.0, "b": 1.0, "c": 1.0, "gone": 50.0})
    completed = complete_plan(declare("new", "a", "b", "c", "late", late=["c"]), old)
    assert completed.shards == {"new": 3, "a": 1, "b": 2, "c": 2, "late": 2}
    assert "gone" not in completed.seconds


def test_projects_that_have_come_to_need_each_other_go_where_the_first_is() -> None:
    old = ShardPlan(2, {"a": 1, "b": 2}, {"a": 1.0, "b": 1.0})
    assert complete_plan(declare("a", "b", b=["a"]), old).shards == {"a": 1, "b": 1}


@given(
    st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.floats(0, 1e6), max_size=12),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_every_project_is_in_one_shard_whatever_the_order_of_reading(
    seconds: dict[str, float], count: int, random: Random
) -> None:
    parted = plan(seconds, count)
    assert list(parted.shards) == list(seconds)
    assert set(parted.shards.values()) <= set(range(1, count + 1))
    shuffled = list(seconds.items())
    random.shuffle(shuffled)
    assert complete_plan(declare(*seconds), ShardPlan(count, seconds=dict(shuffled))) == parted
    assert complete_plan(declare(*seconds), parted) == parted
