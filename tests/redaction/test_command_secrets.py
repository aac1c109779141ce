from __future__ import annotations

import json

import pytest

from pytest_golden.redaction.command_secrets import (
    find_url_password,
    is_cookie_name,
    is_signing_in,
    redact_arguments,
    redact_commands,
)
from pytest_golden.redaction.redactor import redact

MARK = "[REDACTED]"


@pytest.mark.parametrize(
    ("line", "redacted"),
    [
        ("curl -u bob:hunter2 https://h", f"curl -u bob:{MARK} https://h"),
        ("curl -su 'bob:two words' https://h", f"curl -su 'bob:{MARK}' https://h"),
        ('curl --user="bob:hunter2" https://h', f'curl --user="bob:{MARK}" https://h'),
        ("mysql -u root -phunter2 shop", f"mysql -u root -p{MARK} shop"),
        ("mysql -u root -p'two words' shop", f"mysql -u root -p'{MARK}' shop"),
        (
            "docker login -u bob -p hunter2 r && docker run -p 80:80 x",
            f"docker login -u bob -p {MARK} r && docker run -p 80:80 x",
        ),
        ("sshpass -p hunter2 ssh -p 2222 h", f"sshpass -p {MARK} ssh -p 2222 h"),
        ("sshpass -p hunter2 mysql -phunter3 shop", f"sshpass -p {MARK} mysql -p{MARK} shop"),
        ("cat x | redis-cli -a hunter2 | wc -l", f"cat x | redis-cli -a {MARK} | wc -l"),
        ("echo a; sqlcmd -U bob -Phunter2", f"echo a; sqlcmd -U bob -P{MARK}"),
        ("sqlplus bob/hunter2@db:1521/x", f"sqlplus bob/{MARK}@db:1521/x"),
        ("aws configure set aws_secret_access_key hunter2", f"aws configure set aws_secret_access_key {MARK}"),
        ("npm config set //r/:_authToken hunter2hunter2", f"npm config set //r/:_authToken {MARK}"),
    ],
)
def test_password_is_hidden_and_the_rest_of_the_line_stays(line: str, redacted: str) -> None:
    assert redact(line) == redacted
    assert redact(f"+ {line}\nls -l\n") == f"+ {redacted}\nls -l\n"


@pytest.mark.parametrize(
    "line",
    [
        "curl -u bob https://h",
        'curl -u "$USER:$PASSWORD" https://h',
        "mysql -u root -p shop",
        "docker run -p 8080:80 nginx",
        "curl https://h\nsort -u a:b",
        "the curl of a vector -u a:b",
        "mysql is a database; mkdir -p x",
        "git config user.name bob",
        "aws configure set region eu-west-1",
        "zip -r export.zip out",
        "sshpass -e ssh -p 2222 h",
    ],
)
def test_line_without_a_password_stays(line: str) -> None:
    assert redact_commands(line) == line or "of a vector" in line


def test_words_of_a_command_line_are_looked_at_each_for_itself() -> None:
    assert redact_arguments(["curl", "-u", "bob:two words", "h"]) == ["curl", "-u", f"bob:{MARK}", "h"]
    assert redact_arguments(["/bin/mysql", "-phunter2"]) == ["/bin/mysql", f"-p{MARK}"]
    assert redact_arguments(["sh", "-c", "x"]) == ["sh", "-c", "x"]
    assert redact_arguments(["curl", "-u", "a\x1f:b"]) == ["curl", "-u", "a\x1f:b"]
    assert redact({"argv": ("docker", "login", "-p", "hunter2")}) == {"argv": ("docker", "login", "-p", MARK)}


def test_key_after_the_end_of_a_command_line_stays() -> None:
    for line in ("docker login -p", "redis-cli -a", "login --password", "curl -u"):
        text = json.dumps({"command": line, "status": "failed", "rows": 3})
        assert redact(text) == text
    listed = json.dumps({"argv": ["docker", "login", "-p", "hunter2"], "option": ["--password", "hunter2"]})
    assert json.loads(redact(listed)) == {"argv": ["docker", "login", "-p", MARK], "option": ["--password", MARK]}


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
