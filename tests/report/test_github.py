"""GitHub's annotations and job summary."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, Weakening, WeakeningKind, judge_run
from pytest_golden.report.github import MOST_BYTES, Annotation, annotate, disarm, job_summary
from tests.report.samples import NASTY, every_kind_of_result


def test_an_annotation_points_at_a_line() -> None:
    line = Annotation("error", "exit code 3", "sales", 7).write("golden_projects.yaml")
    assert line == "::error file=golden_projects.yaml,line=7,title=sales::exit code 3"


def test_an_annotation_needs_no_place() -> None:
    assert Annotation("warning", "No golden projects").write(None) == "::warning::No golden projects"


def test_signs_that_mean_something_to_the_runner_are_escaped() -> None:
    line = Annotation("notice", "50%\r\nnext: a,b \udc80", "a: b, c%").write("C:/x")
    assert line == "::notice file=C%3A/x,title=a%3A b%2C c%25::50%25%0D%0Anext: a,b \\udc80"
    assert "\n" not in line


def test_a_line_of_commands_in_a_message_stays_a_message() -> None:
    line = Annotation("error", "::stop-commands::x\n::set-output name=a::b", "::add-mask::x").write(None)
    assert line == "::error title=%3A%3Aadd-mask%3A%3Ax::::stop-commands::x%0A::set-output name=a::b"


def test_of_more_than_github_shows_the_last_one_counts_the_others() -> None:
    told = [Annotation("error", "broke", f"p{number}", number) for number in range(1, 13)]
    told.insert(3, Annotation("warning", "No golden projects", "golden projects"))
    lines = list(annotate(told, file="golden_projects.yaml"))
    assert len(lines) == 11
    assert lines[8] == "::error file=golden_projects.yaml,line=9,title=p9::broke"
    assert lines[9] == (
        "::error file=golden_projects.yaml,title=and more::3 more, told in the summary of the job:%0Ap10%0Ap11%0Ap12"
    )
    assert lines[10].startswith("::warning ")
    assert len(list(annotate(told[:11], file=None))) == 11


def test_what_the_runner_takes_for_a_command_is_escaped_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "a\n::error::x\n \t\u00a0::stop-commands::y\nb ::c::\nd ##[add-mask]e ###[f]\nstd::move"
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert disarm(told) == told
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert disarm(told) == (
        "a\n\\x3a:error::x\n \t\u00a0\\x3a:stop-commands::y\nb ::c::\nd \\x23#[add-mask]e #\\x23#[f]\nstd::move"
    )


HOSTILE = "a|b `c` **d** _e_ <img src=x> </pre></details> @octocat [f](http://g) www.h.i &lt; \\| $j$ ~~k~~\n| l |\n# m"


def summary(*results: GoldenProjectResult, **facts: Any) -> str:
    check = RegressionCheckResult(results)
    failures = {result.name: f"the text of {result.name}" for result in results if result.is_regression}
    judged = {name: facts.pop(name) for name in ("deselected", "not_run", "floor_accepted") if name in facts}
    verdict = judge_run(results, weakenings=len(facts.get("weakenings", ())), **judged)
    return job_summary(check, verdict=verdict, **{"failures": failures, "weakenings": (), **facts})


def failed(name: str = "sales", reason: str = "exit code 1, expected 0: no id") -> GoldenProjectResult:
    reasons = (Reason(ReasonKind.EXIT_CODE, reason),)
    return GoldenProjectResult(name, "x.py", ResultStatus.FAILED, 1, reasons=reasons, execution_time_seconds=2.5)


def passed(name: str = "fine") -> GoldenProjectResult:
    return GoldenProjectResult(name, "x.py", ResultStatus.PASSED, 0, execution_time_seconds=61)


def test_summary_has_status_counts_table_and_failures() -> None:
    weakening = Weakening("sales", WeakeningKind.LIMIT, "timeout was raised from 1m to 2m")
    text = summary(
        passed(), failed(), weakenings=[weakening], deselected=["other"], not_run=["last"], notes=["something moved"]
    )
    assert text == (
        "## Golden projects: FAILED (partial: 1 deselected, 1 not run)\n\n"
        "1 passed, 1 failed, floor weakened\n\n"
        "- <code>something moved</code>\n\n"
        "### Weakened floor\n\n"
        "- <code>sales</code>: <code>timeout was raised from 1m to 2m</code>\n\n"
        "| project | status | time | reason |\n"
        "|---|---|--:|---|\n"
        "| <code>fine</code> | PASSED | 1m 01s |  |\n"
        "| <code>sales</code> | FAILED | 2.5s | <code>exit code 1, expected 0: no id</code> |\n\n"
        "<details><summary><code>sales</code>: FAILED</summary>\n\n"
        "<pre>\nthe text of sales\n</pre>\n\n"
        "</details>\n\n"
    )


def test_green_summary_is_short() -> None:
    assert summary(passed()).startswith("## Golden projects: PASSED\n\n1 passed\n\n| project |")
    accepted = summary(passed(), weakenings=[Weakening(None, WeakeningKind.PATH, "moved")], floor_accepted=True)
    assert accepted.startswith("## Golden projects: PASSED\n")
    assert "### Weakened floor, accepted\n\n- <code>moved</code>" in accepted
    assert summary() == "## Golden projects: NOTHING RAN\n"


class Tags(HTMLParser):
    """Collects the tags and the text that a browser sees inside `pre`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.preformatted = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["pre"]:
            self.preformatted += data


