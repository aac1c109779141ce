"""The report as one HTML page: its frame, its content security policy, and each project with as many details as fit in."""

from __future__ import annotations

import base64
import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import OUTPUT_KINDS, Reason
from pytest_golden.regression.wording import find_failing_step, format_elapsed
from pytest_golden.report import html_parts
from pytest_golden.report.html_parts import Html, class_of, join, one_line, tag
from pytest_golden.report.report_files import write_report
from pytest_golden.report.result_text import (
    LAST_LINES,
    cut,
    describe_step,
    make_visible,
    read_duration_ms,
    read_error,
    short_reason,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

    Describe = Callable[[int, GoldenProjectResult], Html]

MOST_BYTES = 8 * 1024 * 1024
_MOST_LINKS = 50
_MOST_STEPS = 200
_MOST_REASONS = 50
_MOST_OF_REASON = 8 * 1024
_MOST_OF_OUTPUT = 32 * 1024
_MOST_KNOWN_LINES = 60
_MOST_FILES = 100

Numbered = tuple[int, "GoldenProjectResult"]


def write_html(path: Path, report: Mapping[str, Any], *, option: str = "--golden-html") -> None:
    """Write the page; an existing file is replaced in one step, missing parent folders are made.

    Raises:
        GoldenError: the file cannot be written.
    """
    write_report(path, html_report(report), option=option)


def html_report(report: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> str:
    """Return a gate report as one HTML page; the page says which details beyond about `most_bytes` it leaves out.

    Args:
        report: what `gate_report` returns, already redacted; optional keys may be missing.
        most_bytes: the room for the details of the projects.

    Raises:
        KeyError: it is not a gate report.
        ValueError: it contains an unknown status.
    """
    run = html_parts.ShownRun.read(report)
    numbered = list(enumerate(run.check.results))
    wrong = [(place, result) for place, result in numbered if _is_told_in_full(run, result)]
    others = [(place, result) for place, result in numbered if not _is_told_in_full(run, result)][
        : html_parts.MOST_ROWS
    ]
    room = _Room(most_bytes)
    main = [
        html_parts.describe_floor(run),
        room.fill("failures", "What did not pass", wrong, _describe_failure),
        html_parts.list_left_out(run),
        html_parts.list_projects(run),
        room.fill("others", "Details of the others", others, _describe_pass),
        html_parts.describe_run(run),
    ]
    body = [
        tag("a", "Skip to the results", href="#main", class_="skip"),
        tag("header", html_parts.describe_verdict(run)),
        _contents(wrong),
        tag("main", *main, id="main"),
        tag("footer", tag("p", "Written by pytest-golden-projects. This page loads nothing and runs no script.")),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *_list_head(run)), tag('body', *body), lang='en')}\n"


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


def _is_told_in_full(run: html_parts.ShownRun, result: GoldenProjectResult) -> bool:
    return result.name in run.failing or result.status.is_failure


def _contents(wrong: Sequence[Numbered]) -> Html | None:
    def link(numbered: Numbered) -> Html:
        return tag("a", one_line(numbered[1].name), href=f"#project-{numbered[0]}")

    return tag("nav", html_parts.list_some(wrong, _MOST_LINKS, link), aria_label="What did not pass") if wrong else None


def _list_head(run: html_parts.ShownRun) -> Iterator[Html]:
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
    yield tag("title", f"Golden projects: {run.verdict.heading}")
    yield tag("style", style)


