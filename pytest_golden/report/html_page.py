"""The report as one HTML page: its frame, its content security policy, and how many details fit in."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.report.html_parts import (
    MOST_ROWS,
    Html,
    ShownRun,
    describe_floor,
    describe_run,
    describe_verdict,
    list_left_out,
    list_projects,
    one_line,
    tag,
)
from pytest_golden.report.html_project import describe_cut, describe_failure, describe_pass
from pytest_golden.report.report_files import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_golden.regression.model import GoldenProjectResult

MOST_BYTES = 8 * 1024 * 1024
_MOST_LINKS = 50

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
    run = ShownRun.read(report)
    numbered = list(enumerate(run.check.results))
    wrong = [(place, result) for place, result in numbered if _is_told_in_full(run, result)]
    others = [(place, result) for place, result in numbered if not _is_told_in_full(run, result)][:MOST_ROWS]
    room = _Room(most_bytes)
    main = [
        describe_floor(run),
        _details("failures", "What did not pass", wrong, room.fill(describe_failure)),
        list_left_out(run),
        list_projects(run),
        _details("others", "Details of the others", others, room.fill(describe_pass)),
        describe_run(run),
    ]
    body = [
        tag("a", "Skip to the results", href="#main", class_="skip"),
        tag("header", describe_verdict(run)),
        _contents(wrong),
        tag("main", *main, id="main"),
        tag("footer", tag("p", "Written by pytest-golden-projects. This page loads nothing and runs no script.")),
    ]
    return f"<!doctype html>\n{tag('html', _head(run), tag('body', *body), lang='en')}\n"


class _Room:
    """Counts the bytes that are left for details."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def fill(self, describe: Callable[[int, GoldenProjectResult], Html]) -> Callable[[int, GoldenProjectResult], Html]:
        """Return a function that describes a project while there is room, and afterwards only names it."""

        def describe_or_name(place: int, result: GoldenProjectResult) -> Html:
            told = describe(place, result) if self._left > 0 else describe_cut(place, result)
            size = len(told.encode())
            if size > self._left:
                told = describe_cut(place, result)
            self._left -= size
            return told

        return describe_or_name


def _is_told_in_full(run: ShownRun, result: GoldenProjectResult) -> bool:
    return result.name in run.failing or result.status.is_failure


def _details(
    name: str, title: str, results: Iterable[Numbered], describe: Callable[[int, GoldenProjectResult], Html]
) -> Html | None:
    told = [describe(place, result) for place, result in results]
    if not told:
        return None
    return tag("section", tag("h2", title, id=name), *told, aria_labelledby=name)


def _contents(wrong: Iterable[Numbered]) -> Html | None:
    wrong = list(wrong)
    if not wrong:
        return None
    links = [tag("li", tag("a", one_line(result.name), href=f"#project-{place}")) for place, result in wrong]
    more = len(links) - _MOST_LINKS
    shown = [*links[:_MOST_LINKS], *([tag("li", f"and {more} more")] if more > 0 else [])]
    return tag("nav", tag("ul", *shown), aria_label="What did not pass")


def _head(run: ShownRun) -> Html:
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return tag("head", *_describe_head(run, Html(style)))


def _describe_head(run: ShownRun, style: Html) -> Iterator[Html]:
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
