"""GitHub's annotations."""

from __future__ import annotations

from pytest_golden.report import annotation


def test_an_annotation_points_at_a_line() -> None:
    line = annotation("error", "exit code 3", title="sales", file="golden_projects.yaml", line=7)
    assert line == "::error file=golden_projects.yaml,line=7,title=sales::exit code 3"


def test_an_annotation_needs_no_place() -> None:
    assert annotation("warning", "No golden projects") == "::warning::No golden projects"


def test_signs_that_mean_something_to_the_runner_are_escaped() -> None:
    line = annotation("notice", "50%\r\nnext: a,b \udc80", title="a: b, c%", file="C:/x")
    assert line == "::notice file=C%3A/x,title=a%3A b%2C c%25::50%25%0D%0Anext: a,b \\udc80"
    assert "\n" not in line
