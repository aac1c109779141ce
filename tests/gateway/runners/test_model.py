from __future__ import annotations

from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.model import RunnerError


def test_refusal_carries_its_kind_and_its_sentence() -> None:
    error = RunnerError(Problem.RUNNER_UNKNOWN, "no runner is called 'x'")
    assert (error.problem, error.message, str(error)) == (
        Problem.RUNNER_UNKNOWN,
        "no runner is called 'x'",
        "no runner is called 'x'",
    )
    assert isinstance(error, GatewayError)
    assert isinstance(error, GoldenError)
