from __future__ import annotations

import pytest

from pytest_golden.trajectory.insight.analysis import find_failures
from pytest_golden.trajectory.model import Trajectory
from tests.trajectory.analysis.runs import (
    failed_dbt_run,
    failed_odibi_run,
    looping_agent,
    passed_odibi_run,
    run,
    shell_timeout,
)


def test_failed_node_of_an_odibi_run_is_the_failure_point() -> None:
    trajectory = failed_odibi_run()
    (point,) = find_failures(trajectory)
    assert (point.category, point.severity) == ("tool_failure", "critical")
    assert point.description == "join_orders failed: KeyError: 'customer_id'"
    assert point.step_id == trajectory.steps[2].id
    assert point.context == {
        "index": 2,
        "step": "join_orders",
        "type": "action",
        "error": "KeyError: 'customer_id'",
        "previous_step": "load_orders",
        "recovered": False,
        "metadata": {"reader": "odibi", "status": "failed"},
    }


def test_failed_dbt_test_is_an_error_beside_the_news_of_the_end() -> None:
    test, end = find_failures(failed_dbt_run())
    assert test.category == "error"
    assert test.description.startswith("test.shop.not_null_orders_amount failed: Got 3 results")
    assert (end.category, end.severity, end.step_id) == ("error", "critical", None)
    assert end.description == "it ended in an error: exit code 1"


def test_end_beside_a_failed_step_is_no_worse_than_the_step() -> None:
    call, end = find_failures(run(("tool_call", "query", {"error": "no such table"}), outcome="error", error="gave up"))
    assert (call.severity, end.severity) == ("medium", "medium")
    call, end = find_failures(
        run(("tool_call", "query", {"error": "busy"}), ("tool_call", "query"), outcome="error", error="crashed")
    )
    assert (call.severity, end.severity) == ("low", "critical")


def test_timeout_of_a_silent_script_is_told_once() -> None:
    trajectory = shell_timeout()
    (point,) = find_failures(trajectory)
    assert (point.category, point.severity) == ("timeout", "high")
    assert point.step_id == trajectory.steps[-1].id
    assert "time limit of 10 s reached" in point.description


def test_timeout_without_a_step_has_no_step_id() -> None:
    (point,) = find_failures(run(outcome="timeout"))
    assert (point.category, point.step_id, point.description) == ("timeout", None, "the time limit was reached")


def test_every_failing_call_of_an_agent_and_its_timeout_are_points() -> None:
    points = find_failures(looping_agent())
    assert [point.category for point in points] == ["tool_failure"] * 6 + ["timeout"]


def test_successful_run_has_no_failure_point() -> None:
    assert find_failures(passed_odibi_run()) == ()


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("tool_call", "tool_failure"),
        ("action", "tool_failure"),
        ("state_change", "state_error"),
        ("reasoning", "logical_error"),
        ("observation", "error"),
    ],
)
def test_category_comes_from_the_type_of_the_step(kind: str, category: str) -> None:
    (point,) = find_failures(run((kind, "it", {"failed": True}), outcome="failure"))
    assert (point.category, point.description) == (category, "it failed")


def test_severity_is_the_importance_of_the_step() -> None:
    trajectory = Trajectory.new()
    for importance in ("low", "medium", "high", "critical"):
        trajectory = trajectory.add_step("action", importance, importance=importance, metadata={"error": importance})
    points = find_failures(trajectory.complete("failure"))
    assert [point.severity for point in points] == ["low", "medium", "high", "critical"]
    assert points[0].description == "low failed"


def test_step_that_worked_later_was_recovered() -> None:
    first, second = find_failures(
        run(
            ("tool_call", "query", {"error": "no such table"}),
            ("tool_call", "query"),
            ("tool_call", "write", {"error": "disk full"}),
            outcome="failure",
        )
    )
    assert (first.severity, first.context["recovered"]) == ("low", True)
    assert first.description == "query failed: no such table (recovered)"
    assert (second.severity, second.context["recovered"]) == ("medium", False)


def test_failures_of_a_successful_run_were_recovered() -> None:
    (point,) = find_failures(run(("action", "load", {"error": "busy"}), ("action", "load from the mirror")))
    assert point.severity == "low"


def test_parent_that_passes_on_the_error_of_its_child_is_no_point() -> None:
    trajectory = Trajectory.new().add_step("action", "pipeline", metadata={"error": True})
    trajectory = trajectory.add_step("action", "load", parent_step_id=trajectory.steps[0].id, metadata={"error": True})
    trajectory = trajectory.add_step(
        "action", "read", parent_step_id=trajectory.steps[1].id, metadata={"error": "OSError: gone"}
    )
    (point,) = find_failures(trajectory.complete("failure", "OSError: gone"))
    assert point.step_id == trajectory.steps[2].id


def test_parent_with_an_error_of_its_own_is_a_point() -> None:
    trajectory = Trajectory.new().add_step("action", "load", metadata={"error": "2 of 5 files lost"})
    trajectory = trajectory.add_step(
        "action", "read", parent_step_id=trajectory.steps[0].id, metadata={"error": "OSError: gone"}
    )
    assert len(find_failures(trajectory.complete("partial"))) == 3


@pytest.mark.parametrize(("outcome", "severity"), [("partial", "medium"), (None, "low")])
def test_what_was_not_finished_is_incomplete(outcome: str | None, severity: str) -> None:
    (point,) = find_failures(run(("action", "load"), outcome=outcome))
    assert (point.category, point.severity, point.step_id) == ("incomplete", severity, None)


@pytest.mark.parametrize("outcome", ["failure", "error"])
def test_failure_that_nothing_explains_is_unknown(outcome: str) -> None:
    (point,) = find_failures(run(("action", "load"), outcome=outcome))
    assert (point.category, point.severity) == ("unknown", "high")
    assert point.context == {"outcome": outcome, "error": None}


def test_critical_observation_explains_a_failure_without_an_error() -> None:
    trajectory = Trajectory.new().add_step("observation", "cannot start: no odibi", importance="critical")
    (point,) = find_failures(trajectory.complete("error"))
    assert (point.category, point.step_id) == ("error", trajectory.steps[0].id)
    assert point.description == "cannot start: no odibi"


def test_descriptions_and_contexts_are_bounded_whatever_the_content() -> None:
    metadata = {"error": "x\n" * 100_000, **{f"key {number}": "y" * 10_000 for number in range(100)}}
    (point,) = find_failures(run(("action", {"rows": ["z" * 1_000_000]}, metadata), outcome="failure"))
    assert len(point.description) < 500
    assert len(str(dict(point.context))) < 5_000
