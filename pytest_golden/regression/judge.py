"""The way from an outcome to a result. The only thing done here is the search for an expected error, where it is due."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.pattern_search import SEARCH_SECONDS, search_texts
from pytest_golden.regression.rules import assess_outcome, wants_pattern_search

if TYPE_CHECKING:
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult


def judge(project: GoldenProjectConfig, outcome: PipelineOutcome) -> GoldenProjectResult:
    """Judge one execution by what the project declares.

    A gateway that did not search the whole output for the expected error leaves that to this function, which searches
    what the outcome kept of it, in a process that is killed after 10 seconds.
    """
    if wants_pattern_search(project, outcome):
        outcome = _with_search(project, outcome)
    return assess_outcome(project, outcome)


def _with_search(project: GoldenProjectConfig, outcome: PipelineOutcome) -> PipelineOutcome:
    texts = [outcome.stderr, outcome.stdout, *_step_errors(outcome)]
    try:
        verdict = search_texts(str(project.expected.pattern), texts, timeout_seconds=SEARCH_SECONDS)
    except GatewayError as error:
        return replace(outcome, problem=outcome.problem or Problem.HARNESS, message=outcome.message or str(error))
    return replace(outcome, pattern_verdict=verdict)


def _step_errors(outcome: PipelineOutcome) -> list[str]:
    steps = outcome.trajectory.steps if outcome.trajectory is not None else ()
    errors = (step.metadata.get("error") for step in steps)
    return [str(error) for error in errors if error]
