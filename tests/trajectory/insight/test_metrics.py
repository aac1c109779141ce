from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_golden import ConfidenceInterval, MetricsCollector, Trajectory, compare_metrics
from pytest_golden.trajectory.insight.figures import limits_of
from pytest_golden.trajectory.insight.metrics import (
    DEFAULT_WEIGHTS,
    Measurement,
    MetricComparison,
    compare_task_means,
    in_order,
    join_measurements,
    join_metadata,
    measure_trajectory,
    score_means,
)
from pytest_golden.trajectory.vocabulary import freeze_mapping
from tests.patience import count_calls

additions = st.lists(
    st.tuples(
        st.sampled_from(["latency", "cost"]),
        st.floats(0, 1e308),
        st.sampled_from([None, "a", "b"]),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
    ),
    max_size=8,
)


def collect(metric: str = "quality", *values: float, **by_task: list[float]) -> MetricsCollector:
    collector = MetricsCollector.new()
    for value in values:
        collector = collector.add(metric, value)
    for task_id, its_values in by_task.items():
        for value in its_values:
            collector = collector.add(metric, value, task_id=task_id)
    return collector


def add_all(added: list[tuple[str, float, str | None, dict[str, Any]]], **metadata: Any) -> MetricsCollector:
    collector = MetricsCollector.new(metadata)
    for metric, value, task_id, about in added:
        collector = collector.add(metric, value, task_id=task_id, metadata=about)
    return collector


def test_adding_gives_a_new_value_and_leaves_the_old_one() -> None:
    empty = MetricsCollector.new()
    one = empty.add("latency", 100)
    left, right = one.add("latency", 200), one.add("latency", 300)
    assert empty.values("latency") == ()
    assert one.values("latency") == (100.0,)
    assert left.values("latency") == (100.0, 200.0)
    assert right.values("latency") == (100.0, 300.0)
    assert one.count("latency") == 1
    assert one != left != right


def test_what_was_passed_in_is_frozen() -> None:
    metadata = {"tags": ["nightly"]}
    collector = MetricsCollector.new(metadata).add("cost", 1, metadata=metadata)
    metadata["tags"].append("changed")
    assert collector.metadata == collector.measurements[0].metadata == {"tags": ["nightly"]}
    with pytest.raises(TypeError):
        collector.metadata["x"] = 1
    with pytest.raises(AttributeError):
        collector.metadata = {}


def test_a_value_that_is_refused_leaves_the_collector_as_it_was() -> None:
    collector = collect("quality", 0.5)
    with pytest.raises(ValueError, match="quality must be 0 to 1"):
        collector.add("quality", 1.5)
    with pytest.raises(ValueError, match="latency must be a finite number"):
        collector.add("latency", math.nan)
    assert collector.values("quality") == (0.5,)


def test_adding_is_linear() -> None:
    def add(count: int) -> None:
        collector = MetricsCollector.new()
        for number in range(count):
            collector = collector.add("latency", number)
        assert collector.count("latency") == count

    assert count_calls(lambda: add(4_000)) < 5 * count_calls(lambda: add(1_000))


def test_absent_is_absent_and_never_zero() -> None:
    empty = collect("cost", 1.0)
    assert empty.values("quality") == ()
    assert empty.count("quality") == 0
    assert empty.stats("quality") is None
    assert empty.aggregate(["quality", "cost"]).keys() == {"cost"}
    assert empty.confidence_interval("quality") is None
    assert empty.across_tasks("quality") is None
    assert empty.fitness() is None
    assert empty.stats("cost", task_id="nightly") is None
    assert MetricsCollector.new().aggregate() == {}


def test_tasks_and_metrics_are_listed_once() -> None:
    collector = collect("quality", 0.1, b=[0.2], a=[0.3, 0.4]).add("cost", 1, task_id="c")
    assert collector.task_ids == ("a", "b", "c")
    assert collector.metrics == ("quality", "cost")


