from datetime import UTC, datetime

import pytest

from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.regression.cause import find_cause
from pytest_golden.trajectory import Trajectory

TRACEBACK = "Traceback (most recent call last):\n"


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


FRAME = '  File "/srv/load.py", line 3, in load\n    run("SELECT")\n    ^^^\n'


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (f"{TRACEBACK}{FRAME}KeyError: 'x'\n", "KeyError: 'x'"),
        (f'{TRACEBACK}{FRAME}db.BinderError: no "x"\nLINE 1: SELECT x\n          ^\n\n', 'db.BinderError: no "x"'),
        (
            f"{TRACEBACK}{FRAME}OneError: 1\n\nDuring ...\n\n{TRACEBACK}{FRAME}TwoError: 2\n[SQL: x]\n(at https://x)",
            "TwoError: 2",
        ),
        (f"  {TRACEBACK}  {FRAME}  KeyError: 'x'\n", "KeyError: 'x'"),
        (f"{TRACEBACK}{FRAME}OldError: x\n" + "going on\n" * 20 + "no rows", "no rows"),
        (f"{TRACEBACK}{FRAME}", "^^^"),
        (TRACEBACK, TRACEBACK.strip()),
    ],
)
def test_exception_itself_is_the_cause_and_not_what_stands_below_it(stderr: str, cause: str) -> None:
    assert find_cause(_outcome(stderr)) == cause


def test_end_of_a_long_message_is_kept() -> None:
    cause = find_cause(_outcome(f"ConnectionError: {'x' * 300} connection refused"))
    assert cause is not None
    assert cause.startswith("ConnectionError: xx")
    assert cause.endswith("xx connection refused")


def test_failed_step_says_more_than_standard_error() -> None:
    trajectory = (
        Trajectory.new().add_step("action", "load").add_step("action", "join", metadata={"error": "no key\n  at"})
    )
    assert find_cause(_outcome("some warning", trajectory)) == "join: no key"


def test_headline_of_a_step_is_told_with_what_follows() -> None:
    error = "Runtime Error in model orders (models/orders.sql)\n  Binder Error: no column\n  LINE 1"
    trajectory = Trajectory.new().add_step("action", "orders", metadata={"error": error})
    cause = "orders: Runtime Error in model orders (models/orders.sql) Binder Error: no column"
    assert find_cause(_outcome("", trajectory)) == cause
    lone = Trajectory.new().add_step("action", "orders", metadata={"error": "Database Error"})
    assert find_cause(_outcome("", lone)) == "orders: Database Error"


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
