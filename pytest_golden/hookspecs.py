"""What third parties may implement, in a `conftest.py` or a plug-in. Our own parts are `trylast` implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.model import Gateway, PipelineOutcome, RunnerCommand
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult, Reason


@pytest.hookspec(firstresult=True)
def pytest_golden_gateway(config: pytest.Config) -> Gateway | None:
    """Return the object whose `run_pipeline` executes golden projects, or None to leave it to others.

    The gate calls `run_pipeline(project, role=..., permissions=...)`, with these keyword names. The hook is called once
    per session in every process that runs projects.
    """


@pytest.hookspec(firstresult=True)
def pytest_golden_runner(project: GoldenProjectConfig) -> RunnerCommand | None:
    """Return what starts this project's pipeline, or None to leave it to others."""


@pytest.hookspec
def pytest_golden_step_readers() -> Any:
    """Return an object, or several, with a `name` and `read(view, outcome) -> StepReading`."""


@pytest.hookspec
def pytest_golden_redactors(config: pytest.Config) -> Callable[[str], str]:  # type: ignore[empty-body]
    """Return a callable, text -> text, that takes further secrets out of everything kept or shown."""


@pytest.hookspec
def pytest_golden_judge(project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[Reason, ...]:  # type: ignore[empty-body]
    """Return further reasons against a pass; none for a pass."""


@pytest.hookspec
def pytest_golden_result_recorded(result: GoldenProjectResult, entry: Any) -> None:
    """Take note of a result, on the controller alone. `entry` is the journal's, None without one."""