def test_figures_can_be_asked_of_one_task() -> None:
    collector = collect("quality", 0.9, a=[0.2, 0.4], b=[1.0]).add("latency", 5_000, task_id="a")
    assert collector.values("quality", "a") == (0.2, 0.4)
    assert collector.count("quality", task_id="a") == 2
    stats = collector.stats("quality", task_id="a")
    assert stats is not None
    assert stats.mean == pytest.approx(0.3)
    assert collector.aggregate(task_id="b").keys() == {"quality"}
    interval = collector.confidence_interval("quality", task_id="a")
    assert interval is not None
    assert interval.sample_size == 2
    assert collector.fitness(task_id="a") == pytest.approx((0.3 * 0.3 + 0.1 * 0.5) / 0.4)
    assert collector.fitness(task_id="b") == 1.0


def test_aggregate_describes_each_metric() -> None:
    collector = collect("quality", 0.2, 0.4).add("latency", 3)
    assert collector.aggregate() == {"quality": collector.stats("quality"), "latency": collector.stats("latency")}
    assert list(collector.aggregate(iter(["latency"]))) == ["latency"]
    with pytest.raises(ValueError, match="metrics must be several names"):
        collector.aggregate("quality")


@pytest.mark.parametrize("metric", ["", None, 3])
def test_a_metric_without_a_name_is_refused(metric: Any) -> None:
    for ask in (MetricsCollector.new().values, MetricsCollector.new().stats, MetricsCollector.new().across_tasks):
        with pytest.raises(ValueError, match="metric must be text"):
            ask(metric)


def test_rates_get_wilson_and_other_bounded_values_are_clamped() -> None:
    rate = collect("success_rate", 1, 1, 1).confidence_interval("success_rate")
    assert rate is not None
    assert (rate.upper, rate.mean) == (1.0, 1.0)
    assert rate.lower == pytest.approx(0.4385, abs=1e-4)
    assert collect("quality", 0.2, 0.95).confidence_interval("quality", 0.99) == ConfidenceInterval(
        lower=0.0,
        upper=1.0,
        mean=0.575,
        margin_of_error=pytest.approx(23.8713, rel=1e-5),
        confidence=0.99,
        sample_size=2,
    )
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        collect("quality").confidence_interval("quality", 95)


def test_macro_counts_tasks_and_micro_counts_values() -> None:
    across = collect("quality", a=[1.0, 1.0, 1.0], b=[0.2], c=[0.6]).across_tasks("quality")
    assert across is not None
    assert across.macro == pytest.approx(0.6)
    assert across.micro == pytest.approx(3.8 / 5)
    assert (across.worst_task, across.worst) == ("b", 0.2)
    assert across.by_task == {"a": 1.0, "b": 0.2, "c": 0.6}
    assert json.loads(json.dumps(across.to_dict())) == across.to_dict()


def test_the_worst_latency_is_the_highest_and_of_equal_tasks_the_first_by_name_is_worst() -> None:
    slow = collect("latency", z=[10.0], a=[500.0], b=[500.0]).across_tasks("latency")
    assert slow is not None
    assert (slow.worst_task, slow.worst) == ("a", 500.0)
    low = collect("quality", z=[0.1], y=[0.1]).across_tasks("quality")
    assert low is not None
    assert low.worst_task == "y"


def test_values_without_a_task_count_in_micro_alone() -> None:
    across = collect("quality", 0.0, a=[1.0]).across_tasks("quality")
    assert across is not None
    assert (across.macro, across.micro) == (1.0, 0.5)
    assert collect("quality", 0.0).across_tasks("quality") is None


def test_merging_counts_no_value_twice() -> None:
    shared = collect("latency", 1, 2)
    left, right = shared.add("latency", 3), shared.add("latency", 4)
    merged = MetricsCollector.merge([left, right])
    assert sorted(merged.values("latency")) == [1, 2, 3, 4]
    assert MetricsCollector.merge([merged, left, right, merged]) == merged


def test_equal_values_that_were_added_twice_count_twice() -> None:
    assert MetricsCollector.merge([collect("latency", 5, 5), collect("latency", 5)]).count("latency") == 3


