"""How what two stores know of a gate run becomes one, and how passes in a row are counted. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

_FAILURES = frozenset({ResultStatus.FAILED, ResultStatus.ERROR})
_INTERRUPTED = "INTERRUPTED"


def choose_run(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Choose what to believe of a gate run: that it ended by itself, then that it was found interrupted; the earlier first."""
    return min(one, other, key=_rank_run)


def count_streak(before: int, status: str, reasons: Any) -> int:
    """Count the passes in a row up to a result; what was skipped or interrupted breaks none."""
    if status == ResultStatus.PASSED:
        return before + 1
    is_failure = status in _FAILURES and not was_interrupted(reasons)
    return 0 if is_failure else before


def was_interrupted(reasons: Any) -> bool:
    """Tell by a result's reasons whether it did not run to its end; what is no reason is passed over."""
    return any(isinstance(reason, dict) and reason.get("kind") == ReasonKind.INTERRUPTED for reason in reasons or ())


def _rank_run(run: Mapping[str, Any]) -> tuple[Any, ...]:
    finished_at = run["finished_at"]
    content = json.dumps(dict(run), sort_keys=True, default=str)
    return finished_at is None, run["final_status"] == _INTERRUPTED, finished_at or 0, content
