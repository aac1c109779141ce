"""Results and gates as cells of a strip. There are hundreds on a page: a template would take longer for them than for all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from pytest_golden.clock import iso_utc
from pytest_golden.web.shown.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from pytest_golden.gate.past import PastResult
    from pytest_golden.gate.recorded.runs.model import ListedResult, ListedRun

_CELL = '<li><a class="{status}" href="{address}" title="{title}"></a></li>'
# For a list that stands beside a table with the same links: whoever goes by Tab need not pass each twice.
_PASSED_OVER = _CELL.replace("<a ", '<a tabindex="-1" ')
_MOST_LETTERS = 60


def show_cells(results: Sequence[PastResult], url: Callable[..., str]) -> Markup:
    """Give results, which come newest first, as items of a list, the oldest first; each says in words what it is."""
    return _join(
        _show(_CELL, one.status, url("results", one.entry_id), f"{one.status} {_tell(one.created_at)}")
        for one in reversed(results)
    )


def show_run_cells(results: Sequence[ListedResult], url: Callable[..., str]) -> Markup:
    """Give the results of one run in the order in which they came in."""
    return _join(
        _show(_PASSED_OVER, one.status, url("results", one.entry_id), f"{one.status} {one.name[:_MOST_LETTERS]}")
        for one in sorted(results, key=lambda one: (one.created_at, one.number))
    )


def show_gate_cells(runs: Sequence[ListedRun], url: Callable[..., str]) -> Markup:
    """Give gate runs, which come newest first, the oldest first."""
    return _join(
        _show(
            _PASSED_OVER, name_standing(one), url("runs", one.entry_id), f"{name_standing(one)} {_tell(one.started_at)}"
        )
        for one in reversed(runs)
    )


def name_standing(run: ListedRun) -> str:
    """Give one word for how a gate run stands."""
    if run.is_running:
        return "running"
    return "INTERRUPTED" if run.is_interrupted else (run.final_status or "INTERRUPTED").split()[0]


def _join(cells: Iterable[str]) -> Markup:
    return Markup("".join(cells))


def _show(cell: str, status: str, address: str, title: str) -> str:
    return cell.format(status=escape(str(status)), address=escape(address), title=escape(make_visible(title)))


def _tell(moment: datetime) -> str:
    return f"{iso_utc(moment)[:16].replace('T', ' ')} UTC"