def test_merging_keeps_the_order_of_adding() -> None:
    collector = MetricsCollector.new()
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    for number in range(500):
        collector = collector.add("latency", number, timestamp=moment)
    assert MetricsCollector.merge([collector]).values("latency") == tuple(range(500))
    fresh = collect("latency", *range(500))
    assert MetricsCollector.merge([fresh, fresh]).values("latency") == fresh.values("latency")


def test_merging_nothing_gives_an_empty_collector() -> None:
    assert MetricsCollector.merge([]).measurements == ()


@given(additions, additions, additions)
def test_merging_is_commutative_associative_and_idempotent(one: Any, two: Any, three: Any) -> None:
    first = add_all(one, run=1)
    second, third = add_all(two, run=2, by="x"), MetricsCollector.merge([first, add_all(three)])
    merged = MetricsCollector.merge([first, second, third])
    for shuffled in permutations([first, second, third]):
        other = MetricsCollector.merge(shuffled)
        assert other == merged
        assert other.measurements == merged.measurements
    assert MetricsCollector.merge([first, MetricsCollector.merge([second, third])]) == merged
    assert MetricsCollector.merge([merged, merged]) == merged
    assert MetricsCollector.merge([first]) == MetricsCollector.merge([first, first]) == first
    assert merged.created_at == first.created_at
    assert merged.metadata == {"run": 1, "by": "x"}


@given(additions)
def test_collector_survives_its_dict_form(added: Any) -> None:
    collector = add_all(added, name="batch")
    text = json.dumps(collector.to_dict(), allow_nan=False)
    back = MetricsCollector.from_dict({**json.loads(text), "unknown": 1})
    assert back == collector
    assert back.measurements == collector.measurements
    assert hash(back) == hash(collector)
    assert MetricsCollector.merge([back, collector]) == collector
    assert pickle.loads(pickle.dumps(collector)) == copy.deepcopy(collector) == collector


def test_dict_form_is_json_whatever_the_metadata() -> None:
    collector = MetricsCollector.new({"raw": b"\xff", "bad": math.nan}).add("cost", 1, metadata={"set": {1}})
    json.dumps(collector.to_dict(), allow_nan=False)


def test_a_value_that_a_dict_form_holds_twice_counts_once() -> None:
    mapping = collect("cost", 1.0).to_dict()
    mapping["measurements"] *= 2
    assert MetricsCollector.from_dict(mapping).count("cost") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 99}, "schema_version 99 is not known here"),
        ({"schema_version": "1"}, "schema_version '1' is not known here"),
        ({"created_at": None}, "created_at must be ISO-8601"),
        ({"measurements": None}, "measurements must be a list"),
        ({"measurements": [1]}, "measurements must be a list"),
        ({"metadata": 1}, "metadata must be a mapping"),
    ],
)
def test_a_dict_form_that_is_wrong_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MetricsCollector.from_dict({**collect("cost", 1.0).to_dict(), **changes})


def test_equality_is_of_values_and_not_of_their_order() -> None:
    collector = collect("cost", 1, 2)
    mapping = collector.to_dict()
    mapping["measurements"].reverse()
    assert MetricsCollector.from_dict(mapping) == collector
    assert collector != collector.add("cost", 3)
    assert collector != "collector"


def test_values_may_be_of_any_time() -> None:
    late = datetime(2026, 1, 31, tzinfo=UTC)
    collector = MetricsCollector.new().add("cost", 1, timestamp=late).add("cost", 2, timestamp=late - timedelta(days=1))
    assert collector.values("cost") == (1.0, 2.0)
    assert MetricsCollector.merge([collector]).values("cost") == (2.0, 1.0)


def test_threads_that_add_to_one_collector_lose_nothing() -> None:
    start = collect("cost", 0.0)

    def add_many(number: int) -> MetricsCollector:
        collector = start
        for _ in range(200):
            collector = collector.add("cost", number)
        return collector

    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(add_many, range(1, 5)))
    assert [part.count("cost") for part in parts] == [201] * 4
    assert MetricsCollector.merge(parts).count("cost") == 801


