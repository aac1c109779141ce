from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.redaction.rule import REFERENCE, is_reference, starts_reference


@given(st.from_regex(REFERENCE.pattern, fullmatch=True), st.text(max_size=5))
def test_every_form_of_a_reference_is_told_by_its_first_sign_too(reference: str, before: str) -> None:
    assert is_reference(reference)
    assert is_reference(f" {reference}\n")
    assert starts_reference(before + reference, len(before))


@given(st.text(max_size=20))
def test_no_other_text_is_taken_for_one(text: str) -> None:
    assert is_reference(text) == (REFERENCE.fullmatch(text.strip()) is not None)
    assert starts_reference(text, 0) == (REFERENCE.match(text) is not None)