def _describe_failure(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that did not pass, in full; `place` names its anchor."""
    title = join([tag("code", one_line(result.name)), ": ", _status(result)])
    kind = "aside" if class_of(result) == "warn" else None
    parts = [*_reasons(result), *_known(result), *_output(result), *_rest(result)]
    return tag("article", tag("h3", title, id=f"project-{place}"), *parts, class_=kind)


def _describe_pass(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that passed, to unfold."""
    took = f" {format_elapsed(result.execution_time_seconds)} "
    told = short_reason(result)
    line = [tag("code", one_line(result.name)), " ", _status(result), took, tag("span", one_line(told), class_="warn")]
    parts = [*_known(result), *_output(result), *_rest(result)]
    return tag("details", tag("summary", tag("h3", *line)), *parts, class_="project", id=f"project-{place}")


def _describe_cut(place: int, result: GoldenProjectResult) -> Html:
    """Return a project in short, when there is no room for its details."""
    line = [tag("code", one_line(result.name)), " ", _status(result), " ", one_line(short_reason(result))]
    told = tag("p", "The page is full: the JSON report and the log have its details.", class_="muted")
    return tag("div", tag("p", *line), told, class_="project", id=f"project-{place}")


def _status(result: GoldenProjectResult) -> Html:
    return tag("span", str(result.status), class_=f"status {class_of(result)}")


def _reasons(result: GoldenProjectResult) -> Iterator[Html]:
    if result.quarantined is not None:
        yield tag("p", f"quarantined, {one_line(result.quarantined)}", class_="warn")
    reasons = result.reasons or (Reason("", result.error_message or "no reason was given"),)
    for reason in reasons[:_MOST_REASONS]:
        yield tag("p", tag("strong", cut(make_visible(reason.headline), _MOST_OF_REASON)))
        difference = make_visible(reason.message[len(reason.headline) :].strip("\n"))
        if difference and reason.kind in OUTPUT_KINDS:
            yield _section("Difference from the baseline", tag("pre", cut(difference, _MOST_OF_REASON), tabindex=0))
    if len(reasons) > _MOST_REASONS:
        yield tag("p", f"and {len(reasons) - _MOST_REASONS} more reasons: the JSON report has them")
    if result.attempts > 1:
        yield tag("p", f"tried {result.attempts} times, each time without a pass")
    step = find_failing_step(result.steps)
    if step is not None:
        yield _section("Failing step", tag("p", cut(describe_step(step), _MOST_OF_REASON)))


def _known(result: GoldenProjectResult) -> Iterator[Html]:
    told: dict[str, list[str]] = {"What changed": [], "What is known": []}
    for one in result.known:
        title = "What changed" if one.get("kind") == "changed_since_pass" else "What is known"
        told[title] += map(str, one.get("lines") or ())
    for title, lines in told.items():
        if lines:
            items = (tag("li", cut(make_visible(line), 1_000)) for line in lines[:_MOST_KNOWN_LINES])
            yield _section(title, tag("ul", *items))


def _output(result: GoldenProjectResult) -> Iterator[Html]:
    lines = make_visible(result.output_summary).rstrip().splitlines()
    if not lines:
        return
    more = len(lines) - LAST_LINES
    last = "\n".join(lines[-LAST_LINES:])[-_MOST_OF_OUTPUT:]
    yield _section("Last output", tag("pre", last, tabindex=0))
    if more > 0:
        head = cut("\n".join(lines[:-LAST_LINES]), _MOST_OF_OUTPUT)
        yield tag("details", tag("summary", f"{more} more lines before it"), tag("pre", head, tabindex=0))


def _rest(result: GoldenProjectResult) -> Iterator[Html]:
    yield from (tag("p", f"note: {one_line(warning, 1_000)}", class_="warn") for warning in result.warnings[:20])
    if result.steps:
        yield _list_steps(result)
    written = {name: getattr(result.write_set, name) for name in ("created", "changed", "removed")}
    if count := sum(map(len, written.values())):
        lists = [
            _section(title, html_parts.list_some(paths, _MOST_FILES, lambda path: tag("code", one_line(path))))
            for title, paths in written.items()
            if paths
        ]
        yield tag("details", tag("summary", f"Written files ({count})"), *lists)
    yield tag("dl", *_facts(result))


def _list_steps(result: GoldenProjectResult) -> Html:
    """Return the steps as a table to unfold; if there are very many, the last ones, because a failure is at the end."""
    steps = result.steps[-_MOST_STEPS:]
    longest = max((read_duration_ms(step) or 0.0 for step in steps), default=0.0)
    failing = find_failing_step(result.steps)
    titles = (("Step", None), ("Type", "optional"), ("Time", "number"), ("", "optional"), ("Error", None))
    table = html_parts.make_table(titles, (_step_row(step, longest, is_failing=step is failing) for step in steps))
    left_out = result.steps_total - len(steps)
    note = tag("p", f"{left_out} steps before them: the trajectory has them") if left_out > 0 else None
    summary = tag("summary", f"Steps ({max(result.steps_total, len(steps))})")
    return tag("details", summary, note, table, open="" if failing is not None else None)


def _step_row(step: Mapping[str, Any], longest: float, *, is_failing: bool) -> Html:
    took = read_duration_ms(step)
    return tag(
        "tr",
        tag("th", one_line(str(step.get("content", "?"))), scope="row", class_="bad" if is_failing else None),
        tag("td", one_line(str(step.get("type", ""))), class_="optional"),
        tag("td", "" if took is None else f"{took:,.0f} ms", class_="number"),
        tag("td", _bar(took, longest), class_="optional"),
        tag("td", one_line(read_error(step)), class_="bad"),
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
