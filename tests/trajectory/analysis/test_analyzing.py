from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_golden
from pytest_golden.trajectory.insight.analysis import analyze_trajectory
from pytest_golden.trajectory.insight.model import Quality, ReasoningIssueType, Severity
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome
from tests.patience import count_calls, without_hanging
from tests.trajectory.analysis.runs import (
    START,
    failed_dbt_run,
    failed_odibi_run,
    looping_agent,
    passed_odibi_run,
    run,
    shell_timeout,
    thoughts,
)

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
