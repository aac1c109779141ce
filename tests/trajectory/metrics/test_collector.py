from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden import ConfidenceInterval, MetricsCollector, compare_metrics
from tests.patience import count_calls, without_hanging

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
    # No call is made where tuples are copied whole, but of so many that would take minutes.
    with without_hanging():
        add(200_000)


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
