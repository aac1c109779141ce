"""The parts of the HTML page about the run as a whole, and the elements that every part is made of.

A text that is not `Html` is made visible and escaped by `tag` and `join`, so that escaping cannot be forgotten.
"""

from __future__ import annotations

import html
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, RunVerdict, fails_the_gate
from pytest_golden.regression.wording import format_elapsed, name_some
from pytest_golden.report.result_text import cut, make_visible, short_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


T = TypeVar("T")
_EMPTY = frozenset({"meta", "link", "rect", "br"})
MOST_ROWS = 2_000
_MOST_WEAKENINGS = 500
_MOST_NAMED = 100
_SHORT = 10


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One gate run, read back from its report. `failing` has the names of the results that fail the gate."""

    check: RegressionCheckResult
    verdict: RunVerdict
    gate: Mapping[str, Any]
    weakened_floor: tuple[Mapping[str, Any], ...]
    failing: frozenset[str]

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> ShownRun:
        """Read a gate report; optional keys may be missing.

        Raises:
            KeyError: it is not a gate report.
            ValueError: it contains an unknown status.
        """
        check = RegressionCheckResult(tuple(map(GoldenProjectResult.from_dict, report["results"])))
        gate = report.get("gate") or {}
        skips_fail = gate.get("require") is True
        failing = (result.name for result in check.results if fails_the_gate(result, skips_fail=skips_fail))
        weakened_floor = tuple(report.get("weakened_floor") or ())
        return cls(check, RunVerdict.from_dict(report), gate, weakened_floor, frozenset(failing))

    def list_names(self, key: str) -> tuple[str, ...]:
        """Return the names that a key of the gate's facts lists."""
        return tuple(map(str, self.gate.get(key) or ()))


def describe_verdict(run: ShownRun) -> Html:
    """Return the heading and the counts."""
    return join(
        [
            tag("h1", "Golden projects: ", tag("span", run.verdict.heading, class_=_class_of_run(run.verdict))),
            tag("p", run.verdict.count) if run.verdict.count else None,
            tag("p", one_line(describe_place(run.gate)), class_="muted"),
        ]
    )


def _class_of_run(verdict: RunVerdict) -> str:
    """Return the CSS class for a verdict. Only a run that passed is green."""
    return "good" if verdict.is_good else "bad" if verdict.is_bad else "warn"


def describe_place(gate: Mapping[str, Any]) -> str:
    """Return when and on which commit a gate ran, and with which manifest."""
    commit = gate.get("commit")
    at = f"commit {str(commit)[:_SHORT]}{' with uncommitted edits' if gate.get('dirty') else ''}" if commit else ""
    branch = f"branch {gate['branch']}" if gate.get("branch") else ""
    return ", ".join(filter(None, [str(gate.get("started_at") or ""), at, branch, str(gate.get("manifest") or "")]))


def describe_floor(run: ShownRun) -> Html | None:
    """Return what is weaker than in the base, or None."""
    if not run.weakened_floor:
        return None
    is_accepted = not run.verdict.is_floor_bad
    title = "Weakened floor, accepted by a person" if is_accepted else "Weakened floor"
    base = run.gate.get("floor_base")
    told = f"Compared with {base}." if base else None
    return tag(
        "section",
        tag("h2", title, id="floor", class_="warn" if is_accepted else "bad"),
        tag("p", one_line(told)) if told else None,
        list_some(run.weakened_floor, _MOST_WEAKENINGS, _describe_weakening, ": the JSON report has them"),
        aria_labelledby="floor",
    )


def _describe_weakening(weakening: Mapping[str, Any]) -> Html:
    project = weakening.get("project")
    name = join([tag("code", one_line(str(project))), ": "]) if project else None
    values = [(key, weakening.get(key)) for key in ("base", "head")]
    told = "; ".join(f"{key}: {one_line(str(value))}" for key, value in values if value is not None)
    return join(
        [name, one_line(str(weakening.get("message", ""))), tag("span", f" ({told})", class_="muted") if told else None]
    )


