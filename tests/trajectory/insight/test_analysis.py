from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_golden
from pytest_golden.trajectory.insight.analysis import (
    MOST_CHARACTERS,
    analyze_trajectory,
    find_failures,
    summarize_trajectory,
)
from pytest_golden.trajectory.insight.model import Quality, ReasoningIssueType, Severity
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome
from tests.patience import count_calls, without_hanging
from tests.trajectory.insight.runs import (
    START,
    failed_dbt_run,
    failed_odibi_run,
    looping_agent,
    passed_odibi_run,
    run,
    shell_timeout,
    thoughts,
)

if TYPE_CHECKING:
    from pytest_golden.trajectory.insight.model import Detail

SENTENCES = (
    "The value is positive.",
    "The value is not positive.",
    "I know it.",
    "Therefore it works.",
    "I give up.",
    "It is definitely so.",
    "because",
    "All tests passed.",
)
STEPS = st.tuples(
    st.sampled_from(list(StepType)),
    st.sampled_from(SENTENCES) | st.text(max_size=20) | st.none() | st.lists(st.integers(), max_size=3),
    st.fixed_dictionaries({}, optional={"error": st.sampled_from([True, "", "boom"]), "n": st.integers(0, 2)}),
)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    outcome = draw(st.sampled_from([*TrajectoryOutcome, None]))
    return run(*draw(st.lists(STEPS, max_size=12)), outcome=outcome, error=draw(st.none() | st.text(max_size=20)))


def test_analysis_of_a_loop() -> None:
    trajectory = looping_agent()
    analysis = analyze_trajectory(trajectory)
    assert (analysis.trajectory_id, analysis.outcome, analysis.quality) == (trajectory.id, "timeout", "poor")
    assert (analysis.step_count, analysis.duration_ms) == (12, 300_000.0)
    assert [issue.type for issue in analysis.reasoning_issues] == ["circular_reasoning"]
    assert analysis.success_indicators == ()


def test_analysis_of_a_good_run() -> None:
    analysis = analyze_trajectory(passed_odibi_run())
    assert analysis.quality == "excellent"
    assert [(found.type, found.description) for found in analysis.success_indicators] == [
        ("efficient_path", "4 steps in 1,000 ms, none of them failed"),
        ("proper_tool_use", "actions and tool calls: 4, none of them failed"),
    ]


@pytest.mark.parametrize("build", [failed_odibi_run, failed_dbt_run, shell_timeout])
def test_pipelines_that_failed_have_no_reasoning_issue(build: Any) -> None:
    analysis = analyze_trajectory(build())
    assert (analysis.quality, analysis.reasoning_issues, analysis.success_indicators) == ("poor", (), ())
    assert analysis.failure_points


@pytest.mark.parametrize(
    ("trajectory", "quality"),
    [
        (run(), "good"),
        (run(("action", "load"), seconds=1), "excellent"),
        (run(("observation", "done"), seconds=60), "good"),
        (run(("action", "load", {"error": "busy"}), ("action", "load")), "good"),
        (thoughts("The value is positive", "The value is not positive"), "fair"),
        (run(("action", "load"), outcome="partial"), "fair"),
        (run(("action", "load", {"error": "busy"}), outcome="partial"), "poor"),
        (run(("action", "load"), outcome=None), "fair"),
        (thoughts("The value is positive", "The value is not positive", outcome=None), "poor"),
        (run(outcome="failure"), "poor"),
        (run(outcome="error"), "poor"),
    ],
)
def test_quality_is_rated_by_outcome_and_worst_finding(trajectory: Trajectory, quality: str) -> None:
    assert analyze_trajectory(trajectory).quality == quality


