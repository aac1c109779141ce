"""The part of the page about one project: why, where it broke, what differs, what it printed, what is known of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.failing_step import find_failing_step
from pytest_golden.regression.model import OUTPUT_KINDS, Reason
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.failure_text import LAST_LINES, describe_step, make_visible
from pytest_golden.report.html.facts import class_of
from pytest_golden.report.html.markup import Html, cut, join, one_line, tag
from pytest_golden.report.html.steps import list_steps
from pytest_golden.report.one_line import short_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.regression.model import GoldenProjectResult

_MOST_REASONS = 50
_MOST_OF_REASON = 8 * 1024
_MOST_OF_OUTPUT = 32 * 1024
_MOST_KNOWN_LINES = 60
_MOST_FILES = 100


def describe_failure(place: int, result: GoldenProjectResult) -> Html:
    """Give a project that did not pass, in full; `place` names its anchor."""
    title = join([tag("code", one_line(result.name)), ": ", _status(result)])
    kind = "aside" if class_of(result) == "warn" else None
    parts = [*_reasons(result), *_failing_step(result), *_known(result), *_output(result), *_rest(result)]
    return tag("article", tag("h3", title, id=f"project-{place}"), *parts, class_=kind)


def describe_pass(place: int, result: GoldenProjectResult) -> Html:
    """Give a project that passed, to unfold."""
    took = f" {format_elapsed(result.execution_time_seconds)} "
    told = short_reason(result)
    line = [tag("code", one_line(result.name)), " ", _status(result), took, tag("span", one_line(told), class_="warn")]
    parts = [*_known(result), *_output(result), *_rest(result)]
    return tag("details", tag("summary", tag("h3", *line)), *parts, class_="project", id=f"project-{place}")


def describe_cut(place: int, result: GoldenProjectResult) -> Html:
    """Give a project for whose details there is no room."""
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
        headline, difference = _part(reason)
        yield tag("p", tag("strong", cut(make_visible(headline), _MOST_OF_REASON)))
        if difference:
            yield _section("Difference from the baseline", tag("pre", cut(difference, _MOST_OF_REASON), tabindex=0))
    if len(reasons) > _MOST_REASONS:
        yield tag("p", f"and {len(reasons) - _MOST_REASONS} more reasons: the JSON report has them")
    if result.attempts > 1:
        yield tag("p", f"tried {result.attempts} times, each time without a pass")


def _part(reason: Reason) -> tuple[str, str]:
    """Part a reason into its sentence and the difference behind it."""
    headline = reason.headline
    difference = reason.message[len(headline) :].strip("\n") if reason.kind in OUTPUT_KINDS else ""
    return headline, make_visible(difference)


def _failing_step(result: GoldenProjectResult) -> Iterator[Html]:
    step = find_failing_step(result.steps)
    if step is not None:
        yield _section("Failing step", tag("p", cut(describe_step(step), _MOST_OF_REASON)))


def _known(result: GoldenProjectResult) -> Iterator[Html]:
    changed = [line for one in result.known if one.get("kind") == "changed_since_pass" for line in _lines(one)]
    known = [line for one in result.known if one.get("kind") != "changed_since_pass" for line in _lines(one)]
    for title, lines in (("What changed", changed), ("What is known", known)):
        if lines:
            items = (tag("li", cut(make_visible(line), 1_000)) for line in lines[:_MOST_KNOWN_LINES])
            yield _section(title, tag("ul", *items))


def _lines(known: Any) -> list[str]:
    lines = known.get("lines") or ()
    return [str(line) for line in lines]


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
        yield list_steps(result)
    written = [
        _section(title, _list_files(paths))
        for title in ("created", "changed", "removed")
        if (paths := getattr(result.write_set, title))
    ]
    if written:
        count = sum(len(getattr(result.write_set, name)) for name in ("created", "changed", "removed"))
        yield tag("details", tag("summary", f"Written files ({count})"), *written)
    yield tag("dl", *_facts(result))


def _list_files(paths: Iterable[str]) -> Html:
    paths = list(paths)
    more = len(paths) - _MOST_FILES
    items = [tag("li", tag("code", one_line(path))) for path in paths[:_MOST_FILES]]
    return tag("ul", *items, *([tag("li", f"and {more} more")] if more > 0 else []))


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
