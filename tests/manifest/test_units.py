from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.units import DURATION_FORM, SIZE_FORM, parse_duration, parse_size

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
