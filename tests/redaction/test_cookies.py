"""Cookies that sign somebody in, and those that do not."""

from __future__ import annotations

import pytest

from pytest_golden.redaction.command_secrets import is_cookie_name, is_signing_in
from pytest_golden.redaction.redactor import redact

MARK = "[REDACTED]"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Cookie: theme=dark; sessionid=a1b2c3d4e5; lang=en", f"Cookie: theme=dark; sessionid={MARK}; lang=en"),
        ("set-cookie: PHPSESSID=a1b2c3d4e5; Path=/; Max-Age=60", f"set-cookie: PHPSESSID={MARK}; Path=/; Max-Age=60"),
        ("cookies={'sid': 'a1b2c3d4e5', 'x': 'y'}", f"cookies={{'sid': '{MARK}', 'x': 'y'}}"),
        ("Cookie: id=" + "a1" * 12, f"Cookie: id={MARK}"),
        ("Cookie: a=b\ncommit=" + "a1" * 20, "Cookie: a=b\ncommit=" + "a1" * 20),
    ],
)
def test_what_signs_somebody_in_is_hidden(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "Cookie: theme=dark",
        "Set-Cookie: session=none; Path=/",
        "cookies: 3",
        "the cookie=${COOKIE}",
        "Cookie:",
        "Cookie: \n",
    ],
)
def test_other_cookies_stay(text: str) -> None:
    assert redact(text) == text


def test_cookies_in_values_are_hidden() -> None:
    value = {"cookies": {"sid": "a1b2c3d4e5", "lang": "en", "n": 3}, "Set-Cookie": "sid=a1b2c3d4e5; Path=/"}
    assert redact(value) == {"cookies": {"sid": MARK, "lang": "en", "n": 3}, "Set-Cookie": f"sid={MARK}; Path=/"}


def test_names_tell_what_signs_in() -> None:
    assert is_cookie_name("Set-Cookie")
    assert not is_cookie_name("cookie_count")
    assert is_signing_in("JSESSIONID", "a1b2c3d4")
    assert not is_signing_in("JSESSIONID", "${SESSION}")
    assert not is_signing_in("Expires", "Wed-21-Oct-2026-07-28-00-GMT")
