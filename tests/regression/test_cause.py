from datetime import UTC, datetime

from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.regression.cause import find_cause
from pytest_golden.trajectory import Trajectory


def _outcome(stderr: str = "", trajectory: Trajectory | None = None, stdout: str = "") -> PipelineOutcome:
    return PipelineOutcome(
        Ending.EXITED,
        1,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        stdout=stdout,
        stderr=stderr,
        trajectory=trajectory,
    )


def test_last_line_on_standard_error_is_the_cause() -> None:
    assert find_cause(_outcome("Traceback\n  File x\nValueError: no rows\n\n")) == "ValueError: no rows"


def test_failed_step_says_more_than_standard_error() -> None:
    trajectory = (
        Trajectory.new().add_step("action", "load").add_step("action", "join", metadata={"error": "no key\n  at"})
    )
    assert find_cause(_outcome("some warning", trajectory)) == "join: no key"


def test_observation_of_the_harness_is_no_cause() -> None:
    trajectory = Trajectory.new().add_step("observation", "it failed", metadata={"error": "it failed"})
    assert find_cause(_outcome("", trajectory)) is None


def test_silent_standard_error_leaves_it_to_what_sounds_like_an_error() -> None:
    told = "load\nERROR: no rows\n  Permission Denied: out\nDone. PASS=3\n\n"
    assert find_cause(_outcome(stdout=told)) == "Permission Denied: out"
    assert find_cause(_outcome(" \n", stdout=told)) == "Permission Denied: out"
    assert find_cause(_outcome("a warning", stdout=told)) == "a warning"


def test_last_line_of_standard_output_is_better_than_nothing() -> None:
    assert find_cause(_outcome(stdout="load\n  3 rows, 4 wanted\n\n")) == "3 rows, 4 wanted"


def test_silent_failure_has_no_cause() -> None:
    assert find_cause(_outcome()) is None


def test_endless_line_is_cut() -> None:
    cause = find_cause(_outcome("x" * 5000))
    assert cause is not None
    assert len(cause) < 220
