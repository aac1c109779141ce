from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.expected import ExpectedKind, ExpectedOutcome


def test_the_three_forms_are_taken_apart() -> None:
    assert ExpectedOutcome.parse("success") == ExpectedOutcome(ExpectedKind.SUCCESS)
    assert ExpectedOutcome.parse("specific_error:no such (table|view): x") == ExpectedOutcome(
        ExpectedKind.SPECIFIC_ERROR, pattern="no such (table|view): x"
    )
    assert ExpectedOutcome.parse("exit_code: 3").exit_code == 3
    assert ExpectedOutcome.parse("exit_code:0").kind == "exit_code"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Success",
        "success:",
        "failure",
        "specific_error",
        "specific_error:",
        "specific_error:  ",
        "specific_error:(",
        "specific_error:a{99999999999}",
        "specific_error:" + "(" * 5000,
        "exit_code",
        "exit_code:",
        "exit_code:-1",
        "exit_code:256",
        "exit_code:1.0",
        "exit_code:x",
        "exit_code:٣",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|backslash"):
        ExpectedOutcome.parse(text)


def test_a_pattern_that_python_warns_about_is_taken_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ExpectedOutcome.parse("specific_error:[[a]").pattern == "[[a]"


@given(
    st.one_of(
        st.just("success"),
        st.integers(0, 255).map("exit_code:{}".format),
        st.from_regex(r"[a-z .]*[a-z]", fullmatch=True).map("specific_error:x{}".format),
    )
)
def test_what_was_taken_apart_goes_together_again(text: str) -> None:
    assert str(ExpectedOutcome.parse(text)) == text