def test_the_largest_values_give_figures_or_none_and_never_nonsense() -> None:
    largest = sys.float_info.max
    collector = collect("cost", a=[largest, -largest], b=[largest])
    stats, across = collector.stats("cost"), collector.across_tasks("cost")
    assert stats is not None
    assert across is not None
    assert stats.mean == pytest.approx(largest / 3)
    assert across.macro == pytest.approx(largest / 2)
    assert collector.confidence_interval("cost") is None


def test_batches_are_compared_by_the_means_of_their_tasks() -> None:
    before = collect("quality", 0.0, a=[0.2, 0.4], b=[0.5], c=[0.1])
    after = collect("quality", 1.0, a=[0.5], b=[0.6, 0.8], d=[0.9])
    comparison = compare_metrics(before, after, "quality")
    assert comparison is not None
    assert comparison.pairs == 2
    assert comparison.mean_difference == pytest.approx(0.2)
    assert compare_metrics(before, after, "accuracy") is None
    assert compare_metrics(before, before, "quality").effect_size == 0.0


def test_comparison_refuses_a_level_or_a_metric_that_is_none() -> None:
    collector = collect("quality", a=[0.5], b=[0.5])
    with pytest.raises(ValueError, match="level must be"):
        compare_metrics(collector, collector, "quality", 1)
    with pytest.raises(ValueError, match="metric must be text"):
        compare_metrics(collector, collector, "")


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def measure(metric: Any, value: Any, **fields: Any) -> Measurement:
    return Measurement(id="value_1", metric=metric, value=value, timestamp=NOON, **fields)


@pytest.mark.parametrize("metric", ["success_rate", "quality", "accuracy", "latency", "cost"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, np.float64("nan")])
def test_what_is_not_finite_is_refused(metric: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{metric} must be a finite number"):
        measure(metric, value)


@pytest.mark.parametrize("value", ["0.5", None, 1j, [0.5], b"1"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="quality must be a finite number"):
        measure("quality", value)


@pytest.mark.parametrize("metric", ["success_rate", "quality", "accuracy"])
@pytest.mark.parametrize("value", [-0.01, 1.0000001, 95, -1e300, -5e-324])
def test_bounded_metrics_refuse_values_outside(metric: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{metric} must be 0 to 1, not"):
        measure(metric, value)


def test_latency_refuses_what_is_negative() -> None:
    with pytest.raises(ValueError, match=r"latency must be 0 milliseconds or more, not -1\.0"):
        measure("latency", -1)
    assert measure("latency", 1e300).value == 1e300


def test_custom_metrics_take_any_finite_number() -> None:
    assert measure("cost", -1e300).value == -1e300


@pytest.mark.parametrize("value", [1, True, Fraction(1), np.float32(1), np.int64(1)])
def test_any_real_number_becomes_a_float(value: object) -> None:
    kept = measure("success_rate", value).value
    assert kept == 1.0
    assert type(kept) is float


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metric": ""}, "metric must be text"),
        ({"metric": None}, "metric must be text"),
        ({"task_id": " "}, "task_id must be text"),
        ({"task_id": 7}, "task_id must be text"),
        ({"timestamp": datetime(2026, 1, 1)}, "timestamp must be an aware datetime"),  # noqa: DTZ001 - refused
        ({"metadata": "x"}, "metadata must be a mapping"),
        ({"id": ""}, "id must be text"),
    ],
)
def test_fields_that_are_not_allowed_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Measurement(**{"id": "value_1", "metric": "cost", "value": 1.0, "timestamp": NOON, **fields})


def test_metadata_is_frozen() -> None:
    given_metadata = {"tags": ["a"]}
    measurement = measure("cost", 1.0, metadata=given_metadata)
    given_metadata["tags"].append("b")
    assert measurement.metadata == {"tags": ["a"]}
    with pytest.raises(TypeError):
        measurement.metadata["tags"].append("c")


def test_time_is_kept_in_utc() -> None:
    moment = NOON.astimezone(timezone(timedelta(hours=5)))
    assert Measurement("value_1", "cost", 1.0, moment).timestamp.tzinfo is UTC


@given(
    st.sampled_from(["latency", "cost"]),
    st.floats(0, 1e308),
    st.none() | st.just("a"),
    st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.booleans()),
)
def test_measurement_survives_its_dict_form(
    metric: str, value: float, task_id: str | None, metadata: dict[str, object]
) -> None:
    measurement = measure(metric, value, task_id=task_id, metadata=metadata)
    text = json.dumps(measurement.to_dict(), allow_nan=False)
    assert Measurement.from_dict({**json.loads(text), "unknown": 1}) == measurement


