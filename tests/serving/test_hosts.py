from __future__ import annotations

import pytest

from pytest_golden.web.access import is_loopback, is_own_host, is_own_origin


@pytest.mark.parametrize(
    ("bound", "host", "is_own"),
    [
        ("127.0.0.1", "127.0.0.1:8766", True),
        ("127.0.0.1", "127.0.0.1:", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "LOCALHOST:1", True),
        ("127.0.0.1", "[::1]:8766", True),
        ("127.0.0.1", "evil.example:8766", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "localhost.", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", ":8766", False),
        ("127.0.0.1", "127.0.0.1:x", False),
        ("127.0.0.1", "127.0.0.1:80:80", False),
        ("127.0.0.1", "[127.0.0.1]", False),
        ("127.0.0.1", "[localhost]", False),
        ("127.0.0.1", "::1", False),
        ("127.0.0.1", "0.0.0.0:8766", False),
        ("127.0.0.1", "10.0.0.5:8766", False),
        ("127.0.0.9", "127.0.0.9:8766", True),
        ("10.0.0.5", "10.0.0.5:8766", True),
        ("0.0.0.0", "10.0.0.5:8766", True),
        # It is the address that the command prints.
        ("0.0.0.0", "0.0.0.0:8766", True),
        ("0.0.0.0", "[10.0.0.5]:8766", False),
        ("0.0.0.0", "evil.example", False),
        ("::", "[fe80::1]:8766", True),
        ("::", "10.0.0.5:8766", True),
        ("::", "2001:db8::1:80", False),
        ("::", "[fe80::1%evil.example]", False),
        ("2001:0DB8::5", "[2001:db8::5]:8766", True),
        ("2001:db8::5", "[2001:db8::6]:8766", False),
        ("Build.example", "build.example:8766", True),
        ("build.example", "build.example.", False),
        ("build.example", "[build.example]", False),
        ("", "10.0.0.5", False),
    ],
)
def test_only_a_servers_own_names_are_answered(bound: str, host: str, is_own: bool) -> None:
    assert is_own_host(host, bound) is is_own


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://127.0.0.1:8766", "127.0.0.1:8766", True),
        ("HTTP://LOCALHOST:8766", "localhost:8766", True),
        # Browsers leave out the port that goes without saying; others may not.
        ("http://localhost", "localhost:80", True),
        ("http://localhost:80", "localhost", True),
        ("http://localhost:8766", "localhost:9999", False),
        ("http://localhost", "127.0.0.1", False),
        ("https://localhost:8766", "localhost:8766", False),
        ("http://localhost.", "localhost", False),
        ("null", "localhost", False),
        ("", "localhost", False),
    ],
)
def test_only_pages_of_the_same_origin_are_its_own(origin: str, host: str, is_own: bool) -> None:
    assert is_own_origin(origin, host) is is_own


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("localhost", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("127.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_told_from_what_others_reach(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
