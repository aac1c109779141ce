from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml.resolver
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_golden.manifest.units import Unquoted, bare, read_unquoted, show

_TAGS = {
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:int": "number",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:timestamp": "date",
}


@given(
    st.one_of(
        st.text("0123456789+-._:eExXobinfaINFATZ ", max_size=12),
        st.sampled_from(["yes", "No", "TRUE", "oN", "off", "~", "null", "y", "n", ".nan"]),
    )
)
@example("2026-12-31")
@example("2026-12-31 10:00:00")
@example("2026-12-31T10:00:00Z")
@example("1:30")
@example("0x10")
@example("1_000")
@example("1e3")
@example("+.inf")
@example("<<")
@example("=")
def test_a_word_is_what_pyyaml_says_that_it_is(text: str) -> None:
    resolver: Any = yaml.resolver.Resolver()
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
    read = read_unquoted(text)
    assert (read.kind if isinstance(read, Unquoted) else None) == _TAGS.get(tag)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("no", False),
        ("On", True),
        ("2026-12-31", date(2026, 12, 31)),
        ("~", None),
    ],
)
def test_plain_forms_have_their_value(text: str, value: object) -> None:
    assert bare(read_unquoted(text)) == value


@pytest.mark.parametrize("text", ["0x10", "010", "1:30", "1_000", "0b1", "9" * 30, "2026-13-45", "2026-12-31 10:00:00"])
def test_a_form_that_people_read_otherwise_has_no_value(text: str) -> None:
    read = read_unquoted(text)
    assert isinstance(read, Unquoted)
    assert bare(read) is None


def test_values_are_named_shortly() -> None:
    assert show("x" * 1000).endswith("...'")
    assert show(Unquoted("", "null")) == "nothing"
    values: tuple[Any, ...] = ([], {}, None, 3, date(2026, 1, 1))
    assert [show(value) for value in values] == ["a list", "a mapping", "None", "3", "a value of type date"]
