"""GitHub's annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.report.github import Annotation, annotate, disarm

if TYPE_CHECKING:
    import pytest


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
