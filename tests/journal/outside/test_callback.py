from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.clock import iso_utc
from pytest_golden.errors import PayloadError, SignatureError
from pytest_golden.journal.outside.signed import CALLBACK_KEYS, callback_signal
from tests.journal.conftest import BEGIN
from tests.journal.outside.github_payloads import SECRET, sign

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
        ({"created_at": "yesterday"}, "created_at must be a time such as 2026-01-31T12:00:00Z, not 'yesterday'"),
        ({"created_at": 1772366400}, "created_at must be a time"),
        ({"created_at": "2026-03-01T12:00:00"}, "created_at must be a time"),
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
values = st.none() | st.text() | st.integers() | st.floats(allow_nan=False) | st.lists(st.text()) | st.just({"a": 1})


@given(st.dictionaries(keys, values))
def test_no_object_ends_in_anything_but_arguments_or_a_refusal(changes: dict[str, Any]) -> None:
    with suppress(PayloadError):
        assert set(send({**NEWS, **changes})) <= set(CALLBACK_KEYS) - {"created_at"}
