"""Results as coloured cells. There are hundreds on a page: a template would take longer for them than for all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from pytest_golden.clock import iso_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_golden.gate.past import PastResult

_CELL = '<li><a class="{status}" href="{address}" title="{status} {moment} UTC"></a></li>'


def show_cells(results: Sequence[PastResult], url: Callable[..., str]) -> Markup:
    """Give results, which come newest first, as items of a list, the oldest first; each says in words what it is."""
    return Markup().join(Markup(_show_cell(one, url)) for one in reversed(results))


def _show_cell(result: PastResult, url: Callable[..., str]) -> str:
    return _CELL.format(
        status=escape(result.status.value),
        address=escape(url("results", result.entry_id)),
        moment=escape(iso_utc(result.created_at)[:16].replace("T", " ")),
    )
