from __future__ import annotations

import math
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.checks.model import check_mapping, is_refused, is_refused_literal, read_check

PAGE = {"after": 1, "url": "https://example.org/health"}


@pytest.mark.parametrize(
    ("after", "kept", "milliseconds"),
    [
        (10, "10m", 600_000),
        (0.5, "30s", 30_000),
        (0.001, "60ms", 60),
        (1e-9, "1ms", 1),
        ("90s", "90s", 90_000),
        (" 2h ", "120m", 7_200_000),
        ("1.5 m", "90s", 90_000),
        (366 * 24 * 60, "527040m", 366 * 24 * 3_600_000),
    ],
)
def test_after_is_minutes_or_has_its_unit(after: Any, kept: str, milliseconds: int) -> None:
    clean = check_mapping({"after": after, "command": "true"})
    assert clean == {"after": kept, "command": ("true",)}
    assert read_check(clean).after_ms == milliseconds


def test_a_page_is_kept_with_all_that_decides() -> None:
    given_one = {**PAGE, "status": 204, "path": "a.b", "equals": None}
    clean = check_mapping(given_one)
    assert clean == {**PAGE, "after": "1m", "status": (204,), "path": "a.b", "equals": None}
    check = read_check({**clean, "status": [204, 304]})
    assert (check.is_page, check.host, check.status, check.has_equals) == (True, "example.org", (204, 304), True)
    assert [check.accepts(status) for status in (200, 204, 304)] == [False, True, True]
    plain = read_check(PAGE)
    assert (plain.has_equals, plain.path) == (False, None)
    assert [plain.accepts(status) for status in (199, 200, 299, 300)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"command": "x"}, "the key after is missing"),
        ({"after": 1}, "either command or url is wanted"),
        ({**PAGE, "command": "x"}, "either command or url is wanted"),
        ({**PAGE, "comand": "x"}, "unknown key 'comand'; did you mean 'command'"),
        ({"after": 0, "command": "x"}, "after: 0 is not above 0 and at most 366 days"),
        ({"after": True, "command": "x"}, "after: True is not above 0"),
        ({"after": math.nan, "command": "x"}, "after: nan is not above 0"),
        ({"after": math.inf, "command": "x"}, "after: inf is not above 0"),
        ({"after": 10**9, "command": "x"}, "after: 1000000000 is not above 0 and at most 366 days"),
        ({"after": None, "command": "x"}, "after: None is not above 0"),
        ({"after": "10", "command": "x"}, "after: '10' has no unit; write 90s, 10m or 2h"),
        ({"after": "soon", "command": "x"}, "after: 'soon' is not a duration"),
        ({"after": "-1m", "command": "x"}, "after: '-1m' is not above 0"),
        ({"after": " ", "command": "x"}, "after: is empty"),
        (
            {"after": 1, "command": "make && make test"},
            "command: runs a program without a shell, so '&&' means nothing",
        ),
        ({"after": 1, "command": []}, "command: is empty; write the program"),
        ({"after": 1, "command": ["a\udc80"]}, "holds half a character"),
        ({"after": 1, "command": ["a\0"]}, "NUL"),
        ({"after": 1, "command": "x", "status": 200}, "status is about a page; give url with it"),
        ({"after": 1, "command": "x", "path": "a", "equals": 1}, "path is about a page"),
        ({**PAGE, "equals": 1}, "equals is about the value at a path; give path with it"),
        ({**PAGE, "path": " "}, "path: is empty"),
        ({**PAGE, "path": "a", "equals": {}}, "equals: must be a text, a number, true, false or null"),
        ({**PAGE, "status": 99}, "status: 99 is no status; write a number from 100 to 599"),
        ({**PAGE, "status": True}, "status: True is no status"),
        ({**PAGE, "status": "200"}, "status: '200' is no status"),
        ({**PAGE, "status": []}, "status: is empty"),
        ({**PAGE, "status": [200, 600]}, r"status\[1\]: 600 is no status"),
        ({**PAGE, "url": "ftp://example.org/"}, "url: is no URL of a page"),
        ({**PAGE, "url": "file:///etc/passwd"}, "url: is no URL of a page"),
        ({**PAGE, "url": "https:///x"}, "url: is no URL of a page"),
        ({**PAGE, "url": "example.org"}, "url: is no URL of a page"),
        ({**PAGE, "url": "http://example.org:0/"}, "url: is no URL of a page"),
        ({**PAGE, "url": "http://example.org:99999/"}, "url: is no URL: Port out of range"),
        ({**PAGE, "url": "http://[::1/"}, "url: is no URL: Invalid IPv6 URL"),
        ({**PAGE, "url": "http://example.org/a b"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://example.org/\r\nX: y"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://exämple.org/"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://example.org/" + "x" * 8192}, "url: has 8,211 characters"),
        ({**PAGE, "url": "http://169.254.169.254/latest"}, "url: '169.254.169.254' is never requested"),
        ({**PAGE, "url": "http://[fe80::1]/"}, "url: 'fe80::1' is never requested"),
        ("true", "a mapping is wanted, not 'true'; its keys are after, command, url"),
    ],
)
def test_a_check_that_cannot_be_kept_is_refused_with_its_place(check: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_mapping(check)


def test_a_list_may_hold_what_a_shell_would_read() -> None:
    assert check_mapping({"after": 1, "command": ["echo", "|"]})["command"] == ("echo", "|")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://user:hunter22@example.org:8443/x", "https://REDACTED@example.org:8443/x"),
        ("https://ghp_token@example.org/", "https://REDACTED@example.org/"),
        ("https://:pass@example.org/", "https://REDACTED@example.org/"),
        ("https://@example.org/", "https://REDACTED@example.org/"),
    ],
)
def test_who_signs_in_is_not_kept(url: str, kept: str) -> None:
    clean = check_mapping({**PAGE, "url": url})
    assert clean["url"] == kept
    assert read_check(clean).has_lost_a_secret


