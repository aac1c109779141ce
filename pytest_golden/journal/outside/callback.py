"""The generic callback: a signed JSON object with the arguments of `Journal.add_signal`. It stores nothing."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import PayloadError
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.signed import check_signature, read_object
from pytest_golden.journal.sources import check_free_source
from pytest_golden.manifest.unquoted import show
from pytest_golden.trajectory.vocabulary import check_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

#: How far `created_at` may lie from now, to either side.
MOST_APART = timedelta(minutes=5)
_REQUIRED = ("source", "signal_type", "summary")
_NAMES = ("external_id", "agent_id", "session_key", "entry_id")
_CREATED_AT = "created_at"
_SIGNAL_TYPES = tuple(signal_type.value for signal_type in SignalType)
#: What a callback may have.
CALLBACK_KEYS = (*_REQUIRED, "data", *_NAMES, _CREATED_AT)


def callback_signal(headers: Mapping[str, str], body: bytes, secret: str | bytes, *, now: datetime) -> dict[str, Any]:
    """Give the arguments of `Journal.add_signal` that a callback has; refuse what is not signed by `X-Golden-Signature-256`.

    It carries an `external_id`, or a `created_at` within five minutes of now; then the external id is derived from the
    signed body. Either way a replay has one effect.

    Raises:
        SignatureError: the signature is missing, malformed or wrong.
        PayloadError: the body is too large, no JSON object, has an unknown key or a value that is not allowed, speaks for
            a source that is reserved, or could be a replay.
        ValueError: `now` is no aware datetime.
    """
    moment = check_time("now", now)
    check_signature(headers, body, secret, header="X-Golden-Signature-256")
    given = read_object(bytes(body))
    try:
        return _read(given, bytes(body), moment)
    except ValueError as error:
        raise PayloadError(str(error)) from None


def _read(given: dict[str, Any], body: bytes, now: datetime) -> dict[str, Any]:
    unknown = sorted(set(given) - set(CALLBACK_KEYS))
    if unknown:
        raise ValueError(f"the key {show(unknown[0])} is unknown: there are {', '.join(CALLBACK_KEYS)}")
    given = {key: value for key, value in given.items() if value is not None}
    data = given.get("data", {})
    if not isinstance(data, dict):
        raise ValueError(f"data must be an object, not {show(data)}")  # noqa: TRY004 - one kind of refusal
    created_at = given.get(_CREATED_AT)
    moment = None if created_at is None else _parse_time(created_at)
    named = {key: _text(given, key) for key in _NAMES if key in given}
    return {
        "source": check_free_source(_text(given, "source")),
        "signal_type": _word(_text(given, "signal_type")),
        "summary": _text(given, "summary"),
        "data": data,
        **({} if "external_id" in named else {"external_id": _derive_id(moment, body, now)}),
        **named,
    }


def _text(given: dict[str, Any], key: str) -> str:
    if key not in given:
        raise ValueError(f"{key} is missing")
    value = given[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    if not value.strip():
        raise ValueError(f"{key} is blank")
    return value


def _word(word: str) -> str:
    if word not in _SIGNAL_TYPES:
        raise ValueError(f"signal_type {show(word)} is unknown: give one of {', '.join(_SIGNAL_TYPES)}")
    return word


def _parse_time(text: Any) -> datetime:
    try:
        return parse_time(_CREATED_AT, text)
    except ValueError:
        raise ValueError(f"created_at must be a time such as 2026-01-31T12:00:00Z, not {show(text)}") from None


def _derive_id(moment: datetime | None, body: bytes, now: datetime) -> str:
    if moment is None:
        raise ValueError("give an external_id, or a created_at: without one, a replay could not be told from news")
    if abs(now - moment) > MOST_APART:
        raise ValueError("created_at is more than five minutes from now; send it at once, or give an external_id")
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
