"""Secrets that the form of a document gives away."""

from __future__ import annotations

import base64

import pytest

from pytest_golden.redaction.document_secrets import is_basic_credential, is_pair_of_secret
from pytest_golden.redaction.redactor import redact

MARK = "[REDACTED]"
MANIFEST = 'kind: Secret\nmetadata:\n  name: db\ndata:\n  url: {0}\n  empty: ""\nstringData:\n  note: "{0}"\n'


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("machine h\n  login bob\n  password hunter2\n", f"machine h\n  login bob\n  password {MARK}\n"),
        ("h:5432:db:bob:hun\\:ter2", f"h:5432:db:bob:{MARK}"),
        ("*:*:*:bob:hunter2", f"*:*:*:bob:{MARK}"),
        ("CREATE USER bob IDENTIFIED BY 'hunter2';", f"CREATE USER bob IDENTIFIED BY '{MARK}';"),
        ("alter user bob with password 'hunter2'", f"alter user bob with password '{MARK}'"),
        ("SECRET 'hunter2', SCOPE 's3://x'", f"SECRET '{MARK}', SCOPE 's3://x'"),
        ("jdbc:oracle:thin:bob/hunter2@h:1521/x", f"jdbc:oracle:thin:bob/{MARK}@h:1521/x"),
        ("get(u, auth=('bob', 'hunter2'))", f"get(u, auth=('bob', '{MARK}'))"),
        ("- name: DB_PASSWORD\n  value: hunter2\n", f"- name: DB_PASSWORD\n  value: {MARK}\n"),
        ('<add key="ApiKey" value="hunter2" />', f'<add key="ApiKey" value="{MARK}" />'),
        ("('Authorization', 'Bearer hunter2')", f"('Authorization', 'Bearer {MARK}')"),
        ("h.setRequestHeader('X-Api-Key', 'hunter')", f"h.setRequestHeader('X-Api-Key', '{MARK}')"),
        ('{"passwords": {"bob": "hunter2", "n": 3}}', f'{{"passwords": {{"bob": "{MARK}", "n": 3}}}}'),
        ("basic.auth.user.info=KEY:hunter2", f"basic.auth.user.info=KEY:{MARK}"),
    ],
)
def test_the_secret_is_hidden_and_the_document_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "machine h\n  login bob\n",
        "h:5432:db:bob:${PW}",
        "12:5432:1:2:3",
        "rows identified by 'id'",
        "CREATE USER bob IDENTIFIED BY '${PW}'",
        "DROP SECRET 'lake'",
        "auth=('bob',)",
        "auth: bm90aGluZw==",
        "- name: REGION\n  value: eu\n",
        "- name: DB_PASSWORD\n  value: ${PW}\n",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db}\n",
        "('password', 'email')",
        "kind: ConfigMap\ndata:\n  url: http://h\n",
        '{"passwords": {"bob": "${PW}", "n": 3}}',
        '{"kty": "EC", "x": "aaaaaaaaaaaaaaaaaaaaaaaa"}',
    ],
)
def test_what_only_looks_so_stays(text: str) -> None:
    assert redact(text) == text


def test_data_of_a_kubernetes_secret_is_hidden_and_that_of_other_documents_stays() -> None:
    text = MANIFEST.format("aHVudGVyMg==") + "---\nkind: ConfigMap\ndata:\n  url: http://h\n"
    redacted = redact(text)
    assert "aHVudGVyMg" not in redacted
    assert redacted == MANIFEST.format(MARK) + "---\nkind: ConfigMap\ndata:\n  url: http://h\n"
    given = {"kind": "Secret", "data": {"url": "aHVudGVyMg==", "n": 3}, "metadata": {"name": "db"}}
    assert redact(given) == {"kind": "Secret", "data": {"url": MARK, "n": 3}, "metadata": {"name": "db"}}


def test_private_half_of_a_web_key_is_hidden() -> None:
    key = {"kty": "EC", "x": "a" * 43, "d": "b" * 43}
    assert redact(key) == {"kty": "EC", "x": "a" * 43, "d": MARK}
    assert redact({"d": "b" * 43}) == {"d": "b" * 43}


def test_basic_credentials_are_told_from_other_base64() -> None:
    assert is_basic_credential(base64.b64encode(b"bob:hunter2").decode())
    assert not is_basic_credential(base64.b64encode(b"\xff:\xff").decode())
    assert not is_basic_credential("no base64!")
    assert redact({"auth": base64.b64encode(b"bob:hunter2").decode(), "_auth": "x"}) == {"auth": MARK, "_auth": MARK}


def test_two_names_are_no_pair() -> None:
    assert is_pair_of_secret("X-Api-Key", "a1b2c3d4")
    assert not is_pair_of_secret("password", "first_name")
    assert not is_pair_of_secret("password", "${DB_PASSWORD_1}")
    assert redact([["X-Api-Key", "a1b2c3d4"], ["password", "email"]]) == [["X-Api-Key", MARK], ["password", "email"]]
    assert redact(("Authorization", "Bearer a1b2c3d4")) == ("Authorization", f"Bearer {MARK}")


def test_secrets_by_name_are_hidden_and_places_stay() -> None:
    value = {"secrets": {"db": "hunter2", "file": "/run/x", "ref": "${X}", "n": 3, "deep": {"file": "./x"}}}
    assert redact(value) == {
        "secrets": {"db": MARK, "file": "/run/x", "ref": "${X}", "n": 3, "deep": {"file": "./x"}},
    }