@pytest.mark.parametrize("key", ["id", "metric", "value", "timestamp"])
def test_a_missing_key_is_named(key: str) -> None:
    mapping = measure("cost", 1.0).to_dict()
    del mapping[key]
    with pytest.raises(ValueError, match=key):
        Measurement.from_dict(mapping)


def test_latency_has_no_highest_value() -> None:
    assert not limits_of("latency").is_bounded
    assert limits_of("accuracy").is_bounded


def test_measurement_can_stand_in_a_set() -> None:
    assert len({measure("cost", 1.0), measure("cost", 1.0)}) == 1


START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def ended(outcome: str = "success", duration_ms: int = 250, **metadata: Any) -> Trajectory:
    return Trajectory.new(metadata, started_at=START).complete(
        outcome, completed_at=START + timedelta(milliseconds=duration_ms)
    )


def values_of(trajectory: Trajectory) -> dict[str, float]:
    return {one.metric: one.value for one in measure_trajectory(trajectory)}


@pytest.mark.parametrize(
    ("outcome", "rate"), [("success", 1.0), ("failure", 0.0), ("timeout", 0.0), ("error", 0.0), ("partial", 0.0)]
)
def test_success_comes_from_the_outcome_and_latency_from_the_duration(outcome: str, rate: float) -> None:
    assert values_of(ended(outcome)) == {"success_rate": rate, "latency": 250.0}


def test_quality_and_accuracy_come_from_the_metadata() -> None:
    assert values_of(ended(quality=0.8, accuracy=1)) == {
        "success_rate": 1.0,
        "latency": 250.0,
        "quality": 0.8,
        "accuracy": 1.0,
    }


def test_an_open_trajectory_tells_no_success_and_no_latency() -> None:
    assert values_of(Trajectory.new()) == {}
    assert values_of(Trajectory.new({"quality": 0.5})) == {"quality": 0.5}


@pytest.mark.parametrize("quality", ["good", None, [0.5], {"score": 0.5}])
def test_words_are_no_measurement(quality: object) -> None:
    assert "quality" not in values_of(ended(quality=quality))


@pytest.mark.parametrize("quality", [1.5, -1, math.nan, math.inf])
def test_a_number_that_is_not_allowed_is_refused_with_the_trajectory_and_the_metric(quality: float) -> None:
    trajectory = ended(quality=quality)
    with pytest.raises(ValueError, match=f"trajectory {trajectory.id}: quality must be"):
        MetricsCollector.from_trajectories([ended(), trajectory])


@pytest.mark.parametrize(("given_id", "task_id"), [("load", "load"), (" ", None), (7, None), (None, None)])
def test_the_task_comes_from_the_metadata(given_id: object, task_id: str | None) -> None:
    assert {one.task_id for one in measure_trajectory(ended(task_id=given_id))} == {task_id}


def test_values_have_the_time_of_the_end() -> None:
    assert {one.timestamp for one in measure_trajectory(ended())} == {START + timedelta(milliseconds=250)}


def test_a_trajectory_that_comes_twice_counts_once() -> None:
    one, other = ended(), ended("failure")
    both = MetricsCollector.from_trajectories(iter([one, other, one]))
    assert both.values("success_rate") == (1.0, 0.0)
    again = MetricsCollector.from_trajectories([other])
    merged = MetricsCollector.merge([both, again, both.add("latency", 750)])
    assert merged.count("success_rate") == 2
    assert merged.count("latency") == 3


def test_values_stand_in_the_order_of_the_trajectories() -> None:
    collector = MetricsCollector.from_trajectories(ended(duration_ms=number) for number in (30, 10, 20))
    assert collector.values("latency") == (30.0, 10.0, 20.0)


