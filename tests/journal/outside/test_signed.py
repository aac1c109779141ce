from __future__ import annotations

import json
import math
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.clock import iso_utc
from pytest_golden.errors import JournalError, PayloadError, SignatureError
from pytest_golden.journal.outside.signed import (
    CALLBACK_KEYS,
    MAX_BODY_BYTES,
    callback_signal,
    check_signature,
    find_header,
    read_object,
)
from tests.journal.conftest import BEGIN
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
def test_without_a_secret_no_signature_is_accepted(secret: Any) -> None:
    with pytest.raises(SignatureError, match="the secret is not set"):
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
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
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


NEWS = {"source": "crm", "signal_type": "positive", "summary": "customer answered", "external_id": "crm-1"}
LATER = {key: value for key, value in NEWS.items() if key != "external_id"}


def send(body: Any, *, now: datetime = BEGIN) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return callback_signal({"x-golden-signature-256": sign(raw)}, raw, SECRET, now=now)


def test_arguments_are_handed_on() -> None:
    assert send(NEWS) == {**NEWS, "data": {}}
    more = {"data": {"ticket": 7}, "agent_id": "builder", "session_key": "s1", "entry_id": "entry_1"}
    assert send({**NEWS, **more}) == {**NEWS, **more}


def test_null_is_as_if_it_were_not_there() -> None:
    nothing = dict.fromkeys(("data", "agent_id", "session_key", "entry_id", "created_at"))
    assert send({**NEWS, **nothing}) == send(NEWS)


@pytest.mark.parametrize("signature", [None, "sha256=" + "0" * 64, "x"])
def test_unsigned_is_refused(signature: str | None) -> None:
    body = json.dumps(NEWS).encode()
    given = {} if signature is None else {"X-Golden-Signature-256": signature}
    with pytest.raises(SignatureError, match="X-Golden-Signature-256"):
        callback_signal(given, body, SECRET, now=BEGIN)


def test_github_does_not_sign_for_others() -> None:
    body = json.dumps(NEWS).encode()
    with pytest.raises(SignatureError):
        callback_signal({"X-Hub-Signature-256": sign(body)}, body, SECRET, now=BEGIN)


@pytest.mark.parametrize("source", ["human", "golden", "github", "system", "Human", " human", "hu\u200bman"])
def test_nobody_is_spoken_for(source: str) -> None:
    with pytest.raises(PayloadError, match="is reserved"):
        send({**NEWS, "source": source})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sumary": "x"}, "the key 'sumary' is unknown: there are source, signal_type, summary, data, external_id"),
        ({"sumary": None}, "the key 'sumary' is unknown"),
        ({"x" * 9999: 1}, "is unknown"),
        ({"source": None}, "source is missing"),
        ({"signal_type": None}, "signal_type is missing"),
        ({"summary": None}, "summary is missing"),
        ({"summary": " "}, "summary is blank"),
        ({"summary": " " * 9999}, "summary is blank"),
        ({"source": "human" + " " * 9999}, "is reserved"),
        ({"signal_type": "x" * 9999}, "is unknown"),
        ({"summary": ["x"]}, "summary must be a text, not a list"),
        ({"source": 3}, "source must be a text, not 3"),
        ({"signal_type": "good"}, "signal_type 'good' is unknown: give one of positive, negative, neutral, correction"),
        ({"signal_type": ["positive"]}, "signal_type must be a text"),
        ({"data": [1]}, "data must be an object, not a list"),
        ({"entry_id": 5}, "entry_id must be a text, not 5"),
        ({"external_id": ""}, "external_id is blank"),
        ({"external_id": {}}, "external_id must be a text, not a mapping"),
        ({"created_at": "yesterday"}, "created_at must be ISO-8601 text such as 2026-01-31T12:00:00Z, not 'yesterday'"),
        ({"created_at": 1772366400}, "created_at must be"),
        ({"created_at": "2026-03-01T12:00:00"}, "created_at must be"),
        ({"external_id": None}, "give an external_id, or a created_at"),
    ],
)
def test_what_is_not_allowed_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PayloadError, match=message) as refused:
        send({**NEWS, **changes})
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("body", [b"[]", b"", b"{", b'{"source": "a", "source": "b"}', b"[" * 100_000])
def test_body_must_be_an_object(body: bytes) -> None:
    with pytest.raises(PayloadError):
        send(body)


@pytest.mark.parametrize("minutes", [-5, -1, 0, 5])
def test_moment_near_now_will_do_for_an_id(minutes: float) -> None:
    signal = send({**LATER, "created_at": iso_utc(BEGIN + timedelta(minutes=minutes))})
    assert signal["external_id"].startswith("sha256:")
    assert "created_at" not in signal


@pytest.mark.parametrize("minutes", [-5.01, 5.01, 60 * 24 * 365])
def test_moment_far_from_now_may_be_a_replay(minutes: float) -> None:
    body = {**LATER, "created_at": iso_utc(BEGIN + timedelta(minutes=minutes))}
    with pytest.raises(PayloadError, match="more than five minutes from now"):
        send(body)
    assert send({**body, "external_id": "crm-1"})["external_id"] == "crm-1"


def test_replay_has_the_same_id_and_other_news_another() -> None:
    body = {**LATER, "created_at": "2026-03-01T13:00:00+01:00"}
    assert send(body) == send(body, now=BEGIN + timedelta(minutes=4))
    assert send({**body, "created_at": "2026-03-01T13:00:01+01:00"})["external_id"] != send(body)["external_id"]


def test_clock_must_be_aware() -> None:
    with pytest.raises(ValueError, match="now must be an aware datetime"):
        send(NEWS, now=BEGIN.replace(tzinfo=None))


keys = st.sampled_from([*CALLBACK_KEYS, "other"])
field_values = (
    st.none() | st.text() | st.integers() | st.floats(allow_nan=False) | st.lists(st.text()) | st.just({"a": 1})
)


@given(st.dictionaries(keys, field_values))
def test_no_object_ends_in_anything_but_arguments_or_a_refusal(changes: dict[str, Any]) -> None:
    with suppress(PayloadError):
        assert set(send({**NEWS, **changes})) <= set(CALLBACK_KEYS) - {"created_at"}
