"""The gate report as one HTML page: complete, escaped, bounded, and legible."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.table_difference import (
    ChangedCell,
    ChangedRow,
    ColumnDifference,
    HistogramBar,
    TableDifference,
)
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, Weakening, WeakeningKind, judge_run
from pytest_golden.report import html_page
from pytest_golden.report.gate_report import gate_report
from pytest_golden.report.html_page import html_report
from pytest_golden.report.report_files import write_report
from tests.report.samples import NASTY, every_kind_of_result

GATE = {
    "entry_id": "entry_1",
    "commit": "8b1a9953c4611296a827abf8c47804d7",
    "branch": "main",
    "dirty": True,
    "manifest": "golden_projects.yaml",
    "command_line": ["pytest", "--golden", "-k", "a b"],
    "environment": {"python": "CPython 3.11", "host": None},
    "started_at": "2026-11-22T12:00:00Z",
    "deselected": ["left <out>"],
    "not_run": ["never"],
    "floor_base": "origin/main",
    "floor_accepted": False,
}
FLOOR = (Weakening("sales", WeakeningKind.LIMIT, "timeout was <raised>", "10m", "20m"),)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
EMPTY = {"meta", "link", "rect", "br"}
ALLOWED = {
    *EMPTY,
    *(
        "html",
        "head",
        "title",
        "style",
        "body",
        "header",
        "nav",
        "main",
        "footer",
        "section",
        "article",
        "div",
        "p",
        "h1",
    ),
    *(
        "h2",
        "h3",
        "h4",
        "a",
        "span",
        "strong",
        "code",
        "pre",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "details",
        "summary",
        "table",
    ),
    *("caption", "thead", "tbody", "tr", "th", "td", "svg"),
}


class Page(HTMLParser):
    """Reads a page, and refuses what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.style = ""
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            self.style += data
        else:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def attributes(self, name: str) -> list[str]:
        return [str(attributes[name]) for _, attributes in self.elements if name in attributes]


def read(check: RegressionCheckResult, gate: dict[str, Any] | None = None, **keywords: Any) -> Page:
    gate = dict(GATE if gate is None else gate)
    verdict = judge_run(
        check.results,
        skips_fail=gate.get("require") is True,
        weakenings=len(FLOOR),
        floor_accepted=gate.get("floor_accepted") is True,
        deselected=gate.get("deselected", ()),
        not_run=gate.get("not_run", ()),
        is_interrupted=gate.get("interrupted") is True,
        is_running=gate.get("finished_at", "") is None,
    )
    return Page(html_report(gate_report(check, verdict=verdict, gate=gate, weakened_floor=FLOOR), **keywords))


def make(name: str, status: ResultStatus = ResultStatus.FAILED, **fields: Any) -> GoldenProjectResult:
    return replace(GoldenProjectResult(name, f"{name}.py", status, 1), **fields)


def test_the_verdict_comes_first_and_everything_is_there() -> None:
    page = read(every_kind_of_result())
    text = " ".join(page.text.split())
    assert text.startswith(
        "Golden projects: FAILED (partial: 1 deselected, 1 not run)Skip to the resultsGolden projects: FAILED (partial"
    )
    for told in (
        "1 passed, 4 failed, 1 skipped, 1 quarantined, floor weakened",
        "sales: timeout was <raised> (base: 10m; head: 20m)",
        "Compared with origin/main.",
        "Not run: never",
        "Deselected: left <out>",
        "path c.py",
        "no such path",
        "dbt is not installed here",
        "quarantined, flaky upstream",
        "tried 2 times",
        "Written files (1)",
        "/tmp/fails.log",
        "pytest --golden -k 'a b'",
        "pythonCPython 3.11",
        "commit 8b1a9953c4 with uncommitted edits",
    ):
        assert told.replace(" ", "") in text.replace(" ", ""), told


def test_a_failure_has_its_difference_step_output_and_what_is_known() -> None:
    result = make(
        "sales",
        reasons=(Reason(ReasonKind.OUTPUT_DIFFERS, "out.csv differs\n- 1\n+ 2", "out.csv"),),
        output_summary="\n".join(f"row {number}" for number in range(40)),
        steps=(
            {"type": "action", "content": "load", "duration_ms": 12.0, "metadata": {}},
            {"type": "action", "content": "merge", "duration_ms": 1500, "metadata": {"error": "no such column"}},
            {"type": "action", "content": "fit", "metadata": {"error": {"code": 7}}},
            {"type": "action", "content": "odd", "duration_ms": "?", "metadata": {"error": True}},
        ),
        steps_total=300,
        known=(
            {"kind": "changed_since_pass", "lines": ["broke between a and b"]},
            {"kind": "lesson", "lines": ["pin pandas"]},
            {"kind": "plugged in"},
        ),
        command=("python", "sales.py"),
    )
    page = read(RegressionCheckResult((result,)))
    for told in (
        "Difference from the baseline- 1\n+ 2",
        "What changedbroke between a and b",
        "What is knownpin pandas",
        "Last outputrow 25",
        "25 more lines before it",
        "Steps (300)",
        "296 steps before them",
        "merge",
        "1,500 ms",
        "{'code': 7}",
        "python sales.py",
    ):
        assert told in page.text, told
    assert page.count("rect") == 2


