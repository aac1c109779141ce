"""The report as one HTML page: its frame, its content security policy, the run, and each project with as many details as fit.

A text that is not `Html` is made visible and escaped by `tag` and `join`, so that escaping cannot be forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import html
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, RunVerdict, fails_the_gate
from pytest_golden.regression.wording import find_failing_step, format_elapsed, name_some
from pytest_golden.report import result_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.gateway.table_difference import HistogramBar, TableDifference

    Describe = Callable[[int, GoldenProjectResult], "Html"]

MOST_BYTES = 8 * 1024 * 1024
_MOST_LINKS = 50
_MOST_STEPS = 200
_MOST_REASONS = 50
_MOST_CHANGED_ROWS = 50
_MOST_OF_REASON = 8 * 1024
_MOST_OF_OUTPUT = 32 * 1024
_MOST_KNOWN_LINES = 60
_MOST_FILES = 100
_MOST_ROWS = 2_000
_MOST_WEAKENINGS = 500
_MOST_NAMED = 100
_SHORT = 10
_EMPTY = frozenset({"meta", "link", "rect", "br"})

T = TypeVar("T")
Numbered = tuple[int, GoldenProjectResult]


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


def html_report(report: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> str:
    """Return a gate report as one HTML page; the page says which details beyond about `most_bytes` it leaves out.

    Args:
        report: what `gate_report` returns, already redacted; optional keys may be missing.
        most_bytes: the room for the details of the projects.

    Raises:
        KeyError: it is not a gate report.
        ValueError: it contains an unknown status.
    """
    run = ShownRun.read(report)
    numbered = list(enumerate(run.check.results))
    wrong = [(place, result) for place, result in numbered if _is_told_in_full(run, result)]
    others = [(place, result) for place, result in numbered if not _is_told_in_full(run, result)][:_MOST_ROWS]
    room = _Room(most_bytes)
    main = [
        _describe_floor(run),
        room.fill("failures", "What did not pass", wrong, _describe_failure),
        _list_left_out(run),
        _list_projects(run),
        room.fill("others", "Details of the others", others, _describe_pass),
        _describe_run(run),
    ]
    body = [
        tag("a", "Skip to the results", href="#main", class_="skip"),
        tag("header", _describe_verdict(run)),
        _contents(wrong),
        tag("main", *main, id="main"),
    ]
    return make_page(f"Golden projects: {run.verdict.heading}", body)


def make_page(title: str, body: Sequence[Html | None]) -> str:
    """Return a page that loads nothing and runs no script."""
    footer = tag("footer", tag("p", "Written by pytest-golden-projects. This page loads nothing and runs no script."))
    return f"<!doctype html>\n{tag('html', tag('head', *_list_head(title)), tag('body', *body, footer), lang='en')}\n"


class _Room:
    """Counts the bytes that are left for details."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def fill(self, name: str, title: str, results: Iterable[Numbered], describe: Describe) -> Html | None:
        """Return a section that describes projects while there is room, and afterwards only names them."""
        told = [self._describe_or_name(place, result, describe) for place, result in results]
        return tag("section", tag("h2", title, id=name), *told, aria_labelledby=name) if told else None

    def _describe_or_name(self, place: int, result: GoldenProjectResult, describe: Describe) -> Html:
        told = describe(place, result) if self._left > 0 else _describe_cut(place, result)
        size = len(told.encode())
        if size > self._left:
            told = _describe_cut(place, result)
        self._left -= size
        return told


def _is_told_in_full(run: ShownRun, result: GoldenProjectResult) -> bool:
    return result.name in run.failing or result.status.is_failure


def _contents(wrong: Sequence[Numbered]) -> Html | None:
    def link(numbered: Numbered) -> Html:
        return tag("a", one_line(numbered[1].name), href=f"#project-{numbered[0]}")

    return tag("nav", _list_some(wrong, _MOST_LINKS, link), aria_label="What did not pass") if wrong else None


