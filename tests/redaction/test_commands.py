"""Passwords in command lines whose option does not say so."""

from __future__ import annotations

import json

import pytest

from pytest_golden.redaction.command_secrets import redact_arguments, redact_commands
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
