"""dbt's `run_results.json`, one step for each result. Compiled SQL and the command's arguments are not taken.

Format: https://schemas.getdbt.com/dbt/run-results/v6.json
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.readers.files import find_written, read_json
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration
from pytest_golden.values.checking import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.trajectory.readers.model import RunFacts, ViewFiles

FAILED_STATUSES = frozenset({"error", "fail", "runtime error", "partial success"})
_FIRST = datetime.min.replace(tzinfo=UTC)
_TEST_KINDS = frozenset({"test", "unit_test"})


class DbtRunResultsReader:
    """Reads each `run_results.json` that this run wrote, whatever the target folder is called."""

    name = "dbt"

    def read(self, view: ViewFiles, outcome: RunFacts) -> StepReading:
        """Return one step a result, in the order in which they began."""
        steps: list[StepDraft] = []
        lost, warnings = 0, []
        for relative, path in find_written(view, outcome, lambda name: PurePosixPath(name).name == "run_results.json"):
            try:
                document = read_json(path)
            except (OSError, ValueError) as error:
                warnings.append(f"dbt's {relative} cannot be read: {error}")
                continue
            drafts = [_read_result(result, _invocation_of(document)) for result in _list_results(document)]
            lost += drafts.count(None)
            steps += _in_order_of_start([draft for draft in drafts if draft is not None])
        if lost:
            warnings.append(f"{lost} results in dbt's run_results.json have no unique_id or no usable figures")
        return StepReading(tuple(steps), lost, tuple(warnings))


def _list_results(document: Any) -> list[Any]:
    results = document.get("results") if isinstance(document, dict) else None
    return results if isinstance(results, list) else []


def _invocation_of(document: Any) -> str | None:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    invocation = metadata.get("invocation_id") if isinstance(metadata, dict) else None
    return invocation if isinstance(invocation, str) else None


def _read_result(result: Any, invocation_id: str | None) -> StepDraft | None:
    if not isinstance(result, dict) or not isinstance(result.get("unique_id"), str) or not result["unique_id"].strip():
        return None
    status = _scalar(result.get("status"))
    message = _scalar(result.get("message"))
    metadata = {
        "reader": DbtRunResultsReader.name,
        "status": status,
        "message": message,
        "failures": _scalar(result.get("failures")),
        "rows_affected": _rows_affected(result),
        "invocation_id": invocation_id,
    }
    if status in FAILED_STATUSES:
        metadata["error"] = message or f"dbt reports status {status}"
    return StepDraft(
        content=result["unique_id"],
        type=StepType.OBSERVATION if result["unique_id"].split(".")[0] in _TEST_KINDS else StepType.ACTION,
        importance=_importance_of(status),
        duration_ms=_milliseconds(result.get("execution_time")),
        timestamp=_start_of(result),
        metadata=metadata,
    )


def _importance_of(status: Any) -> Importance:
    if status in FAILED_STATUSES:
        return Importance.CRITICAL
    return Importance.HIGH if status == "warn" else Importance.MEDIUM


def _rows_affected(result: Mapping[str, Any]) -> Any:
    response = result.get("adapter_response")
    return _scalar(response.get("rows_affected")) if isinstance(response, dict) else None


def _start_of(result: Mapping[str, Any]) -> datetime | None:
    """Return when the result's first phase began; skipped ones have no phase."""
    timing = result.get("timing")
    try:
        return min(parse_time("started_at", phase["started_at"]) for phase in timing) if timing else None
    except (TypeError, KeyError, ValueError):
        return None


def _in_order_of_start(drafts: list[StepDraft]) -> list[StepDraft]:
    """Sort by start; one without stays behind the one before it. dbt lists results as they end, in several threads."""
    starts: list[datetime] = []
    for draft in drafts:
        starts.append(draft.timestamp or (starts[-1] if starts else _FIRST))
    return [drafts[position] for position in sorted(range(len(drafts)), key=starts.__getitem__)]


def _scalar(given: Any) -> Any:
    return given if isinstance(given, (str, int, float)) else None


def _milliseconds(seconds: Any) -> float | None:
    try:
        return check_duration("execution_time", seconds * 1000)
    except (TypeError, ValueError):
        return None