def test_a_table_that_differs_has_its_columns_bars_and_rows() -> None:
    bars = (HistogramBar("low", 3, 4), HistogramBar("high", 0, 9))
    column = ColumnDifference("amount", 1, 0.5, 0, 1, 9, 8, histogram=bars)
    row = ChangedRow(("7", None), (ChangedCell("amount", "1.50", None),))
    table = TableDifference(8, 9, 1, place_names=("id", "day"), columns=(column,), changed_rows=(row,))
    result = make("sales", reasons=(Reason(ReasonKind.OUTPUT_DIFFERS, "out.csv differs\nrows", "out.csv", table),))
    page = read(RegressionCheckResult((result,)))
    for told in ("Columns, and 1 of 1 changed rows", "amount10 → 19 → 8", "iddayColumnBaselineNow7NULLamount1.50NULL"):
        assert told in page.text, told
    assert page.count("rect") == 4
    assert "high: 0, now 9" in page.text


def test_missing_baseline_is_no_difference() -> None:
    told = "out.csv has no baseline\nlook at it"
    page = read(
        RegressionCheckResult((make("sales", reasons=(Reason(ReasonKind.BASELINE_MISSING, told, "out.csv"),)),))
    )
    assert "out.csv has no baseline" in page.text
    assert "Difference from the baseline" not in page.text


def test_a_pass_can_be_unfolded_and_a_flaky_one_says_so() -> None:
    flaky = make("flaky", ResultStatus.PASSED, attempts=2, is_flaky=True, output_summary="fine")
    page = read(RegressionCheckResult((flaky,)), {"floor_accepted": True})
    assert page.count("article") == 0
    assert "flaky: passed on attempt 2" in page.text
    assert "Weakened floor, accepted by a person" in page.text
    assert "Golden projects: PASSED" in page.text


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({"interrupted": True, "floor_accepted": True}, "INTERRUPTED1 passed, weakened floor accepted by a person"),
        ({"interrupted": True}, "INTERRUPTED1 passed, floor weakened"),
        ({"finished_at": None, "floor_accepted": True}, "NOT FINISHED1 passed, weakened floor"),
    ],
)
def test_a_run_that_was_not_finished_is_no_success(gate: dict[str, Any], told: str) -> None:
    page = read(RegressionCheckResult((make("fine", ResultStatus.PASSED),)), gate)
    assert f"Golden projects: {told}" in page.text
    assert page.elements[[name for name, _ in page.elements].index("h1") + 1] == ("span", {"class": "warn"})


def test_a_skipped_one_is_told_in_full_where_skips_fail() -> None:
    skipped = RegressionCheckResult((make("skipped", ResultStatus.SKIPPED, error_message="no dbt"),))
    assert read(skipped, {}).count("article") == 0
    assert read(skipped, {"require": True}).count("article") == 1


def test_one_left_out_as_unchanged_fails_nothing_where_skips_fail() -> None:
    reasons = (Reason(ReasonKind.UNCHANGED, "unchanged since main"),)
    left_out = GoldenProjectResult("left", "a.py", ResultStatus.SKIPPED, reasons=reasons)
    passed = GoldenProjectResult("ran", "b.py", ResultStatus.PASSED, 0)
    page = read(RegressionCheckResult((left_out, passed)), {"require": True})
    assert page.count("article") == 0
    assert (
        html_report(gate_report(RegressionCheckResult((left_out, passed)), gate={"require": True})).count(
            "PASSED (partial: 1 unchanged)"
        )
        > 1
    )


def test_no_results_are_a_page_too() -> None:
    page = Page(html_report(gate_report(RegressionCheckResult(), gate={})))
    assert "Golden projects: NOTHING RAN" in page.text


def test_the_page_loads_nothing_and_its_one_style_is_named_by_its_hash() -> None:
    page = read(every_kind_of_result())
    policy = next(found["content"] for name, found in page.elements if name == "meta" and "http-equiv" in found)
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy is not None
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert page.count("style") == page.count("h1") == page.count("main") == page.count("header") == 1
    assert {name for name, _ in page.elements} <= ALLOWED
    for attributes in (found for _, found in page.elements):
        assert not any(name.startswith("on") or name in {"style", "src"} for name in attributes)
    assert {target for target in page.attributes("href") if not target.startswith("#")} == {"data:,"}
    assert re.findall(r"url\(|@import|http", page.style) == []


