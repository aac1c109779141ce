"""The judge searches for an expected error where nobody has."""

from __future__ import annotations

from pytest_golden.gateway.model import Ending, PatternVerdict, PipelineOutcome
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.regression.rules import judge
from pytest_golden.trajectory.model import Trajectory

PROJECT = GoldenProjectConfig("sales", "sales.py", None, "specific_error:^Negative amounts")


def test_an_expected_error_is_found_in_stderr_stdout_or_a_step() -> None:
    text = "first line\nNegative amounts: 3\n"
    steps = Trajectory.new().add_step("action", "check", metadata={"error": text})
    for outcome in (
        PipelineOutcome(Ending.EXITED, 1, stderr=text),
        PipelineOutcome(Ending.EXITED, 1, stdout=text),
        PipelineOutcome(Ending.EXITED, 1, trajectory=steps),
    ):
        assert judge(PROJECT, outcome).status is ResultStatus.PASSED


def test_an_expected_error_that_is_nowhere_is_failed() -> None:
    result = judge(PROJECT, PipelineOutcome(Ending.EXITED, 1, stderr="no Negative amounts at a line's start"))
    assert result.reasons[0].kind == ReasonKind.PATTERN_ABSENT


def test_a_search_already_made_is_believed() -> None:
    outcome = PipelineOutcome(Ending.EXITED, 1, stderr="other", pattern_verdict=PatternVerdict.FOUND)
    assert judge(PROJECT, outcome).status is ResultStatus.PASSED


def test_a_search_that_breaks_down_is_error() -> None:
    # One argument of a program may have 128 KiB.
    project = GoldenProjectConfig("sales", "sales.py", None, "specific_error:" + "a" * 200_000)
    result = judge(project, PipelineOutcome(Ending.EXITED, 1, stderr="x"))
    assert result.status is ResultStatus.ERROR
    assert result.reasons[0].kind == ReasonKind.HARNESS
