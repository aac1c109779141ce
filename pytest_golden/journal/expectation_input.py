"""Read the expectations that callers give as mappings, and check them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_golden.clock import new_id
from pytest_golden.journal.caller_input import clean_json, clean_text
from pytest_golden.journal.checks.rules import CHECK, read_check
from pytest_golden.journal.hints import find_problem
from pytest_golden.journal.model import Expectation, Polarity
from pytest_golden.manifest import kinds
from pytest_golden.manifest.units import show
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.values.json_form import json_form

_MINUTE_MS = 60_000
_LAST_MS = to_ms(datetime.max.replace(tzinfo=UTC))


def _check_minutes(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise kinds.wrong(f"{show(value)} is not a number of minutes above 0")
    return value


def _check_hint(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise kinds.wrong(f"this must be a mapping with at least one key, not {show(value)}")
    problem = find_problem({kinds.check_text(key): item for key, item in value.items()})
    if problem:
        raise kinds.wrong(problem)
    plain = json_form(value)
    kept = redact(plain)
    # Redacted secrets are all the same text, so any other secret would fit.
    hidden = sorted(key for key in plain if kept.get(key) != plain[key])
    if hidden:
        raise kinds.wrong(
            f"{show(hidden[0])} names or holds a secret, and none is kept to compare; match on something else"
        )
    return dict(value)


_HINT = kinds.Kind(_check_hint, {"type": "object", "minProperties": 1})
_MINUTES = kinds.Kind(_check_minutes, {"type": "number", "exclusiveMinimum": 0})
EXPECTATION_KEYS = kinds.Table.of(
    (
        kinds.Key("description", kinds.TEXT, "What is expected, for people.", required=True),
        kinds.Key("match_hint", _HINT, "What a signal must hold to be the answer.", nullable=True),
        kinds.Key("expires_minutes", _MINUTES, "After so many minutes the question is closed.", nullable=True),
        kinds.Key(
            "polarity", kinds.one_of(*Polarity), "positive: it happens; negative: it does not happen.", nullable=True
        ),
        kinds.Key("critical", kinds.FLAG, "Without it the entry is a failure, whatever else is met.", nullable=True),
        kinds.Key(
            "check", CHECK, "What finds out: {after, command} or {after, url, status, path, equals}.", nullable=True
        ),
    )
)
_check_record = kinds.record_of(EXPECTATION_KEYS).check


def read_expectations(given: Any, *, entry_id: str, timestamp: datetime) -> tuple[Expectation, ...]:
    """Return expectations, open from this timestamp on, for the mappings that a caller gives.

    Raises:
        ValueError: what is wrong with them and where, all at once.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"expectations: this must be a list of mappings, not {show(given)}; write it in brackets")  # noqa: TRY004 - one kind of refusal

    def read(record: Any) -> Expectation:
        return _make(_check_record(record), entry_id, timestamp)

    try:
        return kinds.check_each(given, read)
    except kinds.WrongValueError as error:
        raise kinds.WrongValueError(kinds.findings_below("expectations", error)) from None


def _make(record: Mapping[str, Any], entry_id: str, timestamp: datetime) -> Expectation:
    polarity = Polarity(record.get("polarity") or Polarity.POSITIVE)
    minutes = record.get("expires_minutes")
    if polarity is Polarity.NEGATIVE and minutes is None:
        raise kinds.wrong(
            "polarity negative needs expires_minutes: only after that time is it certain that nothing happened"
        )
    hint, check = record.get("match_hint"), record.get("check")
    if check is not None and minutes is not None and read_check(check).after_ms >= minutes * _MINUTE_MS:
        raise kinds.wrong(
            f"check is due after {check['after']}, when expires_minutes {show(minutes)} are over; let it be due before"
        )
    return Expectation(
        id=new_id("expectation"),
        entry_id=entry_id,
        description=clean_text("description", record["description"]),
        polarity=polarity,
        critical=bool(record.get("critical")),
        match_hint=None if hint is None else clean_json("match_hint", hint),
        expires_at=None if minutes is None else _expiry(timestamp, minutes),
        check=None if check is None else clean_json("check", check),
        created_at=timestamp,
    )


def _expiry(timestamp: datetime, minutes: float) -> datetime:
    began = to_ms(timestamp)
    if minutes > (_LAST_MS - began) / _MINUTE_MS - 1:
        raise kinds.wrong(f"expires_minutes {show(minutes)} ends after the year 9999; give fewer, or none")
    return from_ms(began + max(1, round(minutes * _MINUTE_MS)))
