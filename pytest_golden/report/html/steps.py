"""The steps of one project as a table, with a bar for how long each took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.regression.failing_step import find_failing_step
from pytest_golden.report.html.markup import Html, one_line, tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.regression.model import GoldenProjectResult

_MOST_STEPS = 200


def list_steps(result: GoldenProjectResult) -> Html:
    """Give the table, to unfold; of very many steps the last ones, since a failure is at the end."""
    steps = result.steps[-_MOST_STEPS:]
    longest = max((_duration(step) or 0.0 for step in steps), default=0.0)
    failing = find_failing_step(result.steps)
    titles = (("Step", None), ("Type", "optional"), ("Time", "number"), ("", "optional"), ("Error", None))
    head = tag("tr", *(tag("th", title, scope="col", class_=kind) for title, kind in titles))
    rows = (_row(step, longest, is_failing=step is failing) for step in steps)
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    left_out = result.steps_total - len(steps)
    note = tag("p", f"{left_out} steps before them: the trajectory has them") if left_out > 0 else None
    summary = tag("summary", f"Steps ({max(result.steps_total, len(steps))})")
    return tag("details", summary, note, tag("div", table, class_="wide"), open="" if failing is not None else None)


def _row(step: Mapping[str, Any], longest: float, *, is_failing: bool) -> Html:
    took = _duration(step)
    error = (step.get("metadata") or {}).get("error")
    told = "" if error in {None, False} else ("failed" if error is True else one_line(str(error)))
    return tag(
        "tr",
        tag("th", one_line(str(step.get("content", "?"))), scope="row", class_="bad" if is_failing else None),
        tag("td", one_line(str(step.get("type", ""))), class_="optional"),
        tag("td", "" if took is None else f"{took:,.0f} ms", class_="number"),
        tag("td", _bar(took, longest), class_="optional"),
        tag("td", told, class_="bad"),
    )


def _duration(step: Mapping[str, Any]) -> float | None:
    took = step.get("duration_ms")
    return float(took) if isinstance(took, int | float) else None


def _bar(took: float | None, longest: float) -> Html | None:
    if took is None or longest <= 0:
        return None
    width = max(0.5, 100 * took / longest)
    return tag(
        "svg",
        tag("rect", width=f"{width:.1f}", height=10),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
