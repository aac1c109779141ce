from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.redaction.rule import (
    REFERENCE,
    compile_late,
    is_reference,
    is_secret_name,
    is_weak_name,
    starts_reference,
)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "dbPassword",
        "DB_PASSWD",
        "MYSQL_PWD",
        "passphrase",
        "secret",
        "clientSecret",
        "client-secret",
        "api_key",
        "apiKey",
        "APIKey",
        "apikey",
        "X-Api-Key",
        "access_key",
        "aws_secret_access_key",
        "SecretAccessKey",
        "private_key",
        "AccountKey",
        "SharedAccessKey",
        "token",
        "GITHUB_TOKEN",
        "authToken",
        "access.token",
        "Authorization",
        "credentials",
        "SECRET_KEY_BASE",
        "PASSWORD_2",
        "TOKEN_PROD",
        "smtp_pass",
        "PGPASSWORD",
        "secrets",
        "api_keys",
        "mysecret",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "tokens",
        "max_tokens",
        "max_token",
        "token_count",
        "tokenizer",
        "public_key",
        "PUBLIC_API_KEY",
        "primary_key",
        "key",
        "keys",
        "path",
        "name",
        "author",
        "password_policy",
        "secret_name",
        "PWD",
        "OLDPWD",
        "pass",
        "first_pass",
        "compass",
        "passed",
        "is_secret",
        "use_token",
        "secretary",
        "passwordless",
        "monkey",
        "hotkey",
        "host",
        "user",
        "authentication",
        "7",
        "_",
    ],
)
def test_names_of_other_things_are_told_apart(name: str) -> None:
    assert not is_secret_name(name)


def test_pass_alone_is_weak() -> None:
    assert is_weak_name("pass")
    assert not is_weak_name("passed")


@given(st.from_regex(REFERENCE.pattern, fullmatch=True), st.text(max_size=5))
def test_every_form_of_a_reference_is_told_by_its_first_sign_too(reference: str, before: str) -> None:
    assert is_reference(reference)
    assert is_reference(f" {reference}\n")
    assert starts_reference(before + reference, len(before))


@given(st.text(max_size=20))
def test_no_other_text_is_taken_for_one(text: str) -> None:
    assert is_reference(text) == (REFERENCE.fullmatch(text.strip()) is not None)
    assert starts_reference(text, 0) == (REFERENCE.match(text) is not None)


def test_pattern_that_is_compiled_late_does_what_a_compiled_one_does() -> None:
    late, compiled = compile_late("(?P<sign>[ab])c", re.IGNORECASE), re.compile("(?P<sign>[ab])c", re.IGNORECASE)
    text = "acxBc"
    assert late.findall(text) == compiled.findall(text) == ["a", "B"]
    assert late.sub("-", text) == "-x-"
    assert late.split(text) == compiled.split(text)
    assert [found["sign"] for found in late.finditer(text)] == ["a", "B"]
    assert late.match(text, 3) is not None
    assert late.fullmatch(text) is None
    assert late.search("x") is None
    assert (late.pattern, late.groupindex) == (compiled.pattern, compiled.groupindex)


def test_importing_redaction_compiles_none_of_its_patterns() -> None:
    code = """
import base64, dataclasses, json, typing, urllib.parse, yaml
import re
compiled = []
compile = re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: compiled.append(pattern) or compile(pattern, flags)
import pytest_golden.redaction.redactor as redaction
print(len(compiled), redaction.redact("password=hunter22"), bool(compiled))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 password=[REDACTED] True\n"