def test_no_trajectories_make_an_empty_collector() -> None:
    assert MetricsCollector.from_trajectories([]).measurements == ()


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


LARGEST = sys.float_info.max
batches = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1e3, 1e3))


def compare(before: list[float], after: list[float], level: float = 0.95) -> MetricComparison:
    names = [f"task-{number}" for number in range(len(before))]
    comparison = compare_task_means(dict(zip(names, before, strict=True)), dict(zip(names, after, strict=True)), level)
    assert comparison is not None
    return comparison


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_paired_comparison_is_that_of_scipy(level: float) -> None:
    before, after = [0.5, 0.6, 0.4, 0.7, 0.55], [0.6, 0.65, 0.55, 0.7, 0.7]
    comparison = compare(before, after, level)
    expected = stats.ttest_rel(after, before).confidence_interval(level)
    assert (comparison.lower, comparison.upper) == pytest.approx((expected.low, expected.high), rel=1e-10)
    differences = [second - first for first, second in zip(before, after, strict=True)]
    assert comparison.mean_difference == pytest.approx(0.09)
    assert comparison.effect_size == pytest.approx(0.09 / float(stats.tstd(differences)), rel=1e-10)
    assert comparison.pairs == 5


def test_only_tasks_that_both_have_are_compared() -> None:
    comparison = compare_task_means({"a": 1.0, "b": 2.0, "c": 9.0}, {"b": 4.0, "a": 2.0, "d": 0.0}, 0.95)
    assert comparison is not None
    assert (comparison.mean_difference, comparison.pairs) == (1.5, 2)


@pytest.mark.parametrize("after", [{}, {"a": 1.0}, {"c": 1.0, "d": 2.0}])
def test_fewer_than_two_common_tasks_are_not_compared(after: dict[str, float]) -> None:
    assert compare_task_means({"a": 1.0, "b": 2.0}, after, 0.95) is None


def test_no_difference_has_no_effect() -> None:
    assert compare([0.1, 0.7, 0.3], [0.1, 0.7, 0.3]) == MetricComparison(0.0, 0.0, 0.0, 0.0, 3)


def test_the_same_difference_everywhere_has_no_finite_effect_size() -> None:
    # .2 - .1 and .3 - .2 are not the same float.
    comparison = compare([0.1, 0.2, 0.6], [0.2, 0.3, 0.7])
    assert comparison.mean_difference == pytest.approx(0.1)
    assert comparison.lower == comparison.upper == comparison.mean_difference
    assert comparison.effect_size is None


def test_differences_that_no_float_can_hold_are_not_compared() -> None:
    assert compare_task_means({"a": -LARGEST, "b": 0.0}, {"a": LARGEST, "b": 1.0}, 0.95) is None
    assert compare_task_means({"a": 0.0, "b": 0.0}, {"a": LARGEST, "b": -LARGEST}, 0.95) is None
    assert compare_task_means({"a": 0.0, "b": 0.0}, {"a": LARGEST, "b": LARGEST / 2}, 0.95) is None


