"""Read the plan of an outcome by rules. Pure: the same outcome always gives the same plan."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_golden.learning.model import ExtractedPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.learning.model import ProductionOutcome

#: Every `reasoning_pattern`, by rising number of steps.
PATTERNS = ("direct_implementation", "iterative_refinement", "complex_multi_step")
_FAST_SECONDS, _SLOW_SECONDS = 5.0, 30.0
_DIRECT_STEPS, _SHORT_STEPS, _LONG_STEPS = 2, 5, 10
_SUCCESS_WORDS = frozenset({"success", "succeeded", "passed", "ok"})
_MOST_OF_ERROR = 500


def extract_plan_by_rules(outcome: ProductionOutcome) -> ExtractedPlan:
    """Return the plan of an outcome, a failed one as well; its time is the outcome's."""
    path = outcome.execution_path
    return ExtractedPlan(
        outcome_id=outcome.outcome_id,
        strategy_description=f"Sequential execution: {' → '.join(path) or '(no steps known)'}",
        reasoning_pattern=_name_pattern(len(path)),
        tools_sequence=path,
        key_decisions=tuple(_find_decisions(path)),
        success_factors=tuple(_find_success_factors(outcome)),
        failure_factors=tuple(_find_failure_factors(outcome)),
        confidence=0.8 if path else 0.5,
        timestamp=outcome.timestamp,
    )


def _name_pattern(steps: int) -> str:
    direct, iterative, complex_ = PATTERNS
    if steps <= _DIRECT_STEPS:
        return direct
    return iterative if steps <= _SHORT_STEPS else complex_


def _find_decisions(path: tuple[str, ...]) -> Iterator[str]:
    if path:
        yield f"Started with {path[0]}"
    repeated = next((step for step, following in pairwise(path) if step == following), None)
    if repeated is not None:
        yield f"Repeated {repeated}"
    if len(path) > 1:
        yield f"Ended with {path[-1]}"


def _find_success_factors(outcome: ProductionOutcome) -> Iterator[str]:
    if outcome.execution_time is not None and outcome.execution_time < _FAST_SECONDS:
        yield "Fast execution (< 5 s)"
    if len(outcome.execution_path) <= _SHORT_STEPS:
        yield "Short execution path (<= 5 steps)"
    if _says_success(outcome.result):
        yield "Explicit success status"


def _find_failure_factors(outcome: ProductionOutcome) -> Iterator[str]:
    if outcome.error_message:
        yield f"Error: {outcome.error_message[:_MOST_OF_ERROR]}"
    if outcome.execution_time is not None and outcome.execution_time > _SLOW_SECONDS:
        yield "Slow execution (> 30 s)"
    if len(outcome.execution_path) > _LONG_STEPS:
        yield "Long execution path (> 10 steps)"


def _says_success(result: object) -> bool:
    return isinstance(result, Mapping) and str(result.get("status")).lower() in _SUCCESS_WORDS