def test_a_fragment_is_for_browsers() -> None:
    assert check_mapping({**PAGE, "url": "http://EXAMPLE.org/a?b=c#d"})["url"] == "http://EXAMPLE.org/a?b=c"
    assert read_check({**PAGE, "url": "http://EXAMPLE.org./"}).host == "example.org"


def test_a_redacted_text_has_lost_a_secret() -> None:
    assert read_check({"after": 1, "command": ["curl", "-H", "[REDACTED]"]}).has_lost_a_secret
    assert read_check({**PAGE, "path": "a", "equals": "[REDACTED]"}).has_lost_a_secret
    assert not read_check({**PAGE, "path": "a", "equals": "done"}).has_lost_a_secret


AFTER = st.one_of(
    st.floats(min_value=1e-6, max_value=500_000),
    st.integers(1, 500_000),
    st.builds("{}{}".format, st.integers(1, 8000), st.sampled_from(["ms", "s", "m", "h"])),
)


@given(AFTER)
def test_what_is_kept_stays_as_it_is(after: Any) -> None:
    clean = check_mapping({"after": after, "command": ["x"]})
    assert check_mapping(clean) == clean
    if not isinstance(after, str):
        assert abs(read_check(clean).after_ms - after * 60_000) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "255.255.255.255",
        "240.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "64:ff9b::169.254.169.254",
        "::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b:1::a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
    ],
)
def test_addresses_of_the_link_and_of_clouds_are_refused_in_any_dress(text: str) -> None:
    assert is_refused(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.9", "fd12::1", "93.184.216.34", "2606:2800::1"]
)
def test_loopback_private_and_public_addresses_are_asked(text: str) -> None:
    assert not is_refused(text)


def test_a_name_is_no_literal() -> None:
    assert not is_refused_literal("metadata.example.org")
    assert is_refused_literal("169.254.169.254")


@given(st.integers(0, 2**32 - 1))
def test_an_address_inside_another_is_judged_alike(number: int) -> None:
    plain = IPv4Address(number)
    mapped = IPv6Address(b"\0" * 10 + b"\xff\xff" + plain.packed)
    assert is_refused(str(mapped)) == is_refused(str(plain))