def test_large_and_small_differences_keep_their_effect_size() -> None:
    plain = compare([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).effect_size
    assert compare([0.0, 0.0, 0.0], [1e300, 2e300, 3e300]).effect_size == pytest.approx(plain)
    assert compare([0.0, 0.0, 0.0], [1e-310, 2e-310, 3e-310]).effect_size == pytest.approx(plain)


@given(batches, batches)
def test_comparing_the_other_way_round_turns_the_sign(before: dict[str, float], after: dict[str, float]) -> None:
    there, back = compare_task_means(before, after, 0.9), compare_task_means(after, before, 0.9)
    if there is None or back is None:
        assert there is back is None
        return
    assert there.mean_difference == -back.mean_difference
    assert (there.lower, there.upper) == (-back.upper, -back.lower)
    assert (there.effect_size is None) == (back.effect_size is None)
    json.dumps(there.to_dict(), allow_nan=False)


shares = st.floats(0.0, 1.0)
means = st.fixed_dictionaries(
    {},
    optional={
        "success_rate": shares,
        "quality": shares,
        "accuracy": shares,
        "latency": st.floats(0.0, 1e308),
        "cost": st.floats(allow_nan=False, allow_infinity=False),
    },
)
ALL = {"success_rate": 0.9, "quality": 0.8, "accuracy": 0.7, "latency": 2_000.0}


def test_weights_are_those_of_success_quality_accuracy_and_latency() -> None:
    assert score_means(ALL, None, "weighted") == pytest.approx(0.4 * 0.9 + 0.3 * 0.8 + 0.2 * 0.7 + 0.1 * 0.8)


def test_geometric_mean_is_weighted_too() -> None:
    assert score_means(ALL, None, "geometric") == pytest.approx(0.9**0.4 * 0.8**0.3 * 0.7**0.2 * 0.8**0.1)


def test_weights_are_shared_among_the_metrics_present() -> None:
    present = {"success_rate": 1.0, "latency": 5_000.0, "cost": 3.0}
    assert score_means(present, None, "weighted") == pytest.approx((0.4 * 1.0 + 0.1 * 0.5) / 0.5)


@pytest.mark.parametrize(("latency", "score"), [(0.0, 1.0), (2_500.0, 0.75), (10_000.0, 0.0), (1e300, 0.0)])
def test_latency_scores_by_ten_seconds(latency: float, score: float) -> None:
    assert score_means({"latency": latency}, None, "weighted") == score


@pytest.mark.parametrize("present", [{}, {"cost": 5.0}])
def test_weightless_metrics_have_no_fitness(present: dict[str, float]) -> None:
    assert score_means(present, None, "weighted") is None
    assert score_means(present, None, "geometric") is None


def test_weights_given_stand_in_place_of_the_usual_ones() -> None:
    assert score_means(ALL, {"quality": 3, "accuracy": 1}, "weighted") == pytest.approx((3 * 0.8 + 0.7) / 4)
    assert score_means(ALL, {"quality": 0.0}, "weighted") is None
    assert score_means(ALL, {}, "weighted") is None


def test_one_score_of_zero_makes_the_geometric_mean_zero_unless_it_has_no_weight() -> None:
    present = {"success_rate": 0.0, "quality": 1.0}
    assert score_means(present, None, "geometric") == 0.0
    assert score_means(present, {"success_rate": 0, "quality": 1}, "geometric") == 1.0


@pytest.mark.parametrize("method", ["weighted", "geometric"])
@pytest.mark.parametrize("weight", [sys.float_info.max, 5e-324])
def test_the_size_of_the_weights_does_not_matter(weight: float, method: str) -> None:
    weights = dict.fromkeys(ALL, weight)
    assert score_means(ALL, weights, method) == pytest.approx(score_means(ALL, dict.fromkeys(ALL, 1.0), method))


@given(means)
def test_fitness_lies_between_the_scores_and_the_geometric_one_is_no_higher(means: dict[str, float]) -> None:
    weighted, geometric = score_means(means, None, "weighted"), score_means(means, None, "geometric")
    if weighted is None or geometric is None:
        assert weighted is geometric is None
        assert not means.keys() & DEFAULT_WEIGHTS.keys()
        return
    assert 0.0 <= geometric <= weighted * (1 + 1e-12) + 1e-300 <= 1.0 + 1e-11
    assert math.isfinite(weighted)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"cost": 1.0}, "'cost' has no score"),
        ({"sucess_rate": 1.0}, "'sucess_rate' has no score"),
        ({"quality": -0.1}, "that of quality must be a finite number"),
        ({"quality": math.nan}, "that of quality must be"),
        ({"quality": math.inf}, "that of quality must be"),
        ({"quality": 10**400}, "that of quality must be"),
        ({"quality": "1"}, "that of quality must be"),
        ([("quality", 1)], "weights must be a mapping"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_means(ALL, weights, "weighted")


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="method 'harmonic' is unknown: give one of weighted, geometric"):
        score_means(ALL, None, "harmonic")