def _list_head(title: str) -> Iterator[Html]:
    style = Html(Path(__file__).with_name("style.css").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    yield tag("meta", charset="utf-8")
    yield tag("meta", http_equiv="Content-Security-Policy", content=policy)
    yield tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield tag("meta", name="referrer", content="no-referrer")
    yield tag("meta", name="robots", content="noindex")
    # An icon of its own keeps a browser from asking a server for one.
    yield tag("link", rel="icon", href="data:,")
    yield tag("title", title)
    yield tag("style", style)


def _describe_failure(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that did not pass, in full; `place` names its anchor."""
    title = join([tag("code", one_line(result.name)), ": ", _status(result)])
    kind = "aside" if _class_of(result) == "warn" else None
    parts = [*_reasons(result), *_known(result), *_output(result), *_rest(result)]
    return tag("article", tag("h3", title, id=f"project-{place}"), *parts, class_=kind)


def _describe_pass(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that passed, to unfold."""
    took = f" {format_elapsed(result.execution_time_seconds)} "
    told = result_text.short_reason(result)
    line = [tag("code", one_line(result.name)), " ", _status(result), took, tag("span", one_line(told), class_="warn")]
    parts = [*_known(result), *_output(result), *_rest(result)]
    return tag("details", tag("summary", tag("h3", *line)), *parts, class_="project", id=f"project-{place}")


def _describe_cut(place: int, result: GoldenProjectResult) -> Html:
    """Return a project in short, when there is no room for its details."""
    line = [tag("code", one_line(result.name)), " ", _status(result), " ", one_line(result_text.short_reason(result))]
    told = tag("p", "The page is full: the JSON report and the log have its details.", class_="muted")
    return tag("div", tag("p", *line), told, class_="project", id=f"project-{place}")


def _status(result: GoldenProjectResult) -> Html:
    return tag("span", str(result.status), class_=f"status {_class_of(result)}")


def _reasons(result: GoldenProjectResult) -> Iterator[Html]:
    if result.quarantined is not None:
        yield tag("p", f"quarantined, {one_line(result.quarantined)}", class_="warn")
    reasons = result.reasons or (Reason("", result.error_message or "no reason was given"),)
    for reason in reasons[:_MOST_REASONS]:
        yield tag("p", tag("strong", result_text.cut(result_text.make_visible(reason.headline), _MOST_OF_REASON)))
        difference = result_text.make_visible(reason.difference)
        if difference:
            yield _section(
                "Difference from the baseline", tag("pre", result_text.cut(difference, _MOST_OF_REASON), tabindex=0)
            )
        if reason.table is not None and reason.table.columns:
            yield describe_table(reason.table)
    if len(reasons) > _MOST_REASONS:
        yield tag("p", f"and {len(reasons) - _MOST_REASONS} more reasons: the JSON report has them")
    if result.attempts > 1:
        yield tag("p", f"tried {result.attempts} times, each time without a pass")
    step = find_failing_step(result.steps)
    if step is not None:
        yield _section("Failing step", tag("p", result_text.cut(result_text.describe_step(step), _MOST_OF_REASON)))


def describe_table(table: TableDifference, before: str = "Baseline") -> Html:
    """Return the columns of a table that differ, with both sides as bars, and the first rows, to unfold."""
    columns = [
        tag(
            "tr",
            tag("th", one_line(column.name), scope="row"),
            tag("td", f"{column.cells:,}", class_="number"),
            tag("td", f"{column.nulls_before:,} → {column.nulls_after:,}", class_="number"),
            tag("td", f"{column.distinct_before:,} → {column.distinct_after:,}", class_="number"),
            tag("td", _histogram(column.histogram)),
        )
        for column in table.columns
    ]
    rows = [
        tag(
            "tr",
            *(tag("td", _value(part)) for part in row.place),
            tag("td", one_line(cell.column)),
            tag("td", _value(cell.before), class_="bad"),
            tag("td", _value(cell.after), class_="good"),
        )
        for row in table.changed_rows[:_MOST_CHANGED_ROWS]
        for cell in row.cells
    ]
    heads = ("Column", "Cells that differ", "Nulls", "Distinct", f"{before} and now")
    parts = [_table(heads, columns)]
    if rows:
        parts.append(_table((*map(one_line, table.place_names), "Column", before, "Now"), rows))
    count = len(table.changed_rows[:_MOST_CHANGED_ROWS])
    told = f"Columns, and {count} of {table.rows_changed:,} changed rows" if count else "Columns"
    return tag("details", tag("summary", told), *parts)


def _table(heads: Iterable[str], rows: Iterable[Html]) -> Html:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in heads)))
    return tag("div", tag("table", head, tag("tbody", *rows)), class_="wide", tabindex=0)


