"""Passwords in URLs of any scheme."""

from __future__ import annotations

import pytest

from pytest_golden.redaction.command_secrets import find_url_password
from pytest_golden.redaction.redactor import redact


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("postgres://bob:hunter2@host/db", "postgres://bob:[REDACTED]@host/db"),
        ("postgresql+psycopg://bob:hunter2@host:5432/db", "postgresql+psycopg://bob:[REDACTED]@host:5432/db"),
        ("redis://:hunter2@host", "redis://:[REDACTED]@host"),
        ("https://bob:hunter2@host/x@y", "https://bob:[REDACTED]@host/x@y"),
        ("a://bob:hun/ter2@host", "a://bob:[REDACTED]@host"),
        ("a://bob:hun@ter2@host", "a://bob:[REDACTED]@host"),
        ("a://bob:p%40ss@h,b://eve:hunter2@i", "a://bob:[REDACTED]@h,b://eve:[REDACTED]@i"),
        ('"a:\\/\\/bob:hunter2@h"', '"a:\\/\\/bob:[REDACTED]@h"'),
        ('{"u": "a://bob:hunter2@h\\nnext"}', '{"u": "a://bob:[REDACTED]@h\\nnext"}'),
    ],
)
def test_the_password_is_hidden_and_the_rest_stays(url: str, redacted: str) -> None:
    assert redact(url) == redacted
    assert redact(f"see {url} .") == f"see {redacted} ."


@pytest.mark.parametrize(
    "url",
    [
        "https://host:8080/@scope/package",
        "https://host:/@x",
        "https://bob@host/x:y",
        "https://bob:@host",
        "postgres://bob:${DB_PASSWORD}@host/db",
        "postgres://bob:<password>@host/db",
        "http://[::1]:8080/a@b",
        "https://a.b/c?d=e@f",
        "mail bob@host: see http://x",
        "git@github.com:org/repo.git",
    ],
)
def test_urls_without_a_password_stay(url: str) -> None:
    assert redact(url) == url


def test_the_password_of_a_url_is_found() -> None:
    assert find_url_password("a://bob:p%40ss@h") == "p%40ss"
    assert find_url_password("a://h") is None
    assert find_url_password("no url") is None
