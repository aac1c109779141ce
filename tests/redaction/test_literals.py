"""Known values from the environment and from credentials files."""

from __future__ import annotations

import pytest

from pytest_golden.redaction.literals import literals_in_file, secret_arguments, secret_literals
from pytest_golden.redaction.redactor import Redactor


def test_values_of_secret_variables_and_passwords_in_urls_are_taken() -> None:
    environment = {
        "DB_PASSWORD": "hunter22",
        "DATABASE_URL": "postgres://bob:p%40ssword1@host/db",
        "PWD": "/home/someone",
        "TZ": "Europe/Berlin",
        "MAX_TOKENS": "512512512",
        "SHORT_SECRET": "abc",
        "API_TOKEN": "hunter22",
        "SOME_SECRET": "${OTHER_SECRET}",
    }
    assert secret_literals(environment) == ("hunter22", "p%40ssword1", "p@ssword1")


FILES = {
    "dbt profile": "shop:\n  outputs:\n    dev:\n      type: postgres\n      pass: hunter22\n      password: 'hunter22'\n",
    "json": '{"client_secret": "hunter22", "list": [{"token": ["hunter22"]}]}',
    "env": "# a file\nexport API_TOKEN='hunter22' # mine\nOTHER=1\n",
    "ini": "[db]\nuser = bob\npassword = hunter22 ; old\n",
    "netrc": "machine example.org login bob password hunter22\n",
    "pgpass": "host:5432:*:bob:hunter22\n",
    "broken yaml": "password: hunter22\n  : - [\n",
    "url": "url: postgres://bob:hunter22@host\n",
    "json with a comma": '{\n  "password": "hunter22",\n  "x": 1,\n',
}


@pytest.mark.parametrize("kind", FILES)
def test_secret_values_in_credentials_files_are_taken(kind: str) -> None:
    assert "hunter22" in literals_in_file(FILES[kind])
    assert "bob" not in literals_in_file(FILES[kind])


def test_a_key_of_several_lines_is_hidden_line_by_line() -> None:
    literals = literals_in_file("private_key: |\n  MIIEpAIBAAKCAQEA7bq98\n  AnotherLineOfTheKey01\n")
    redacted = Redactor(literals=literals).text("failed near AnotherLineOfTheKey01")
    assert redacted == "failed near [REDACTED]"


def test_files_that_explode_or_mean_nothing_give_what_their_lines_say() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\npassword: hunter22\n"
    assert literals_in_file(bomb) == ("hunter22",)
    assert literals_in_file("") == ()
    assert literals_in_file("password: 12345\ndate: 2026-99-99\n") == ()
    many = "\n".join(f"- {number}" for number in range(30_000))
    assert literals_in_file(many) == ()
    assert literals_in_file("x" * (2 << 20)) == ()


def test_values_of_secret_named_options_are_taken() -> None:
    arguments = (
        "--password=hunter22",
        "--api-token",
        "hunter33",
        "--rows",
        "512512512",
        "postgres://bob:hunter44@host",
    )
    assert secret_arguments(arguments) == ("hunter22", "hunter33", "hunter44")
    assert secret_arguments(("--password", "--verbose", "load")) == ()
