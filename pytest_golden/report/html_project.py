"""The part of the HTML page about one project: why it failed, where, what differs, what it printed, and its steps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import OUTPUT_KINDS, Reason
from pytest_golden.regression.wording import find_failing_step, format_elapsed
from pytest_golden.report.html_parts import Html, class_of, cut, join, one_line, tag
from pytest_golden.report.result_text import LAST_LINES, describe_step, make_visible, short_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_golden.regression.model import GoldenProjectResult


_MOST_STEPS = 200
_MOST_REASONS = 50
_MOST_OF_REASON = 8 * 1024
_MOST_OF_OUTPUT = 32 * 1024
_MOST_KNOWN_LINES = 60
_MOST_FILES = 100


def describe_failure(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that did not pass, in full; `place` names its anchor."""
    title = join([tag("code", one_line(result.name)), ": ", _status(result)])
    kind = "aside" if class_of(result) == "warn" else None
    parts = [*_reasons(result), *_failing_step(result), *_known(result), *_output(result), *_rest(result)]
    return tag("article", tag("h3", title, id=f"project-{place}"), *parts, class_=kind)


def describe_pass(place: int, result: GoldenProjectResult) -> Html:
    """Return a project that passed, to unfold."""
    took = f" {format_elapsed(result.execution_time_seconds)} "
    told = short_reason(result)
    line = [tag("code", one_line(result.name)), " ", _status(result), took, tag("span", one_line(told), class_="warn")]
    parts = [*_known(result), *_output(result), *_rest(result)]
    return tag("details", tag("summary", tag("h3", *line)), *parts, class_="project", id=f"project-{place}")


def describe_cut(place: int, result: GoldenProjectResult) -> Html:
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
        headline, difference = _split_reason(reason)
        yield tag("p", tag("strong", cut(make_visible(headline), _MOST_OF_REASON)))
        if difference:
            yield _section("Difference from the baseline", tag("pre", cut(difference, _MOST_OF_REASON), tabindex=0))
    if len(reasons) > _MOST_REASONS:
        yield tag("p", f"and {len(reasons) - _MOST_REASONS} more reasons: the JSON report has them")
    if result.attempts > 1:
        yield tag("p", f"tried {result.attempts} times, each time without a pass")


def _split_reason(reason: Reason) -> tuple[str, str]:
    """Split a reason into its sentence and the difference after it."""
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


def list_steps(result: GoldenProjectResult) -> Html:
    """Return the steps as a table to unfold; if there are very many, the last ones, because a failure is at the end."""
    steps = result.steps[-_MOST_STEPS:]
    longest = max((_duration(step) or 0.0 for step in steps), default=0.0)
    failing = find_failing_step(result.steps)
    titles = (("Step", None), ("Type", "optional"), ("Time", "number"), ("", "optional"), ("Error", None))
    head = tag("tr", *(tag("th", title, scope="col", class_=kind) for title, kind in titles))
    rows = (_step_row(step, longest, is_failing=step is failing) for step in steps)
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    left_out = result.steps_total - len(steps)
    note = tag("p", f"{left_out} steps before them: the trajectory has them") if left_out > 0 else None
    summary = tag("summary", f"Steps ({max(result.steps_total, len(steps))})")
    return tag("details", summary, note, tag("div", table, class_="wide"), open="" if failing is not None else None)


def _step_row(step: Mapping[str, Any], longest: float, *, is_failing: bool) -> Html:
    took = _duration(step)
    error = (step.get("metadata") or {}).get("error")
    told = "" if error is None or error is False else ("failed" if error is True else one_line(str(error)))
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