def test_nothing_that_a_pipeline_prints_means_anything_to_github() -> None:
    text = summary(failed(reason=HOSTILE), failures={"sales": HOSTILE}, notes=[HOSTILE])
    seen = Tags(text)
    assert set(seen.tags) == {"code", "/code", "details", "summary", "/summary", "pre", "/pre", "/details"}
    assert seen.preformatted == f"\n{HOSTILE}\n"
    assert "@" not in text
    row = next(line for line in text.splitlines() if line.startswith("| <code>sales"))
    assert row.count("|") == 5
    inside = row.split("| FAILED |")[1]
    assert not re.search(r"[`*\[\]~$\\]|://|www\.|(?<!\w)_", inside)


@given(st.text(alphabet=st.sampled_from("|\n\r`<>&@_*\\[]ax \x1b\u2028\x85"), max_size=80))
@settings(max_examples=80)
def test_row_stays_one_row_whatever_the_reason(reason: str) -> None:
    lines = summary(failed(reason=reason), failures={}).splitlines()
    assert len(lines) == 7
    assert lines[-1].count("|") == 5
    assert lines[-1].count("<") in {2, 4}


def test_every_kind_of_result_has_its_row() -> None:
    text = summary(*every_kind_of_result().results, failures={"fails": NASTY})
    assert text.count("\n| <code>") == 7
    assert "| SKIPPED |  | <code>dbt is not installed here</code> |" in text
    assert "| FAILED | 0.0s | <code>quarantined, flaky upstream</code> |" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 60_000, 3_000, 100])
def test_summary_keeps_within_its_room_and_says_what_is_missing(most_bytes: int) -> None:
    results = [failed(f"project{number}", "é" * 5000) for number in range(700)]
    failures = {result.name: "é<" * 50_000 for result in results}
    weakenings = [Weakening(result.name, WeakeningKind.LIMIT, "é" * 5000) for result in results]
    text = summary(*results, failures=failures, weakenings=weakenings, notes=["é" * 400] * 700, most_bytes=most_bytes)
    assert len(text.encode()) <= max(most_bytes, 2048)
    assert text.startswith("## Golden projects: FAILED\n\n700 failed, floor weakened\n")
    for left_out in ("more failures", "more projects", "more notes", "more ways in which it is weaker"):
        assert f"{left_out} than fit in here: the log has them." in text


def test_many_that_passed_are_counted() -> None:
    text = summary(failed(), *(passed(f"fine{number}") for number in range(200)))
    assert text.count("\n| <code>") == 1
    assert "\n\n200 that passed are not listed.\n" in text


def test_long_failure_is_cut_and_the_cut_is_said() -> None:
    text = summary(failed(), failures={"sales": "x" * 20_000})
    assert "x [... 3,616 more signs]\n</pre>" in text