def _value(text: str | None) -> Html:
    return tag("span", "NULL", class_="muted") if text is None else tag("span", one_line(text, 300))


def _histogram(bars: Sequence[HistogramBar]) -> Html | None:
    if not bars:
        return None
    most = max(1, *(max(bar.before, bar.after) for bar in bars))
    drawn = []
    for at, bar in enumerate(bars):
        title = tag("title", f"{one_line(bar.label)}: {bar.before:,}, now {bar.after:,}")
        sides = (
            tag(
                "rect",
                x=3 * at + side,
                width=1,
                y=f"{20 - 20 * count / most:.2f}",
                height=f"{20 * count / most:.2f}",
                class_=kind,
            )
            for side, (kind, count) in enumerate((("before", bar.before), ("after", bar.after)))
        )
        drawn.append(tag("g", title, *sides))
    box = f"0 0 {3 * len(bars)} 20"
    return tag("svg", *drawn, viewBox=box, preserveAspectRatio="none", class_="histogram", aria_hidden="true")


def _known(result: GoldenProjectResult) -> Iterator[Html]:
    told: dict[str, list[str]] = {"What changed": [], "What is known": []}
    for one in result.known:
        title = "What changed" if one.get("kind") == "changed_since_pass" else "What is known"
        told[title] += map(str, one.get("lines") or ())
    for title, lines in told.items():
        if lines:
            items = (
                tag("li", result_text.cut(result_text.make_visible(line), 1_000)) for line in lines[:_MOST_KNOWN_LINES]
            )
            yield _section(title, tag("ul", *items))


def _output(result: GoldenProjectResult) -> Iterator[Html]:
    lines = result_text.make_visible(result.output_summary).rstrip().splitlines()
    if not lines:
        return
    more = len(lines) - result_text.LAST_LINES
    last = "\n".join(lines[-result_text.LAST_LINES :])[-_MOST_OF_OUTPUT:]
    yield _section("Last output", tag("pre", last, tabindex=0))
    if more > 0:
        head = result_text.cut("\n".join(lines[: -result_text.LAST_LINES]), _MOST_OF_OUTPUT)
        yield tag("details", tag("summary", f"{more} more lines before it"), tag("pre", head, tabindex=0))


def _rest(result: GoldenProjectResult) -> Iterator[Html]:
    yield from (tag("p", f"note: {one_line(warning, 1_000)}", class_="warn") for warning in result.warnings[:20])
    if result.steps:
        yield _list_steps(result)
    written = {name: getattr(result.write_set, name) for name in ("created", "changed", "removed")}
    if count := sum(map(len, written.values())):
        lists = [
            _section(title, _list_some(paths, _MOST_FILES, lambda path: tag("code", one_line(path))))
            for title, paths in written.items()
            if paths
        ]
        yield tag("details", tag("summary", f"Written files ({count})"), *lists)
    yield tag("dl", *_facts(result))


def _list_steps(result: GoldenProjectResult) -> Html:
    """Return the steps as a table to unfold; if there are very many, the last ones, because a failure is at the end."""
    steps = result.steps[-_MOST_STEPS:]
    longest = max((result_text.read_duration_ms(step) or 0.0 for step in steps), default=0.0)
    failing = find_failing_step(result.steps)
    titles = (("Step", None), ("Type", "optional"), ("Time", "number"), ("", "optional"), ("Error", None))
    table = _make_table(titles, (_step_row(step, longest, is_failing=step is failing) for step in steps))
    left_out = result.steps_total - len(steps)
    note = tag("p", f"{left_out} steps before them: the trajectory has them") if left_out > 0 else None
    summary = tag("summary", f"Steps ({max(result.steps_total, len(steps))})")
    return tag("details", summary, note, table, open="" if failing is not None else None)


