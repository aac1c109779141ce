"""Secrets that show themselves by their form."""

from __future__ import annotations

import base64

import pytest

from pytest_golden.redaction.redactor import redact

BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKENS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA-1234567890abcdefghijklmnopqrst_u",
    "ya29." + BODY,
    "ghp_" + BODY,
    "gho_" + BODY,
    "ghu_" + BODY,
    "ghs_" + BODY,
    "ghr_" + BODY,
    "github_pat_" + "11ABCDEFG0" + "_" + BODY,
    "glpat-" + BODY,
    "xoxb-" + "123456789012-abcdefABCDEF",
    "xoxp-" + "123456789012-abcdefABCDEF",
    "sk-" + "a" * 48,
    "sk-" + BODY,
    "sk-proj-" + "abcdefgh-ijklmnop",
    "sk-ant-" + "api03-abcdefgh",
    "sk_live_" + BODY,
    "npm_" + BODY,
    "hf_" + BODY,
    "pypi-AgE" + BODY * 2,
    "dapi" + "0123456789abcdef" * 2,
    "SG." + BODY[:22] + "." + BODY,
    "hvs." + BODY,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("frame", ["{}", "x {} y", '"{}"', "first\\n{}", "\x1b[31m{}\x1b[0m", "https://h/{}?x", "({})"])
def test_tokens_of_known_services_are_hidden(token: str, frame: str) -> None:
    redacted = redact(frame.format(token))
    assert token not in redacted
    assert token[-12:] not in redacted
    assert "[REDACTED]" in redacted


def test_an_aws_secret_is_hidden_beside_its_id_or_a_keyword() -> None:
    key_id = "AKIA" + "IOSFODNN7EXAMPLE"
    assert redact(f"{key_id},{AWS_SECRET}") == "[REDACTED],[REDACTED]"
    assert AWS_SECRET not in redact(f"aws secret {AWS_SECRET} here")
    assert AWS_SECRET not in redact(f"the secret access key {AWS_SECRET}")
    digest = "8b1a9953c4611296a827abf8c47804d7e6c8d8f1"
    assert redact(f"{key_id},{digest}") == f"[REDACTED],{digest}"
    assert redact(f"aws commit {digest}") == f"aws commit {digest}"


def test_the_rest_of_a_web_hook_and_of_a_signed_url_stays() -> None:
    assert redact("https://hooks.slack.com/services/T00/B00/XXabcdef123 x") == (
        "https://hooks.slack.com/services/[REDACTED] x"
    )
    url = "https://a.blob.core.windows.net/c?sv=2022&sig=abcDEF123%2Fxyz0987%3D&se=2026"
    assert redact(url) == "https://a.blob.core.windows.net/c?sv=2022&sig=[REDACTED]&se=2026"


@pytest.mark.parametrize("name", ["X-Amz-Signature", "X-Goog-Signature", "x-amz-signature"])
def test_signature_of_a_signed_url_is_hidden(name: str) -> None:
    url = f"https://bucket.example.com/key?X-Amz-Expires=60&{name}={'0123456789abcdef' * 4}&x=1"
    assert redact(url) == f"https://bucket.example.com/key?X-Amz-Expires=60&{name}=[REDACTED]&x=1"


def test_bearer_and_basic_credentials_are_hidden() -> None:
    basic = base64.b64encode(b"user:hunter2").decode()
    assert redact("got Bearer abc123def456 back") == "got Bearer [REDACTED] back"
    assert redact(f"Basic {basic}") == "Basic [REDACTED]"
    assert redact("Basic " + base64.urlsafe_b64encode(b"\xff\xfe:\xff").decode()) is not None
    for text in ("Basic authentication is required", "bearer of news", "Bearer <token> here", "Bearer ${TOKEN}"):
        assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "commit 8b1a9953c4611296a827abf8c47804d7e6c8d8f1",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCARygAwIBAgIJAN\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBszCCARygAwIBAgIJAN\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8 me@host",
        "task-runner-with-long-name-abcdefgh",
        "sk-learn-contrib-package-name",
        "eyJ is not a token, nor is eyJa.b",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
)
def test_hashes_public_keys_and_names_stay(text: str) -> None:
    assert redact(text) == text


KEY_LINE = "MIIEpAIBAAKCAQEA7bq98secretkeymaterial0123456789"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_key_blocks_are_hidden(kind: str) -> None:
    block = f"-----BEGIN {kind}PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE}==\n-----END {kind}PRIVATE KEY-----"
    assert redact(f"before {block} after") == "before [REDACTED] after"
    escaped = block.replace("\n", "\\n")
    assert redact(f'{{"k": "{escaped}"}}') == '{"k": "[REDACTED]"}'
    armoured = block.replace("PRIVATE KEY", "PRIVATE KEY BLOCK")
    assert redact(armoured) == "[REDACTED]"


@pytest.mark.parametrize("cut", [30, 40, 60, 90, 110, 130, 140])
def test_private_keys_that_are_cut_off_are_hidden(cut: int) -> None:
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE}==\n-----END RSA PRIVATE KEY-----"
    redacted = redact("x " + block[:cut])
    assert KEY_LINE[:8] not in redacted
    assert redact(f"{block[:100]}\nThe run went on after that.\n").endswith("The run went on after that.\n")


def test_headers_in_a_cut_off_block_and_a_second_block_are_hidden() -> None:
    first = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{KEY_LINE}\n"
    second = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----\n"
    redacted = redact(first + second + "end of file\n")
    assert "MII" not in redacted
    assert redacted.endswith("end of file\n")
    assert "MII" not in redact(first + KEY_LINE)


@pytest.mark.parametrize(
    "token", [*TOKENS, "BEARER a1B2c3D4e5F6", "Basic\x20dXNlcjpwYXNz", "hooks.slack.com/services/T0A1B2C3D4"]
)
def test_short_text_is_redacted_like_a_long_one(token: str) -> None:
    tail = "\n" + "and so on\n" * 100
    assert redact(token) + tail == redact(token + tail)
    assert redact(token) != token


def test_keyword_is_found_in_any_alphabet() -> None:
    for text in ("\u0130: BEAR\u0130NG bearer a1B2c3D4e5F6", "BAS\u0130C dXNlcjpwYXNz", "\u03a3 Bearer a1B2c3D4e5F6"):
        tail = "\n" + "and so on\n" * 100
        assert redact(text) + tail == redact(text + tail)
