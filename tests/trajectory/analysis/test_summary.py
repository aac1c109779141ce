from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from pytest_golden.trajectory.insight.analysis import MOST_CHARACTERS, summarize_trajectory
from pytest_golden.trajectory.model import Trajectory
from tests.trajectory.analysis.runs import failed_odibi_run, looping_agent, passed_odibi_run, run
from tests.trajectory.analysis.test_analyzing import trajectories

if TYPE_CHECKING:
    from pytest_golden.trajectory.insight.model import Detail


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
