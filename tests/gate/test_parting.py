from __future__ import annotations

from typing import Any

from pytest_golden.history.changes import describe_parting
from pytest_golden.trajectory.model import Trajectory


def run_of(*steps: Any) -> Trajectory:
    trajectory = Trajectory.new()
    for step in steps:
        content, metadata = step if isinstance(step, tuple) else (step, {})
        trajectory = trajectory.add_step("action", content, metadata=metadata)
    return trajectory


def test_run_that_took_the_same_steps_did_not_part() -> None:
    assert describe_parting(run_of("a"), run_of("a")) is None
    assert describe_parting(run_of("a").complete(), run_of("a").complete("failure")) is None


def test_run_that_ended_or_went_on_is_told() -> None:
    assert describe_parting(run_of("a", "b"), run_of("a")) == "step 2: the good run went on with 'b', this one ended"
    assert describe_parting(run_of("a"), run_of("a", "b")) == "step 2: the good run ended, this one went on with 'b'"


def test_step_that_went_otherwise_is_told() -> None:
    good, present = run_of("a", ("load", {"rows": 100})), run_of("a", ("load", {"rows": 90}))
    assert describe_parting(good, present) == "step 2, 'load': rows 100 -> 90"
    assert describe_parting(run_of("a", "b"), run_of("a", "x")) == "step 2, 'b': content 'b' -> 'x'"


def test_order_of_steps_that_run_side_by_side_is_no_difference() -> None:
    good = run_of("a", "b", "c", "d")
    assert describe_parting(good, run_of("c", "a", "d", "b")) is None
    assert describe_parting(good, run_of("b", ("a", {"error": "boom"}), "c", "d")) == ("step 1, 'a': it failed")
    assert describe_parting(good, run_of("b", "a", "x", "c", "d")) == (
        "step 5: the good run ended, this one went on with 'x'"
    )


def test_order_counts_where_steps_have_no_names_of_their_own() -> None:
    assert describe_parting(run_of("a", "b", "a"), run_of("b", "a", "a")) == "step 1, 'a': content 'a' -> 'b'"
    assert describe_parting(run_of({"x": 1}, "b"), run_of("b", {"x": 1})) == (
        """step 1, {"x": 1}: content {"x": 1} -> 'b'"""
    )


def test_note_of_the_harness_is_no_step() -> None:
    note = Trajectory.new().add_step("observation", "boom", metadata={"error": "boom"})
    assert describe_parting(Trajectory.new(), note) is None
    assert describe_parting(run_of("a"), note) == "step 1: the good run went on with 'a', this one ended"
    assert describe_parting(note, run_of("a")) == "step 1: the good run ended, this one went on with 'a'"
    own = Trajectory.new().add_step("observation", "boom", metadata={"error": "another"})
    assert describe_parting(Trajectory.new(), own) == "step 1: the good run ended, this one went on with 'boom'"


def test_step_that_failed_is_told_without_its_error() -> None:
    good = run_of(("load", {"rows": 3}))
    told = "step 1, 'load': it failed, rows 3 -> 2"
    assert describe_parting(good, run_of(("load", {"rows": 2, "error": "boom"}))) == told
    many = {"error": "boom", "rows": 1, "a": 1, "b": 1, "c": 1}
    told = "step 1, 'load': it failed, rows 3 -> 1, a (not reported) -> 1 and 2 more"
    assert describe_parting(good, run_of(("load", many))) == told
    fixed = "step 1, 'load': error 'boom' -> (not reported)"
    assert describe_parting(run_of(("load", {"error": "boom"})), run_of("load")) == fixed


def test_what_one_of_the_two_did_not_report_is_told() -> None:
    good, present = run_of(("load", {"rows": 3})), run_of(("load", {"kept": 2}))
    told = "step 1, 'load': rows 3 -> (not reported), kept (not reported) -> 2"
    assert describe_parting(good, present) == told
    reported = run_of(("load", {"text": "none"}))
    assert describe_parting(run_of("load"), reported) == "step 1, 'load': text (not reported) -> 'none'"
    assert describe_parting(reported, run_of("load")) == "step 1, 'load': text 'none' -> (not reported)"