def _step_row(step: Mapping[str, Any], longest: float, *, is_failing: bool) -> Html:
    took = result_text.read_duration_ms(step)
    return tag(
        "tr",
        tag("th", one_line(str(step.get("content", "?"))), scope="row", class_="bad" if is_failing else None),
        tag("td", one_line(str(step.get("type", ""))), class_="optional"),
        tag("td", "" if took is None else f"{took:,.0f} ms", class_="number"),
        tag("td", _bar(took, longest), class_="optional"),
        tag("td", one_line(result_text.read_error(step)), class_="bad"),
    )


def _bar(took: float | None, longest: float) -> Html | None:
    if took is None or longest <= 0:
        return None
    bar = tag("rect", width=f"{max(0.5, 100 * took / longest):.1f}", height=10)
    return tag("svg", bar, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def _facts(result: GoldenProjectResult) -> Iterator[Html]:
    facts = {
        "path": result.path,
        "command": shlex.join(result.command) if result.command else None,
        "exit code": None if result.exit_code is None else str(result.exit_code),
        "time": format_elapsed(result.execution_time_seconds),
        "attempts": str(result.attempts),
        "full log": result.log_path,
        "kept view": result.kept_view,
        "trajectory": result.trajectory_id,
    }
    for name, value in facts.items():
        if value:
            yield tag("dt", name)
            yield tag("dd", tag("code", one_line(value, 2_000)))


def _section(title: str, *children: str) -> Html:
    return tag("div", tag("h4", title), *children)


def _describe_verdict(run: ShownRun) -> Html:
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


def _describe_floor(run: ShownRun) -> Html | None:
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
        _list_some(run.weakened_floor, _MOST_WEAKENINGS, _describe_weakening, ": the JSON report has them"),
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


def _list_left_out(run: ShownRun) -> Html | None:
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


def _list_some(items: Sequence[T], most: int, show: Callable[[T], str], more_in: str = "") -> Html:
    """Return a list of the first items, and count the others."""
    more = len(items) - most
    rest = tag("li", f"and {more} more{more_in}") if more > 0 else None
    return tag("ul", *(tag("li", show(item)) for item in items[:most]), rest)


def _list_projects(run: ShownRun) -> Html:
    """Return the table of all projects; if there are very many, those that passed are only counted."""
    results = list(enumerate(run.check.results))
    if len(results) > _MOST_ROWS:
        results = [(place, result) for place, result in results if result.status is not ResultStatus.PASSED]
    shown = results[:_MOST_ROWS]
    more = len(run.check.results) - len(shown)
    note = tag("p", f"{more} more are not listed: the JSON report has them.") if more else None
    titles = (("Project", None), ("Status", None), ("Time", "number"), ("Reason", None))
    caption = tag("caption", f"{len(run.check.results)} results in declaration order")
    table = _make_table(titles, (_row(place, result) for place, result in shown), caption)
    heading = tag("h2", "All projects", id="projects")
    return tag("section", heading, table, note, aria_labelledby="projects")


def _make_table(titles: Iterable[tuple[str, str | None]], rows: Iterable[Html], caption: Html | None = None) -> Html:
    """Return a table that scrolls by itself; each title comes with its CSS class."""
    head = tag("tr", *(tag("th", title, scope="col", class_=kind) for title, kind in titles))
    return tag("div", tag("table", caption, tag("thead", head), tag("tbody", *rows)), class_="wide")


def _row(place: int, result: GoldenProjectResult) -> Html:
    took = "" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    return tag(
        "tr",
        tag("th", tag("a", one_line(result.name), href=f"#project-{place}"), scope="row"),
        tag("td", str(result.status), class_=f"status {_class_of(result)}"),
        tag("td", took, class_="number"),
        tag("td", one_line(result_text.short_reason(result), 300)),
    )


def _describe_run(run: ShownRun) -> Html:
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


def _class_of(result: GoldenProjectResult) -> str:
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
    return result_text.cut(" ".join(result_text.make_visible(text).split()), most)


def _escape(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode()
    return html.escape(result_text.make_visible(printable), quote=True)
