"""The cycle's rules: which steps are skipped and why, what comes next, when it has converged, and the verdict. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.cycle.model import CYCLE_ORDER, CycleState, CycleStep, CycleVerdict
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from pytest_golden.cycle.model import CycleConfig
    from pytest_golden.regression.verdict import RegressionCheckResult

ERROR = "error"
SUCCESS, FAILURE = "SUCCESS", "FAILURE"
ALL_REJECTED = "PARTIAL (all improvements rejected)"
WEAKENED = "PARTIAL (the floor is weakened)"

NOTHING_TO_VERIFY = "No improvement to verify"
NO_PROJECTS = "No golden projects configured"
NOTHING_TO_REVIEW = "No proposal to review"
NOT_GATED = "Improvements are not gated: no review is needed"
LEARNING_MODE = "Learning mode: no project is selected"
NO_IMPROVEMENTS = "Learning mode: max_improvements is 0"
TIME_IS_UP = "The time limit is reached"

_IN_LEARNING_MODE = {CycleStep.PROJECT_SELECTION: LEARNING_MODE, CycleStep.IMPROVEMENT: NO_IMPROVEMENTS}
#: These steps run even after an error: what was found out is recorded and shown.
ALWAYS_RUN = (CycleStep.MEMORY_PERSISTENCE, CycleStep.SUMMARY, CycleStep.EXIT)


class Round(NamedTuple):
    """Where the cycle is between steps 5 and 7. `approved` is None before the review."""

    number: int = 1
    has_proposal: bool = False
    approved: bool | None = None


def get_final_status(state: CycleState) -> str:
    """Return how a cycle ended: FAILURE, PARTIAL with the reason, or SUCCESS."""
    if state.interrupted or not state.completed or state.exit_status == ERROR:
        return FAILURE
    if state.regressions_detected > 0:
        return f"PARTIAL ({state.regressions_detected} golden project(s) failed)"
    if state.improvements_rejected > 0 and state.improvements_approved == 0:
        return ALL_REJECTED
    return WEAKENED if state.verdict is CycleVerdict.FLAGGED else SUCCESS


def judge_proposal(
    check: RegressionCheckResult | None, *, approved: bool, is_floor_weaker: bool = False
) -> CycleVerdict:
    """Return the verdict of a check on a proposal. A check verifies it only if every project passed."""
    if not approved:
        return CycleVerdict.REJECTED
    if is_floor_weaker or (check is not None and check.regression_detected):
        return CycleVerdict.FLAGGED
    if check is None or not check.results:
        return CycleVerdict.NONE
    all_passed = all(result.status is ResultStatus.PASSED for result in check.results)
    return CycleVerdict.VERIFIED if all_passed else CycleVerdict.NONE


def list_unverified(check: RegressionCheckResult | None) -> tuple[str, ...]:
    """Return a warning for what a check without a regression leaves unverified."""
    if check is None or check.regression_detected:
        return ()
    names = [result.name for result in check.results if result.status is not ResultStatus.PASSED]
    told = f"{', '.join(names)} did not run, or is in quarantine: the improvement is not verified"
    return (told,) if names else ()


def join_verdicts(state: CycleState, latest: CycleVerdict) -> CycleVerdict:
    """Return the verdict of the whole cycle after one more proposal. A rejected one does not undo an approved one.

    But it may break what was verified, since it builds on that and nothing is undone.
    """
    if latest is not CycleVerdict.REJECTED or state.improvements_approved == 0:
        return latest
    is_lower = state.regressions_detected > 0 or bool(state.weakened_floor)
    return CycleVerdict.FLAGGED if is_lower else state.verdict


def find_skip(step: CycleStep, config: CycleConfig, present: Round, *, failed: str | None) -> str | None:
    """Say why a step is skipped; None when it is not. `failed` says what went wrong or ended before, if anything."""
    if step in ALWAYS_RUN:
        return None
    if step is CycleStep.REGRESSION_CHECKS:
        without_projects = None if config.golden_projects else NO_PROJECTS
        return without_projects if present.has_proposal else NOTHING_TO_VERIFY
    if config.is_learning_mode and step in _IN_LEARNING_MODE:
        return _IN_LEARNING_MODE[step]
    if step is CycleStep.REVIEW and not (present.has_proposal and config.gated_improvements):
        return NOT_GATED if present.has_proposal else NOTHING_TO_REVIEW
    return failed


def find_next(step: CycleStep, config: CycleConfig, present: Round, *, is_stopped: bool) -> CycleStep | None:
    """Say which step follows; None after the last. Steps 5 to 7 are walked again until the limit, or convergence.

    `is_stopped` tells that something went wrong or the time is up, so that nothing new begins.
    """
    has_nothing_more = present.number > 1 and not present.has_proposal
    if step is CycleStep.IMPROVEMENT and has_nothing_more and (is_stopped or config.stop_on_convergence):
        return CycleStep.MEMORY_PERSISTENCE
    has_room = present.number < config.max_improvements and (present.has_proposal or not config.stop_on_convergence)
    if step is CycleStep.REGRESSION_CHECKS and not is_stopped and has_room:
        return CycleStep.IMPROVEMENT
    place = CYCLE_ORDER.index(step) + 1
    return CYCLE_ORDER[place] if place < len(CYCLE_ORDER) else None


def make_fingerprint(proposal: Any) -> str:
    """Return a short text that is the same for equal proposals, so that a repeated one is noticed."""
    told = json.dumps(proposal, sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
