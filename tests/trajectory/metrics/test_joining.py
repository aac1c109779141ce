from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.metrics import Measurement, in_order, join_measurements, join_metadata
from pytest_golden.trajectory.vocabulary import freeze_mapping

measurements = st.builds(
    Measurement,
    id=st.sampled_from("abc"),
    metric=st.sampled_from(["cost", "size"]),
    value=st.sampled_from([0.0, 1.0]),
    timestamp=st.integers(1, 3).map(lambda day: datetime(2026, 1, day, tzinfo=UTC)),
    task_id=st.sampled_from([None, "t"]),
    metadata=st.sampled_from([{}, {"k": [1]}, {"k": (1,)}]),
)
groups = st.lists(st.lists(measurements, max_size=4), max_size=3)
metadata = st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, 1, 2.5, "x", [1], (1,), {"c": 1}]))


@given(groups)
def test_whatever_the_order_the_same_values_are_kept(groups: list[list[Measurement]]) -> None:
    expected = in_order(join_measurements(groups))
    assert len({one.id for one in expected}) == len(expected)
    for shuffled in permutations(groups):
        assert in_order(join_measurements(shuffled)) == expected


@given(groups)
def test_joining_what_was_joined_changes_nothing(groups: list[list[Measurement]]) -> None:
    joined = join_measurements(groups)
    assert join_measurements([joined, *groups, joined]) == joined


@given(metadata, metadata, metadata)
def test_metadata_join_in_any_order_and_grouping(
    one: dict[str, object], two: dict[str, object], three: dict[str, object]
) -> None:
    parts = [freeze_mapping("metadata", each) for each in (one, two, three)]
    joined = join_metadata(parts)
    assert all(join_metadata(shuffled) == joined for shuffled in permutations(parts))
    assert join_metadata([parts[0], join_metadata(parts[1:])]) == joined
    assert join_metadata([joined, joined]) == joined


def test_of_two_values_under_one_id_the_later_is_kept() -> None:
    early, late = (Measurement("a", "cost", float(day), datetime(2026, 1, day, tzinfo=UTC)) for day in (1, 2))
    assert join_measurements([[late], [early]]) == join_measurements([[early, late]]) == [late]
