"""What a result is worth to an optimiser, and which words tell why. Pure.

| result | score |
|---|---|
| PASSED | 1.0 |
| FAILED, though the pipeline itself ended as declared | 0.75 |
| FAILED otherwise | 0.1, and up to 0.5 by the share of its steps that have no error |
| ERROR, SKIPPED | 0.0 |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pytest_golden.regression.model import GoldenProjectResult

PERFECT = 1.0
_ENDED_AS_DECLARED, _MOST_BY_STEPS, _FAILED = 0.75, 0.5, 0.1
# The pipeline itself did not do what is declared.
_BY_ENDING = frozenset({ReasonKind.EXIT_CODE, ReasonKind.UNEXPECTED_SUCCESS, ReasonKind.PATTERN_ABSENT})
# No text of a project can bring these about: they say nothing of a candidate.
_NOT_BY_TEXT = frozenset(
    {
        ReasonKind.PATH_NOT_FOUND,
        ReasonKind.PATH_NOT_ALLOWED,
        ReasonKind.PERMISSION_DENIED,
        ReasonKind.COMMAND_NOT_FOUND,
        ReasonKind.RUNNER_UNKNOWN,
        ReasonKind.SANDBOX_UNAVAILABLE,
        ReasonKind.NETWORK_UNAVAILABLE,
        ReasonKind.PROJECT_CHANGED,
        ReasonKind.SCRATCH_FULL,
        ReasonKind.SKIP_IF_MISSING,
        ReasonKind.HARNESS,
    }
)


def score_result(result: GoldenProjectResult) -> float:
    """Give 1.0 for a pass and less for anything else, by the table above; never below 0."""
    if result.status is ResultStatus.PASSED:
        return PERFECT
    if result.status is not ResultStatus.FAILED:
        return 0.0
    if not any(reason.kind in _BY_ENDING for reason in result.reasons):
        return _ENDED_AS_DECLARED
    steps = _list_steps(result)
    done = sum(not _has_failed(step) for step in steps)
    return _FAILED + (_MOST_BY_STEPS - _FAILED) * (done / len(steps) if steps else 0.0)


def was_interrupted(result: GoldenProjectResult) -> bool:
    """Tell whether a person stopped it."""
    return any(reason.kind == ReasonKind.INTERRUPTED for reason in result.reasons)


def is_not_by_text(result: GoldenProjectResult) -> bool:
    """Tell whether it is no pass for a reason that no candidate can bring about or take away."""
    return any(reason.kind in _NOT_BY_TEXT for reason in result.reasons)


def describe_verdict(result: GoldenProjectResult, score: float) -> str:
    """Say in our own words what the result means for the text."""
    if result.status is ResultStatus.PASSED:
        return "PASSED, score 1.0: keep what makes it pass."
    blame = "not by this text: the harness could not run it properly" if is_not_by_text(result) else "to be improved"
    return f"{result.status}, score {score:.2f}, {blame}."


def name_steps(result: GoldenProjectResult) -> list[str]:
    """Give what each step says."""
    return [str(step.get("content", "?")) for step in _list_steps(result)]


def find_step_errors(result: GoldenProjectResult) -> list[str]:
    """Give each failed step with its error."""
    failed = [step for step in _list_steps(result) if _has_failed(step)]
    return [f"{step.get('content', '?')}: {_error_of(step)}" for step in failed]


def _list_steps(result: GoldenProjectResult) -> list[Mapping[str, Any]]:
    """Give the steps without the observation of the harness that stands for a run without any."""
    return [step for step in result.steps if step.get("type") != "observation" or not _repeats_itself(step)]


def _has_failed(step: Mapping[str, Any]) -> bool:
    metadata = step.get("metadata") or {}
    return bool(metadata.get("error") or metadata.get("failed"))


def _error_of(step: Mapping[str, Any]) -> str:
    error = (step.get("metadata") or {}).get("error")
    return "failed" if error in {None, True} else str(error)


def _repeats_itself(step: Mapping[str, Any]) -> bool:
    return step.get("content") == (step.get("metadata") or {}).get("error")
