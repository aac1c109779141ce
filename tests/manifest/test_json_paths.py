from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.units import LONGEST_PATH, JsonStep, JsonStepKind, parse_json_path

_MEMBER, _INDEX, _EVERY, _ANYWHERE = JsonStepKind


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$.a", [JsonStep(_MEMBER, "a")]),
        ("$.a.b-c_d", [JsonStep(_MEMBER, "a"), JsonStep(_MEMBER, "b-c_d")]),
        ("$[0]", [JsonStep(_INDEX, position=0)]),
        ("$.a[12].b", [JsonStep(_MEMBER, "a"), JsonStep(_INDEX, position=12), JsonStep(_MEMBER, "b")]),
        ("$.rows[*].at", [JsonStep(_MEMBER, "rows"), JsonStep(_EVERY), JsonStep(_MEMBER, "at")]),
        ("$.*", [JsonStep(_EVERY)]),
        ("$..at", [JsonStep(_ANYWHERE, "at")]),
        ("$.a..b[0]", [JsonStep(_MEMBER, "a"), JsonStep(_ANYWHERE, "b"), JsonStep(_INDEX, position=0)]),
        ("$['a b']", [JsonStep(_MEMBER, "a b")]),
        ('$["it\'s"].x', [JsonStep(_MEMBER, "it's"), JsonStep(_MEMBER, "x")]),
        (r"$['a\'b\\c']", [JsonStep(_MEMBER, r"a'b\c")]),
        ("$.größe", [JsonStep(_MEMBER, "größe")]),
    ],
)
def test_a_path_is_taken_apart(text: str, steps: list[JsonStep]) -> None:
    assert parse_json_path(text) == tuple(steps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.b", r"'a\.b' does not begin with \$"),
        ("", r"does not begin with \$"),
        ("$", "names the whole document"),
        ("$.", r"cannot be read from character 2 on \('\.'\)"),
        ("$a", "cannot be read from character 2 on"),
        ("$.a..", "cannot be read from character 4 on"),
        ("$.a[", "cannot be read from character 4 on"),
        ("$.a[-1]", "cannot be read"),
        ("$.a[1:2]", "cannot be read"),
        ("$.a[?(@.b)]", "cannot be read"),
        ("$.a[x]", "cannot be read"),
        ("$.a b", "cannot be read from character 4 on"),
        ("$['']", "cannot be read"),
        ("$..*", "cannot be read"),
        ("$..[0]", "cannot be read"),
        (f"$.{'a' * LONGEST_PATH}", "is longer than 1000 characters"),
    ],
)
def test_what_is_no_path_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json_path(text)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    told = ""
    try:
        steps = parse_json_path(f"${text}")
    except ValueError as error:
        steps, told = (), str(error)
    assert bool(steps) is not told.startswith("the JSON path ")


@given(st.text(min_size=1, max_size=20))
def test_any_name_can_be_quoted(name: str) -> None:
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    assert parse_json_path(f"$['{quoted}']") == (JsonStep(_MEMBER, name),)
