from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.rules import extract_plan_by_rules

if TYPE_CHECKING:
    from tests.learning.conftest import MakeOutcome


def test_strategy_names_the_steps_in_order(make_outcome: MakeOutcome) -> None:
    outcome = make_outcome(execution_path=["a", "b", "c"])
    plan = extract_plan_by_rules(outcome)
    assert plan.strategy_description == "Sequential execution: a → b → c"
    assert plan.tools_sequence == ("a", "b", "c")
    assert plan.key_decisions == ("Started with a", "Ended with c")
    assert plan.plan_id == f"plan_{outcome.outcome_id}"
    assert plan.timestamp == outcome.timestamp
    assert extract_plan_by_rules(outcome) == plan


def test_repeated_step_is_a_decision(make_outcome: MakeOutcome) -> None:
    assert "Repeated b" in extract_plan_by_rules(make_outcome(execution_path=["a", "b", "b"])).key_decisions


@pytest.mark.parametrize(
    ("steps", "pattern", "confidence"),
    [
        (0, "direct_implementation", 0.5),
        (1, "direct_implementation", 0.8),
        (2, "direct_implementation", 0.8),
        (3, "iterative_refinement", 0.8),
        (5, "iterative_refinement", 0.8),
        (6, "complex_multi_step", 0.8),
        (1000, "complex_multi_step", 0.8),
    ],
)
def test_pattern_and_confidence_follow_from_the_length(
    make_outcome: MakeOutcome, steps: int, pattern: str, confidence: float
) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=["s"] * steps))
    assert (plan.reasoning_pattern, plan.confidence) == (pattern, confidence)


def test_empty_path_says_so(make_outcome: MakeOutcome) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=[]))
    assert plan.strategy_description.startswith("Sequential execution: ")
    assert plan.key_decisions == ()


@pytest.mark.parametrize(("seconds", "is_fast"), [(0.0, True), (4.999, True), (5.0, False), (None, False)])
def test_only_a_known_time_below_five_seconds_is_fast(
    make_outcome: MakeOutcome, seconds: float | None, is_fast: bool
) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_time=seconds))
    assert any("Fast" in factor for factor in plan.success_factors) is is_fast


@pytest.mark.parametrize(("seconds", "is_slow"), [(30.0, False), (30.1, True), (None, False)])
def test_more_than_thirty_seconds_is_slow(make_outcome: MakeOutcome, seconds: float | None, is_slow: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_time=seconds))
    assert any("Slow" in factor for factor in plan.failure_factors) is is_slow


@pytest.mark.parametrize(("steps", "is_short", "is_long"), [(5, True, False), (6, False, False), (11, False, True)])
def test_length_of_the_path_is_a_factor(make_outcome: MakeOutcome, steps: int, is_short: bool, is_long: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=["s"] * steps))
    assert any("Short" in factor for factor in plan.success_factors) is is_short
    assert any("Long" in factor for factor in plan.failure_factors) is is_long


@pytest.mark.parametrize(
    ("result", "is_explicit"),
    [({"status": "success"}, True), ({"status": "PASSED"}, True), ({"status": "failed"}, False), ("success", False)],
)
def test_explicit_status_is_a_factor(make_outcome: MakeOutcome, result: object, is_explicit: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(result=result))
    assert ("Explicit success status" in plan.success_factors) is is_explicit


def test_error_is_a_failure_factor_and_long_ones_are_cut(make_outcome: MakeOutcome) -> None:
    plan = extract_plan_by_rules(make_outcome(success=False, error_message="no such column" + "x" * 5000))
    (factor,) = plan.failure_factors
    assert factor.startswith("Error: no such column")
    assert len(factor) < 600