def test_recovery_clear_reasoning_and_decomposition_are_indicators() -> None:
    trajectory = run(("reasoning", "Load first."), ("reasoning", "Join then."), ("action", "load", {"error": "busy"}))
    for name in ("load", "join"):
        trajectory = (
            trajectory.reopen()
            .add_step("action", name, parent_step_id=trajectory.steps[0].id, timestamp=START)
            .complete("success", completed_at=START)
        )
    analysis = analyze_trajectory(trajectory)
    assert [found.type for found in analysis.success_indicators] == [
        "clear_reasoning",
        "good_decomposition",
        "effective_recovery",
    ]
    assert analysis.success_indicators[-1].step_ids == (trajectory.steps[2].id,)


def test_what_is_not_asked_for_is_left_out_and_still_counts_for_the_quality() -> None:
    trajectory = thoughts("The value is positive", "The value is not positive")
    analysis = analyze_trajectory(trajectory, include_reasoning=False, include_success=False)
    assert (analysis.reasoning_issues, analysis.success_indicators, analysis.quality) == ((), (), "fair")


def test_minor_findings_can_be_left_out() -> None:
    trajectory = run(("action", "a", {"error": "x"}), ("tool_call", "b", {"error": "y"}), outcome="failure")
    analysis = analyze_trajectory(trajectory, min_severity="critical")
    assert [point.description for point in analysis.failure_points] == ["a failed: x"]


def test_unknown_severity_is_refused() -> None:
    with pytest.raises(ValueError, match="min_severity 'dire' is unknown: give one of low, medium, high, critical"):
        analyze_trajectory(run(), min_severity="dire")


def test_filtered_trajectory_is_judged_by_single_thoughts() -> None:
    trajectory = run(
        ("reasoning", "The file does not exist", {}),
        ("tool_call", "create it"),
        ("reasoning", "The file exists and"),
    )
    kept = Trajectory.from_dict({**trajectory.to_dict(), "steps": [trajectory.to_dict()["steps"][i] for i in (0, 2)]})
    assert {issue.type for issue in analyze_trajectory(kept.filter("low")).reasoning_issues} == {"incomplete_logic"}


def test_words_are_ranked() -> None:
    assert [word.rank for word in Severity] == [word.rank for word in Quality] == [0, 1, 2, 3]


@given(trajectories())
def test_anything_can_be_analysed_and_written_as_json(trajectory: Trajectory) -> None:
    analysis = analyze_trajectory(trajectory)
    json.dumps(analysis.to_dict(), allow_nan=False)
    assert analysis.to_dict()["quality"] == analysis.quality.value
    ids = {step.id for step in trajectory.steps}
    assert {issue_id for issue in analysis.reasoning_issues for issue_id in issue.step_ids} <= ids
    assert {point.step_id for point in analysis.failure_points} - {None} <= ids
    assert all(issue.evidence and issue.step_ids for issue in analysis.reasoning_issues)
    succeeded = trajectory.outcome is TrajectoryOutcome.SUCCESS
    assert succeeded or not analysis.success_indicators
    assert succeeded or analysis.failure_points
    hash(analysis)


@given(trajectories())
def test_levels_only_leave_out(trajectory: Trajectory) -> None:
    whole = analyze_trajectory(trajectory)
    for severity in Severity:
        part = analyze_trajectory(trajectory, min_severity=severity)
        assert part.quality == whole.quality
        assert part.failure_points == tuple(p for p in whole.failure_points if p.severity.rank >= severity.rank)
        assert set(part.reasoning_issues) <= set(whole.reasoning_issues)


def test_work_grows_with_the_number_of_steps_alone() -> None:
    def measure(count: int) -> int:
        trajectory = Trajectory.new(started_at=START)
        for number in range(count):
            kind = ("reasoning", "tool_call", "observation")[number % 3]
            trajectory = trajectory.add_step(
                kind, f"{SENTENCES[number % 7]} {number % 50}", timestamp=START, metadata={"error": number % 9 == 0}
            )
        return count_calls(lambda: analyze_trajectory(trajectory))

    assert measure(4_000) < 12 * measure(500)


