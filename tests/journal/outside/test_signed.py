from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import JournalError, PayloadError, SignatureError
from pytest_golden.journal.outside.signed import MAX_BODY_BYTES, check_signature, find_header, read_object
from tests.journal.outside.github_payloads import SECRET, sign

HEADER = "X-Some-Signature"
BODY = b'{"a": 1}'


def check(signature: Any, *, body: Any = BODY, secret: Any = SECRET, name: str = HEADER) -> None:
    check_signature({} if signature is None else {name: signature}, body, secret, header=HEADER)


@pytest.mark.parametrize("name", [HEADER, HEADER.lower(), HEADER.upper()])
def test_right_signature_is_taken_whatever_the_case_of_its_header(name: str) -> None:
    check(sign(BODY), name=name)
    check(f" {sign(BODY)} ", name=name)
    check("sha256=" + sign(BODY).removeprefix("sha256=").upper(), name=name)
    check(sign(BODY), secret=SECRET.encode(), body=bytearray(BODY), name=name)


def test_signature_is_that_of_the_documentation() -> None:
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries, "Testing the webhook payload validation"
    known = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    check(known, body=b"Hello, World!", secret="It's a Secret to Everybody")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (None, "X-Some-Signature is missing"),
        ("", "64 hexadecimal digits"),
        ("sha256=", "64 hexadecimal digits"),
        ("sha1=" + "0" * 40, "64 hexadecimal digits"),
        ("0" * 64, "64 hexadecimal digits"),
        ("sha256=" + "0" * 63 + "ü", "64 hexadecimal digits"),
        ("sha256=" + "0" * 65, "64 hexadecimal digits"),
        ("sha256=" + "٠" * 64, "64 hexadecimal digits"),
        ("sha256=" + "0" * 64, "does not fit the body"),
        (sign(BODY, "another"), "does not fit the body"),
        (sign(b"{}"), "does not fit the body"),
        (f"{sign(BODY)}, {sign(BODY)}", "64 hexadecimal digits"),
        (sign(BODY).encode(), "X-Some-Signature is missing"),
    ],
)
def test_any_other_signature_is_refused(signature: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        check(signature)


@pytest.mark.parametrize("secret", ["", b"", None])
def test_without_a_secret_nobody_is_believed(secret: Any) -> None:
    with pytest.raises(SignatureError, match="there is no secret"):
        check(sign(BODY, ""), secret=secret)


def test_two_signatures_are_none() -> None:
    both = {HEADER: sign(BODY), HEADER.lower(): "sha256=" + "0" * 64}
    with pytest.raises(SignatureError):
        check_signature(both, BODY, SECRET, header=HEADER)


def test_body_is_limited_and_must_be_bytes() -> None:
    full = b" " * MAX_BODY_BYTES
    check(sign(full), body=full)
    with pytest.raises(PayloadError, match="2097153 bytes; more than 2097152"):
        check(sign(full + b" "), body=full + b" ")
    with pytest.raises(PayloadError, match="must be bytes as they were received, not str"):
        check(sign(BODY), body=BODY.decode())


def test_refusals_are_journal_errors() -> None:
    assert issubclass(SignatureError, JournalError)
    assert issubclass(PayloadError, JournalError)


def test_header_that_is_no_text_is_none() -> None:
    odd: Any = {b"x-a": "1", "x-a": 1}
    assert find_header(odd, "X-A") is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        ('{"a": 1}'.encode("utf-16"), "not JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1, "a": 2}', "a key twice"),
        (b'{"b": [{"a": 1, "\\u0061": 2}]}', "a key twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'"{}"', "must be a JSON object"),
    ],
)
def test_anything_but_a_plain_object_is_refused_in_one_sentence(body: bytes, message: str) -> None:
    with pytest.raises(PayloadError, match=message) as refused:
        read_object(body)
    assert len(str(refused.value)) < 200


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=9), values, max_size=4))
def test_objects_come_out_as_they_were(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value).encode()) == value


@given(st.binary())
def test_no_bytes_end_in_anything_but_an_object_or_a_refusal(body: bytes) -> None:
    with suppress(PayloadError):
        assert isinstance(read_object(body), dict)


def test_a_number_beyond_floats_is_infinite_and_not_refused() -> None:
    assert read_object(b'{"a": 1e999}') == {"a": math.inf}
