"""Words without quotes, durations, sizes, JSON paths and expected outcomes."""

from __future__ import annotations

import math
import re
import warnings
from datetime import date
from typing import Any

import pytest
import yaml.resolver
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_golden.manifest.units import (
    DURATION_FORM,
    LONGEST_PATH,
    SIZE_FORM,
    ExpectedKind,
    ExpectedOutcome,
    JsonStep,
    JsonStepKind,
    Unquoted,
    bare,
    parse_duration,
    parse_json_path,
    parse_size,
    read_unquoted,
    show,
)

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "": 1}
_BYTES = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90.0),
        (1.5, 1.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        (" 10 m ", 600.0),
    ],
)
def test_durations_are_read_in_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        0,
        -1,
        0.0,
        "0",
        "0s",
        "-5m",
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "",
        "s",
        "10M",
        "10min",
        "1h30m",
        "1:30",
        "1e400",
        "9" * 400,
        1e300,
        5e-324 / 2,
        "500h500",
        True,
        None,
        [],
        {},
        "10 000",
        "٣s",
        "0." + "0" * 29 + "ms",
        "9000h",
    ],
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="write a number of seconds"):
        parse_duration(written)


@given(st.integers(1, 8_000), st.sampled_from(sorted(_SECONDS)))
def test_every_duration_that_can_be_written_is_read_back(amount: int, unit: str) -> None:
    written = f"{amount}{unit}"
    assert parse_duration(written) == pytest.approx(amount * _SECONDS[unit])
    assert re.match(DURATION_FORM, written)


@given(st.floats(0.001, 1e7))
def test_a_clean_duration_stays_as_it_is(seconds: float) -> None:
    assert parse_duration(parse_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1, 1),
        (2.0, 2),
        ("2GiB", 2**31),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("1.5KiB", 1536),
        ("1024", 1024),
        ("1TiB", 2**40),
    ],
)
def test_sizes_are_read_in_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize(
    "written",
    [
        0,
        -1,
        1.5,
        "0",
        "0B",
        "0.1B",
        "-2GiB",
        math.nan,
        math.inf,
        "2Gi",
        "2G",
        "GiB",
        "",
        True,
        None,
        [],
        2**63,
        "9e9",
        "9" * 25 + "TB",
    ],
)
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="write a number of bytes"):
        parse_size(written)


@given(st.integers(1, 8_000), st.sampled_from(sorted(_BYTES)))
def test_every_size_that_can_be_written_is_read_back(amount: int, unit: str) -> None:
    written = f"{amount}{unit}"
    assert parse_size(written) == amount * _BYTES[unit]
    assert parse_size(parse_size(written)) == parse_size(written)
    assert re.match(SIZE_FORM, written)


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