@pytest.mark.parametrize(
    "text",
    [
        "so" + " " * 20_000 + "x",
        " " * 20_000,
        "\n" * 20_000,
        ", " * 10_000,
        "," + " " * 20_000,
        ". " * 10_000,
        "not " * 5_000,
        "I'm " * 5_000,
        "'" * 20_000,
        "a." * 10_000,
        "therefore and " * 1_500,
        "no errors " * 2_000,
        "x" * 20_000,
    ],
    ids=range(13),
)
def test_hostile_text_is_read_in_little_time(text: str) -> None:
    trajectory = run(
        ("tool_call", text, {"error": text}), *[("reasoning", f"{text}{n}") for n in range(3)], outcome="failure"
    )
    with without_hanging():
        analyze_trajectory(trajectory)


def test_names_are_public() -> None:
    assert pytest_golden.analyze_trajectory is analyze_trajectory
    assert pytest_golden.ReasoningIssueType is ReasoningIssueType


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


def test_brief_is_one_line_with_the_worst_failure() -> None:
    assert summarize_trajectory(failed_odibi_run(), detail="brief") == (
        "failure, quality poor, 4 steps in 1,000 ms; join_orders failed: KeyError: 'customer_id'"
    )


def test_normal_tells_the_findings() -> None:
    trajectory = failed_odibi_run()
    assert summarize_trajectory(trajectory).splitlines() == [
        f"Trajectory {trajectory.id}",
        "failure, quality poor, 4 steps in 1,000 ms; join_orders failed: KeyError: 'customer_id'",
        "Failure points: 1",
        "- [critical] tool_failure: join_orders failed: KeyError: 'customer_id'",
        "Reasoning issues: none",
        "Success indicators: none",
    ]


def test_detailed_tells_the_steps_too() -> None:
    lines = summarize_trajectory(failed_odibi_run(), detail="detailed").splitlines()
    assert "(after 'load_orders')" in lines[3]
    assert lines[-5:] == [
        "Steps: 4 action",
        "1. action: load_customers",
        "2. action: load_orders",
        "3. action: join_orders FAILED",
        "4. action: publish",
    ]


def test_many_findings_and_steps_are_counted_not_listed() -> None:
    failing = run(*(("action", f"step {number}", {"error": "x"}) for number in range(200)), outcome="failure")
    assert "- and 195 more" in summarize_trajectory(failing)
    detailed = summarize_trajectory(failing, detail="detailed").splitlines()
    assert "... 145 steps left out" in detailed
    assert detailed[-1] == "200. action: step 199 FAILED"


def test_durations_of_steps_are_told() -> None:
    trajectory = Trajectory.new().add_step("action", "load", duration_ms=1234.5)
    assert summarize_trajectory(trajectory, detail="detailed").endswith("1. action: load (1,234 ms)")


@given(trajectories())
def test_each_length_is_longer_than_the_one_before(trajectory: Trajectory) -> None:
    brief, normal, detailed = (summarize_trajectory(trajectory, detail=detail) for detail in MOST_CHARACTERS)
    assert len(brief) < len(normal) < len(detailed)
    assert "\n" not in brief


@pytest.mark.parametrize("detail", list(MOST_CHARACTERS))
def test_length_is_bounded_whatever_there_is_to_tell(detail: Detail) -> None:
    metadata = {"error": "e" * 100_000}
    huge = run(
        *((kind, "x" * 100_000, metadata) for kind in ("reasoning", "action") * 50),
        outcome="failure",
        error="z" * 10**6,
    )
    summary = summarize_trajectory(huge, detail=detail)
    assert len(summary) <= MOST_CHARACTERS[detail]
    for trajectory in (looping_agent(), passed_odibi_run()):
        assert len(summarize_trajectory(trajectory, detail=detail)) <= MOST_CHARACTERS[detail]


def test_unknown_detail_is_refused() -> None:
    with pytest.raises(ValueError, match="detail 'long' is unknown: give one of brief, normal, detailed"):
        summarize_trajectory(run(), detail="long")
