from datetime import UTC, datetime

from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.regression.cause import find_cause
from pytest_golden.trajectory import Trajectory


def _outcome(stderr: str = "", trajectory: Trajectory | None = None) -> PipelineOutcome:
    return PipelineOutcome(
        Ending.EXITED, 1, started_at=datetime(2026, 1, 1, tzinfo=UTC), stderr=stderr, trajectory=trajectory
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


def test_silent_failure_has_no_cause() -> None:
    assert find_cause(_outcome()) is None


def test_endless_line_is_cut() -> None:
    cause = find_cause(_outcome("x" * 5000))
    assert cause is not None
    assert len(cause) < 220
