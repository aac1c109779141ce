"""What a person reads about outputs that were accepted as baselines: what is new, what changed and how, what was refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_golden.regression.model import OutputChange
from pytest_golden.regression.wording import show_path
from pytest_golden.report.failure_text import make_visible, show_difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.regression.model import AcceptedOutput, GoldenProjectResult

_MOST_DIFFERENCES, _MOST_NAMED = 10, 50
_WIDTH = max(len(change) for change in OutputChange)


def describe_accepted(results: Iterable[GoldenProjectResult], *, in_full: bool = False) -> list[str]:
    """Give the account of all results that were accepted; `in_full` cuts nothing and names what stayed the same."""
    return list(_describe(results, in_full=in_full))


def _describe(results: Iterable[GoldenProjectResult], *, in_full: bool) -> Iterator[str]:
    left = _MOST_DIFFERENCES
    for result in results:
        if result.accepted is None:
            continue
        yield f"{result.name}: {_count(result.accepted)}"
        told = [one for one in result.accepted if in_full or one.change is not OutputChange.UNCHANGED]
        for output in told if in_full else told[:_MOST_NAMED]:
            headline, *difference = _explain(output)
            yield f"  {output.change:<{_WIDTH}}  {show_path(output.path)}{headline}"
            yield from (f"    {line}" for line in (difference if left > 0 or in_full else ()))
            left -= bool(difference)
        if not in_full and len(told) > _MOST_NAMED:
            yield f"  and {len(told) - _MOST_NAMED} more: -v names them"


def _count(accepted: Sequence[AcceptedOutput]) -> str:
    counts = Counter(output.change for output in accepted)
    told = ", ".join(f"{counts[change]} {change}" for change in OutputChange if counts[change])
    return told or "no output to keep; its duration history starts anew"


def _explain(output: AcceptedOutput) -> list[str]:
    """Give what stands behind the path, and the lines below it."""
    headline, _, _ = output.message.partition("\n")
    if not headline:
        return [""]
    if output.change is OutputChange.CHANGED:
        return ["", f"  {make_visible(headline)}", *show_difference(output.message)]
    told = make_visible(" ".join(output.message.split()))
    return [f" ({told})"] if output.change in {OutputChange.NEW, OutputChange.REMOVED} else [f": {told}"]
