from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.outside.human import blank_quotations


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("a\n> b\nc", "a c"),
        ("a\n>b", "a"),
        ("   > b\na", "a"),
        ("a > b", "a > b"),
        ("```\na\n```\nb", "b"),
        ("```python\na\n``` \nb", "b"),
        ("```\na\n~~~\nb", ""),
        ("````\na\n```\nb\n`````\nc", "c"),
        ("~~~\na\n~~~ b\nc", ""),
        ("```a``` b", "```a``` b"),
        ("~~~a`\nb", ""),
        ("    a\n\tb\n  c", "c"),
        ("> ```\na", "a"),
        ("a\r\n> b\r\nc\rd", "a c d"),
        ("a\u2028> b", "a"),
    ],
)
def test_quotations_and_code_are_not_ones_own(text: str, own: str) -> None:
    assert " ".join(blank_quotations(text).split()) == own


@given(
    st.text() | st.lists(st.sampled_from(["a", " ", "\n", "\r\n", "\r", ">", "```", "~~~", "\t", "\x85"])).map("".join)
)
def test_all_stays_in_its_place(text: str) -> None:
    blanked = blank_quotations(text)
    assert len(blanked) == len(text)
    assert all(new == old or new in " \n" for new, old in zip(blanked, text, strict=True))
