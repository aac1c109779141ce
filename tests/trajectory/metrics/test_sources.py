from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_golden import MetricsCollector, Trajectory
from pytest_golden.trajectory.insight.metrics import measure_trajectory

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
