"""The parts of the page about the run as a whole: verdict, weakened floor, table of projects, where and how it ran."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.html.markup import Html, join, one_line, tag
from pytest_golden.report.one_line import short_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.report.shown_run import ShownRun

MOST_ROWS = 2_000
_MOST_WEAKENINGS = 500
_MOST_NAMED = 100
_SHORT = 10


def class_of(result: GoldenProjectResult) -> str:
    """Give the class that colours a result's status."""
    if result.quarantined is not None or (result.status is ResultStatus.SKIPPED and not result.is_regression):
        return "warn"
    return "good" if result.status is ResultStatus.PASSED else "bad"


def describe_verdict(run: ShownRun) -> Html:
    """Give the heading and the counts."""
    return join(
        [
            tag("h1", "Golden projects: ", tag("span", run.verdict, class_="good" if run.is_good else "bad")),
            tag("p", run.count),
            tag("p", one_line(_describe_place(run.gate)), class_="muted"),
        ]
    )


def describe_floor(run: ShownRun) -> Html | None:
    """Give what is weaker than in the base; None where nothing is."""
    if not run.weakened_floor:
        return None
    items = [tag("li", _describe_weakening(one)) for one in run.weakened_floor[:_MOST_WEAKENINGS]]
    more = len(run.weakened_floor) - len(items)
    items += [tag("li", f"and {more} more: the JSON report has them")] * bool(more)
    is_accepted = not run.is_floor_bad
    title = "Weakened floor, accepted by a person" if is_accepted else "Weakened floor"
    base = run.gate.get("floor_base")
    told = f"Compared with {base}." if base else None
    return tag(
        "section",
        tag("h2", title, id="floor", class_="warn" if is_accepted else "bad"),
        tag("p", one_line(told)) if told else None,
        tag("ul", *items),
        aria_labelledby="floor",
    )


def list_left_out(run: ShownRun) -> Html | None:
    """Name the projects that have no result; None where all have one."""
    told = [
        tag("p", f"{words}: {_name(names)}")
        for key, words in (("not_run", "Not run"), ("deselected", "Deselected"))
        if (names := run.list_names(key))
    ]
    if not told:
        return None
    heading = tag("h2", "Without a result", id="left-out")
    return tag("section", heading, *told, aria_labelledby="left-out")


def list_projects(run: ShownRun) -> Html:
    """Give the table of all projects; of very many those that passed are counted."""
    results = list(enumerate(run.check.results))
    if len(results) > MOST_ROWS:
        results = [(place, result) for place, result in results if result.status is not ResultStatus.PASSED]
    shown = results[:MOST_ROWS]
    more = len(run.check.results) - len(shown)
    head = tag(
        "tr",
        *(tag("th", title, scope="col") for title in ("Project", "Status")),
        tag("th", "Time", scope="col", class_="number"),
        tag("th", "Reason", scope="col"),
    )
    note = f"{more} more are not listed: the JSON report has them." if more else None
    table = tag(
        "table",
        tag("caption", f"{len(run.check.results)} results in declaration order"),
        tag("thead", head),
        tag("tbody", *(_row(place, result) for place, result in shown)),
    )
    heading = tag("h2", "All projects", id="projects")
    told = None if note is None else tag("p", note)
    return tag("section", heading, tag("div", table, class_="wide"), told, aria_labelledby="projects")


def describe_run(run: ShownRun) -> Html:
    """Give where and how the gate ran."""
    pairs = [pair for key, value in _list_facts(run.gate) for pair in (tag("dt", key), tag("dd", one_line(value)))]
    heading = tag("h2", "The run", id="run")
    return tag("section", heading, tag("dl", *pairs), aria_labelledby="run")


def _describe_place(gate: Mapping[str, Any]) -> str:
    commit = gate.get("commit")
    at = f"commit {str(commit)[:_SHORT]}{' with uncommitted edits' if gate.get('dirty') else ''}" if commit else ""
    branch = f"branch {gate['branch']}" if gate.get("branch") else ""
    return ", ".join(filter(None, [str(gate.get("started_at") or ""), at, branch, str(gate.get("manifest") or "")]))


def _describe_weakening(weakening: Mapping[str, Any]) -> Html:
    project = weakening.get("project")
    name = join([tag("code", one_line(str(project))), ": "]) if project else None
    values = [(key, weakening.get(key)) for key in ("base", "head")]
    told = "; ".join(f"{key}: {one_line(str(value))}" for key, value in values if value is not None)
    return join(
        [name, one_line(str(weakening.get("message", ""))), tag("span", f" ({told})", class_="muted") if told else None]
    )


def _name(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return one_line(", ".join(names[:_MOST_NAMED]), 8_000) + (f" and {more} more" if more > 0 else "")


def _row(place: int, result: GoldenProjectResult) -> Html:
    took = "" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    return tag(
        "tr",
        tag("th", tag("a", one_line(result.name), href=f"#project-{place}"), scope="row"),
        tag("td", str(result.status), class_=f"status {class_of(result)}"),
        tag("td", took, class_="number"),
        tag("td", one_line(short_reason(result), 300)),
    )


def _list_facts(gate: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in gate.items():
        if value in (None, "", [], {}, ()) or key in {"not_run", "deselected"}:
            continue
        if key == "environment" and isinstance(value, dict):
            yield from ((str(name), str(told)) for name, told in value.items() if told is not None)
        else:
            yield key.replace("_", " "), _show(key, value)


def _show(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value)) if key == "command_line" else ", ".join(map(str, value))
    return str(value)