def list_left_out(run: ShownRun) -> Html | None:
    """Name the projects that have no result; return None if all have one."""
    told = [
        tag("p", f"{words}: {one_line(name_some(names, _MOST_NAMED), 8_000)}")
        for key, words in (("not_run", "Not run"), ("deselected", "Deselected"))
        if (names := run.list_names(key))
    ]
    if not told:
        return None
    heading = tag("h2", "Without a result", id="left-out")
    return tag("section", heading, *told, aria_labelledby="left-out")


def list_some(items: Sequence[T], most: int, show: Callable[[T], str], more_in: str = "") -> Html:
    """Return a list of the first items, and count the others."""
    more = len(items) - most
    rest = tag("li", f"and {more} more{more_in}") if more > 0 else None
    return tag("ul", *(tag("li", show(item)) for item in items[:most]), rest)


def list_projects(run: ShownRun) -> Html:
    """Return the table of all projects; if there are very many, those that passed are only counted."""
    results = list(enumerate(run.check.results))
    if len(results) > MOST_ROWS:
        results = [(place, result) for place, result in results if result.status is not ResultStatus.PASSED]
    shown = results[:MOST_ROWS]
    more = len(run.check.results) - len(shown)
    note = tag("p", f"{more} more are not listed: the JSON report has them.") if more else None
    titles = (("Project", None), ("Status", None), ("Time", "number"), ("Reason", None))
    caption = tag("caption", f"{len(run.check.results)} results in declaration order")
    table = make_table(titles, (_row(place, result) for place, result in shown), caption)
    heading = tag("h2", "All projects", id="projects")
    return tag("section", heading, table, note, aria_labelledby="projects")


def make_table(titles: Iterable[tuple[str, str | None]], rows: Iterable[Html], caption: Html | None = None) -> Html:
    """Return a table that scrolls by itself; each title comes with its CSS class."""
    head = tag("tr", *(tag("th", title, scope="col", class_=kind) for title, kind in titles))
    return tag("div", tag("table", caption, tag("thead", head), tag("tbody", *rows)), class_="wide")


def _row(place: int, result: GoldenProjectResult) -> Html:
    took = "" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    return tag(
        "tr",
        tag("th", tag("a", one_line(result.name), href=f"#project-{place}"), scope="row"),
        tag("td", str(result.status), class_=f"status {class_of(result)}"),
        tag("td", took, class_="number"),
        tag("td", one_line(short_reason(result), 300)),
    )


def describe_run(run: ShownRun) -> Html:
    """Return where and how the gate ran."""
    pairs = [pair for key, value in _list_facts(run.gate) for pair in (tag("dt", key), tag("dd", one_line(value)))]
    heading = tag("h2", "The run", id="run")
    return tag("section", heading, tag("dl", *pairs), aria_labelledby="run")


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


def class_of(result: GoldenProjectResult) -> str:
    """Return the CSS class for a result's status."""
    if result.quarantined is not None or (result.status is ResultStatus.SKIPPED and not result.is_regression):
        return "warn"
    return "good" if result.status is ResultStatus.PASSED else "bad"


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Html:
    """Return an element. A child that is not `Html` is escaped; children and attributes that are None are left out.

    Attributes are named as in HTML, with `_` for `-`, and with a `_` after a Python keyword (`class_`).
    """
    named = (
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{name}{''.join(named)}>"
    return Html(start if name in _EMPTY else f"{start}{join(children)}</{name}>")


def join(children: Iterable[str | None], between: str = "") -> Html:
    """Return the children joined by `between`; those that are not `Html` are escaped."""
    told = (child if isinstance(child, Html) else _escape(child) for child in children if child is not None)
    return Html(between.join(told))


def one_line(text: str, most: int = 400) -> str:
    """Return a text as one line, cut to `most` characters."""
    return cut(" ".join(make_visible(text).split()), most)


def _escape(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode()
    return html.escape(make_visible(printable), quote=True)
