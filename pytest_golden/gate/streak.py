"""How a project's newest result fits in with those before it, in a few words. Pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.gate.history import FAILURES, count_leading_failures, count_passes
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.gate.past import PastResult

# The last ten that ran tell enough; so many results are read to find them among skipped and interrupted ones.
WINDOW = 10
ENOUGH = 40


def describe_streak(recent: Sequence[PastResult]) -> str:
    """Say how a project's newest result, which stands first, fits in with those before it; empty when it did not run to its end.

    It looks at the first `ENOUGH` of them. Skipped and interrupted ones neither count nor break a streak.
    """
    if not recent or not recent[0].counts:
        return ""
    ran = [result for result in recent[:ENOUGH] if result.counts][:WINDOW]
    if len(ran) == 1 and ran[0].pass_streak <= 1:
        return "first run" if len(recent) < ENOUGH else ""
    return _describe_pass(ran) if ran[0].status is ResultStatus.PASSED else _describe_failure(ran)


def _describe_pass(ran: Sequence[PastResult]) -> str:
    streak = count_passes(ran)
    if streak >= WINDOW:
        return f"{_ordinal(streak)} pass in a row"
    failures = count_leading_failures(ran[1:])
    if streak == 1 and failures:
        is_cut = failures == len(ran) - 1 and len(ran) >= WINDOW
        return f"passes again after {_count(failures, 'failure', is_least=is_cut)}"
    failed = _describe_window(ran)
    told = f"{_ordinal(streak)} pass in a row" if streak > 1 else ""
    return ", ".join(filter(None, [told, failed])) or "1st pass"


def _describe_failure(ran: Sequence[PastResult]) -> str:
    failures = count_leading_failures(ran)
    if failures == len(ran):
        return f"failed {failures} times in a row" if failures < WINDOW else f"failed in each of the last {failures}"
    first = f"first failure after {_count(count_passes(ran[1:]), 'pass')}"
    told = first if failures == 1 else f"{_ordinal(failures)} failure in a row"
    in_window = sum(result.status in FAILURES for result in ran)
    return told if in_window <= failures else f"{told}, {_describe_window(ran)}"


def _describe_window(ran: Sequence[PastResult]) -> str:
    failed = sum(result.status in FAILURES for result in ran)
    return f"failed {failed} of the last {len(ran)}" if failed else ""


def _count(number: int, word: str, *, is_least: bool = False) -> str:
    plural = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number}{' or more' if is_least else ''} {word}{plural}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
