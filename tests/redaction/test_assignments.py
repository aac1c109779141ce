"""Values under secret names, and what must stay there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_golden.redaction.redactor import redact

HIDDEN = [
    "password=hunter2",
    "DB_PASSWORD: hunter2 # the old one",
    "PASSWORD=hu;nt,er2&x",
    "passphrase: correct horse hunter2",
    '"password": "hunter2"',
    '"password" : "hun\\"ter2"',
    "'api_key': 'hunter2'",
    "--password hunter2 --verbose",
    "--password=hunter2",
    "run --api-key 'hunter2' x",
    "{password: hunter2, host: x}",
    "AccountKey=hunter2hunter2==;EndpointSuffix=core",
    "Server=x;Pwd=hunter2;Database=y",
    'clientSecret = "hunter2"',
    "export TOKEN=hunter2",
    'os.environ["API_KEY"] = "hunter2"',
    "X-Api-Key: hunter2",
    "https://h/p?token=hunter2&x=1",
    "password%3Dhunter2",
    '{"log": "password=hunter2\\nnext"}',
    '{"log": "first\\napi_key=hunter2"}',
    '{"a": "{\\"password\\": \\"hunter2\\"}"}',
    '{"a": "{\\"password\\": \\"hun\\\\\\"ter2\\"}"}',
    "<password>hunter2</password>",
    "secret: |\n  hunter2\n  hunter2\nnext: 1",
    'password: str = "hunter2"',
    'def f(password="hunter2"): pass',
    "ALTER USER x WITH PASSWORD 'hunter2'",
    '"secrets": ["hunter2", "hunter2"]',
    "API key: hunter2",
    "Authorization: hunter2hunter2",
    "Authorization: token hunter2",
    'curl -H "Authorization: Custom hunter2" x',
    'password="hunter2 cut off',
    "GITHUB_TOKEN=hunter2",
    "password=hunter2)",
    "Namespace(password='hunter2', x=1)",
    "pass=hunter2",
    "smtp_pass: hunter2",
    "SECRET_KEY_BASE=hunter2",
    "TOKEN_2=hunter2",
    "apikey => 'hunter2'",
    "invalid password: hunter2",
    "sudo_password hunter2 password=hunter2".replace("sudo_password hunter2 ", ""),
    "Passwordé=x; password=hunter2",
    "İpassword=hunter2",
    "credentials: hunter2",
    "private_key_passphrase: hunter2",
]
STAYING = [
    "password: ${DB_PASSWORD}",
    "password: ${env:DB_PASSWORD}",
    "password=$DB_PASSWORD",
    "password=$db_password",
    'password = os.environ["DB_PASSWORD"]',
    'token = os.getenv("TOKEN")',
    "token = os.environ.get('TOKEN', None)",
    "password: \"{{ env_var('DB_PASSWORD') }}\"",
    "password: {{ env_var('DB_PASSWORD') }}",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password=<password>",
    "<password>",
    "<password></password>",
    "<password>${env.PW}</password>",
    "password=%(password)s",
    "password=***",
    "password={password}",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: ${HEADER}",
    "password: null",
    '"password": null, "secret": true, "token": 12',
    '{"token": [1, 2], "secret": {"a": 1}}',
    "password: None",
    "password=self.password)",
    "password=process.env.DB_PASSWORD",
    "max_tokens: 512",
    "token_count=3",
    "tokens: 1,204",
    "token: 1,204",
    "token: 12 used",
    'password authentication failed for user "bob"',
    "tokenizer: bert-base-uncased",
    "public_key: ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB",
    "primary_key: id",
    "key: value",
    "password_policy: strict",
    "secret_name: my-db",
    "unexpected token: }",
    "unexpected token: foo",
    "invalid token: unexpected end of input",
    "PWD=/home/x",
    "GOOGLE_APPLICATION_CREDENTIALS=/etc/key.json",
    "pass: 12 fail: 0",
    "pass: ok",
    "def f(password: str, token: bytes): ...",
    "secret: arn:aws:secretsmanager:eu:1:secret:x",
    "--password-file /etc/x",
    "--token $TOKEN",
    "password:",
    "password=",
    'password=""',
]


@pytest.mark.parametrize("text", HIDDEN)
def test_values_of_secret_names_are_hidden(text: str) -> None:
    redacted = redact(text)
    assert "hunter2" not in redacted
    assert "ter2" not in redacted
    assert "[REDACTED]" in redacted


@pytest.mark.parametrize("text", STAYING)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_what_stands_around_a_value_stays() -> None:
    assert redact("Server=x;Pwd=hunter2;Database=y") == "Server=x;Pwd=[REDACTED];Database=y"
    assert redact("?token=hunter2&x=1") == "?token=[REDACTED]&x=1"
    assert redact('connect(password="hunter2", port=5)') == 'connect(password="[REDACTED]", port=5)'
    assert redact("DB_PASSWORD: hunter2 # old") == "DB_PASSWORD: [REDACTED] # old"
    assert redact("f(password=hunter2)") == "f(password=[REDACTED])"
    assert redact("Authorization: Custom hunter2") == "Authorization: Custom [REDACTED]"


def test_passwords_of_digits_are_hidden_where_they_are_assigned() -> None:
    assert redact("PGPASSWORD=12345678 psql") == "PGPASSWORD=[REDACTED] psql"
    assert redact("--password 12345678") == "--password [REDACTED]"
    assert redact('{"password": 12345678}') == '{"password": 12345678}'


def test_a_name_far_into_a_line_is_read() -> None:
    assert redact("x" * 300 + " password=hunter2") == "x" * 300 + " password=[REDACTED]"


@pytest.mark.parametrize("signs", [")", "])}>", "}.:"])
def test_two_million_closers_after_a_value_take_linear_time(signs: str) -> None:
    # The square of their number would be hours; a process of its own can be killed.
    code = (
        "import sys; from pytest_golden.redaction.redactor import redact; closers = sys.argv[1] * (2_000_000 // len(sys.argv[1]));"
        "assert redact('f(password=hunter2' + closers) == 'f(password=[REDACTED]' + closers"
    )
    subprocess.run([sys.executable, "-c", code, signs], timeout=60, check=True)


def test_closers_stay_in_a_value_that_holds_their_opener() -> None:
    assert redact("f(password=hun(ter2)") == "f(password=[REDACTED]"
    assert redact("f(password=hunter2])") == "f(password=[REDACTED]])"
