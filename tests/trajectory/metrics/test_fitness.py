from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.metrics import DEFAULT_WEIGHTS, score_means

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
