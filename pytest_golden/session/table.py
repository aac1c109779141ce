"""The words of the terminal: one line a project, the summary table, the closing count. Pure text, no colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.failure_text import make_visible, summarize_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

_STATUS_WIDTH = max(len(status) for status in ResultStatus)
_LONGEST_NAME = 40


def short_reason(result: GoldenProjectResult) -> str:
    """Say in a few words what is to be known beside the status."""
    if result.quarantined is not None:
        return f"quarantined, {result.quarantined}"
    if result.status is not ResultStatus.PASSED:
        return summarize_reasons(result)
    return f"flaky: passed on attempt {result.attempts}" if result.is_flaky else ""


def name_width(names: Iterable[str]) -> int:
    """Give the width of the column of names; a few longer ones stick out."""
    return min(_LONGEST_NAME, max(map(len, names), default=0))


def result_row(result: GoldenProjectResult, width: int) -> str:
    """Give what stands after the status: name, time and a reason, in columns."""
    took = "-" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    return f"{result.name:<{width}}  {took:>7}  {short_reason(result)}".rstrip()


def notes(result: GoldenProjectResult) -> Iterator[str]:
    """Give what is to be known below the row: the warnings, and where its files are kept."""
    told = [f"note: {warning}" for warning in result.warnings]
    told += [f"kept view: {result.kept_view}"] if result.kept_view else []
    yield from (f"{' ' * (_STATUS_WIDTH + 1)}{' '.join(make_visible(line).split())}" for line in told)


def padded_status(result: GoldenProjectResult) -> str:
    """Give the status as wide as the longest one."""
    return f"{result.status:<{_STATUS_WIDTH}}"


def closing_count(results: Sequence[GoldenProjectResult], failed: int, deselected: int, not_run: int) -> str:
    """Count what happened to every declared project; what happened to none is left out.

    `failed` is how many fail the gate; one that was not run since its need failed is among them.
    """
    quarantined = sum(result.quarantined is not None for result in results)
    passed = sum(result.status is ResultStatus.PASSED for result in results)
    counts = {
        "passed": passed,
        "failed": failed,
        "skipped": len(results) - passed - failed - quarantined,
        "quarantined": quarantined,
        "flaky": sum(result.is_flaky for result in results),
        "deselected": deselected,
        "not run": not_run,
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing ran"


def running_text(running: Sequence[tuple[str, float]], step: str | None) -> str | None:
    """Name what is running with the seconds so far and the step it has reached; None when nothing runs."""
    if not running:
        return None
    told = ", ".join(f"{name}  {format_elapsed(seconds)}" for name, seconds in running)
    return f"{told}  {make_visible(step)}" if step else told


def fit(text: str, width: int) -> str:
    """Cut a line to `width` signs, and mark the cut."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."
