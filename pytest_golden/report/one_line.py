"""A result in one line, and all of them in one count: for rows, headings and short summaries. Pure text, no colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import shorten_patterns
from pytest_golden.report.failure_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult

_MOST_NAMED = 5
_MOST_REASONS = 50


def summarize_reasons(result: GoldenProjectResult) -> str:
    """Give the reasons in one line; long patterns are cut, so that what stands beside them stays in sight."""
    named = [reason.headline for reason in result.reasons[:_MOST_REASONS]]
    more = len(result.reasons) - len(named)
    told = (
        "; ".join([*named, *([f"and {more} more reasons"] if more else [])])
        or result.error_message
        or str(result.status)
    )
    return shorten_patterns(" ".join(make_visible(told).split()))


def short_reason(result: GoldenProjectResult) -> str:
    """Say in a few words what is to be known beside the status."""
    if result.quarantined is not None:
        return f"quarantined, {result.quarantined}"
    if result.status is not ResultStatus.PASSED:
        return summarize_reasons(result)
    return f"flaky: passed on attempt {result.attempts}" if result.is_flaky else ""


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


def gate_verdict(check: RegressionCheckResult, failed: int, not_run: int, *, is_weaker: bool) -> str:
    """Give the verdict on a whole gate run: `SUCCESS`, `PARTIAL (...)`, or that nothing ran."""
    told = [f"{failed} golden project(s) failed"] * bool(failed)
    told += [f"{not_run} not run"] * bool(not_run)
    told += ["floor weakened"] * is_weaker
    if told:
        return f"PARTIAL ({', '.join(told)})"
    return check.final_status if check.results else "nothing ran"


def note_unchecked_needs(unchecked: Mapping[str, Sequence[str]]) -> str | None:
    """Name the needs that were deselected and the projects that ran all the same; None where there are none."""
    if not unchecked:
        return None
    told = [
        f"{need} was deselected: {_name(users)} ran without it having been checked" for need, users in unchecked.items()
    ]
    more = len(told) - _MOST_NAMED
    return "; ".join(told[:_MOST_NAMED]) + (f"; and {more} more such needs" if more > 0 else "")


def _name(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