def test_headings_leave_no_level_out() -> None:
    output = make("flaky", ResultStatus.PASSED, output_summary="fine")
    for check in (every_kind_of_result(), RegressionCheckResult((output,))):
        levels = [int(name[1]) for name, _ in read(check).elements if name in {"h1", "h2", "h3", "h4"}]
        assert all(low - high <= 1 for high, low in pairwise(levels))


def test_every_link_has_its_aim_and_every_name_is_unique() -> None:
    page = read(every_kind_of_result())
    names = page.attributes("id")
    assert len(set(names)) == len(names)
    aims = {target[1:] for target in page.attributes("href") if target.startswith("#")}
    assert {*aims, *page.attributes("aria-labelledby")} <= set(names)


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(ResultStatus))
def test_whatever_is_printed_is_shown_and_means_nothing(name: str, text: str, status: ResultStatus) -> None:
    result = make(
        name,
        status,
        output_summary=text,
        error_message=text,
        reasons=(Reason(ReasonKind.OUTPUT_DIFFERS, text, text),),
        steps=({"content": text, "type": text, "metadata": {"error": text}},),
        known=({"kind": text, "lines": [text]},),
        command=(text,),
        warnings=(text,),
    )
    page = read(RegressionCheckResult((result,)), {"branch": text, "manifest": text, "command_line": [text]})
    assert {name for name, _ in page.elements} <= ALLOWED
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.text) is None


def test_control_characters_and_bidi_overrides_are_escapes() -> None:
    text = html_report(gate_report(every_kind_of_result(), gate=GATE))
    assert "\x1b" not in text
    assert "\\x07" in text
    assert "\\ud800" in text
    assert "]]&gt; &lt;b&gt;&amp;amp;" in text
    assert NASTY not in text
    shown = html_report(gate_report(RegressionCheckResult((make("a", output_summary="\u202egnp.exe"),)), gate={}))
    assert "\\u202egnp.exe" in shown


def test_what_is_long_is_cut_and_said_to_be() -> None:
    result = make(
        "a",
        output_summary="x" * 200_000 + "\n" * 30 + "end",
        error_message="y" * 100_000,
        reasons=tuple(Reason("plugged", "z" * 20_000) for _ in range(80)),
        steps=tuple({"content": f"step {number}", "metadata": {}} for number in range(1_000)),
        steps_total=1_000,
        warnings=("w" * 5_000,) * 50,
    )
    text = html_report(gate_report(RegressionCheckResult((result,)), gate={}))
    assert len(text) < 1_000_000
    for told in ("more signs]", "and 30 more reasons", "800 steps before them"):
        assert told in text


def test_a_thousand_failures_fit_and_what_does_not_is_named() -> None:
    output = "\n".join(f"row {number} <b>" for number in range(300))
    many = RegressionCheckResult(tuple(make(f"project_{place}", output_summary=output) for place in range(1_000)))
    text = html_report(gate_report(many, gate={}), most_bytes=300_000)
    page = Page(text)
    assert len(text) < 1_500_000
    assert page.text.count("The page is full") > 100
    assert page.count("article") > 20
    assert "and 950 more" in page.text
    assert sum("project_999" in told for told in page.text.splitlines()) > 0


def test_very_many_passes_are_counted() -> None:
    many = RegressionCheckResult(tuple(make(f"p{place}", ResultStatus.PASSED) for place in range(2_100)))
    page = read(RegressionCheckResult((*many.results, make("broken"))))
    assert "2100 more are not listed" in page.text
    links = {target for target in page.attributes("href") if target.startswith("#project-")}
    assert {link[1:] for link in links} <= set(page.attributes("id"))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_colour_of_text_stands_out_in_light_dark_and_print() -> None:
    style = Path(html_page.__file__).with_name("style.css").read_text(encoding="utf-8")
    palettes = [dict(re.findall(r"--(\w+):(#[0-9a-f]{6})", rules)) for rules in re.findall(r":root\{([^}]*)\}", style)]
    assert len(palettes) == 3
    for palette in palettes:
        for back in (palette["page"], palette["card"]):
            for name in ("text", "muted", "link", "good", "bad", "warn"):
                darker, lighter = sorted((luminance(palette[name]), luminance(back)))
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (name, palette[name], back)


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    report = gate_report(every_kind_of_result(), gate=GATE)
    write_report(tmp_path / "new" / "gate.html", html_report(report), option="--html")
    assert (tmp_path / "new" / "gate.html").read_text(encoding="utf-8").startswith("<!doctype html>\n<html")
    with pytest.raises(GoldenError, match=r"^--html .*cannot be written"):
        write_report(tmp_path, html_report(report), option="--html")
