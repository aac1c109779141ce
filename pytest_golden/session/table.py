"""The words of the terminal: one line a project, its notes, what is running. Pure text, no colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.failure_text import make_visible
from pytest_golden.report.one_line import short_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

_STATUS_WIDTH = max(len(status) for status in ResultStatus)
_LONGEST_NAME = 40


def name_width(names: Iterable[str]) -> int:
    """Give the width of the column of names; a few longer ones stick out."""
    return min(_LONGEST_NAME, max(map(len, names), default=0))


def result_row(result: GoldenProjectResult, width: int, *, history: str = "", tells_reason: bool = True) -> str:
    """Give what stands after the status, in columns: name, time, how it went before, and a reason."""
    took = "-" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    told = [history, short_reason(result) if tells_reason else ""]
    return f"{result.name:<{width}}  {took:>7}  {'; '.join(filter(None, told))}".rstrip()


def notes(result: GoldenProjectResult) -> Iterator[str]:
    """Give what is to be known below the row: the warnings, and where its files are kept."""
    told = [f"note: {warning}" for warning in result.warnings]
    told += [f"kept view: {result.kept_view}"] if result.kept_view else []
    yield from (f"{' ' * (_STATUS_WIDTH + 1)}{' '.join(make_visible(line).split())}" for line in told)


def padded_status(result: GoldenProjectResult) -> str:
    """Give the status as wide as the longest one."""
    return f"{result.status:<{_STATUS_WIDTH}}"


def running_text(running: Sequence[tuple[str, float]], step: str | None) -> str | None:
    """Name what is running with the seconds so far and the step it has reached; None when nothing runs."""
    if not running:
        return None
    told = ", ".join(f"{name}  {format_elapsed(seconds)}" for name, seconds in running)
    return f"{told}  {make_visible(step)}" if step else told


def fit(text: str, width: int) -> str:
    """Cut a line to `width` signs, and mark the cut."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."
