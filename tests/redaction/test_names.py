"""Which names promise a secret."""

from __future__ import annotations

import pytest

from pytest_golden.redaction.names import is_secret_name, is_weak_name


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
