"""Check what callers give the journal, and make it storable: without secrets, frozen, in forms that databases take.

Expectations are given as mappings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_golden.clock import new_id
from pytest_golden.journal.checks.model import CHECK, read_check
from pytest_golden.journal.hints import find_problem
from pytest_golden.journal.model import Expectation, Polarity

from pytest_golden.manifest.kinds import (
    FLAG,
    TEXT,
    Key,
    Kind,
    Table,
    WrongValueError,
    check_each,
    findings_below,
    one_of,
    record_of,
    wrong,
)
from pytest_golden.manifest.units import show
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import from_ms, storable, storable_json, to_ms
from pytest_golden.trajectory.vocabulary import freeze
from pytest_golden.values.checking import check_mapping, check_text, list_items
from pytest_golden.values.frozen import FrozenDict
from pytest_golden.values.json_form import json_form

# Redacting and indexing more would block all writers.
_MOST_CHARACTERS = 1 << 20
# PostgreSQL's indexes take 2,704 bytes a row: two names and the keys of a hint, or a source and its external id.
_LONGEST_NAME_BYTES = 800
_LONGEST_EXTERNAL_ID_BYTES = 1500
# SQLite's own integers end at 2^63 - 1.
_MOST_ASKED = 1_000_000


def clean_text(field: str, text: object) -> str:
    """Return a text as it is kept.

    Raises:
        ValueError: it is blank, no text, too long, or holds a NUL character; the message names the field.
    """
    checked = check_text(field, text)
    _check_content(field, checked)
    return storable(redact(checked))


def clean_name(field: str, text: object, *, most_bytes: int = _LONGEST_NAME_BYTES) -> str:
    """Return a name unchanged: it is looked up later, and redacting a part of it could make two names equal.

    Raises:
        ValueError: it is blank, no text, too long, or holds a NUL character or half a character; the message names the field.
    """
    checked = check_text(field, text)
    _check_content(field, checked)
    if storable(checked) != checked:
        raise ValueError(f"{field} {show(checked)} holds half a character; remove it")
    size = len(checked.encode())
    if size > most_bytes:
        raise ValueError(f"{field} has {size:,} bytes, and at most {most_bytes:,} are looked up; give a shorter one")
    return checked


def clean_optional(field: str, name: str | None) -> str | None:
    """Return a name as `clean_name` does, None as it is."""
    return None if name is None else clean_name(field, name)


def clean_external_id(field: str, name: str | None) -> str | None:
    """Return a sender's id of its news as `clean_optional` does; it may be longer."""
    return None if name is None else clean_name(field, name, most_bytes=_LONGEST_EXTERNAL_ID_BYTES)


def clean_notes(field: str, text: object) -> str | None:
    """Return notes as they are kept, None for blank ones; raise as `clean_text` does."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    return clean_text(field, text)


def clean_json(field: str, value: Any) -> Any:
    """Return any value as it is kept: JSON content, deeply frozen.

    Raises:
        ValueError: a text in it holds a NUL character, or all of them are too long; the message names the field.
    """
    plain = json_form(value)
    if not _check_content(field, plain):
        # Hints and news are compared with stored ones, so both must hold the same escapes.
        plain = json.loads(storable_json(json.dumps(plain)))
    return freeze(field, redact(plain))


def clean_data(field: str, value: Any) -> Any:
    """Return a mapping as it is kept, empty for None.

    Raises:
        ValueError: it is something else, or `clean_json` refuses it; the message names the field.
    """
    if value is None:
        return FrozenDict()
    return clean_json(field, check_mapping(field, value))


def clean_actions(actions: Iterable[Any]) -> tuple[Any, ...]:
    """Return actions as they are kept.

    Raises:
        ValueError: they are no list, or `clean_json` refuses them.
    """
    return tuple(clean_json("actions", list_items("actions", actions)))


def check_limit(limit: int) -> int:
    """Return a limit as databases take it.

    Raises:
        ValueError: it is no whole number, or below 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a whole number from 1 up, not {show(limit)}")
    return min(limit, _MOST_ASKED)


def _check_content(field: str, value: Any) -> bool:
    """Raise an error for content that cannot be stored; return whether all texts can be stored unchanged."""
    count, is_storable = 0, True
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if "\0" in one:
                raise ValueError(f"{field} holds a NUL character; remove it")
            count += len(one)
            is_storable = is_storable and storable(one) == one
        elif isinstance(one, dict):
            waiting += (*one.keys(), *one.values())
        elif isinstance(one, list):
            waiting += one
    if count > _MOST_CHARACTERS:
        raise ValueError(
            f"{field} has {count:,} characters, and more than {_MOST_CHARACTERS:,} are not kept; say where the rest is"
        )
    return is_storable


_MINUTE_MS = 60_000
_LAST_MS = to_ms(datetime.max.replace(tzinfo=UTC))


def _check_minutes(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise wrong(f"{show(value)} is not a number of minutes above 0")
    return value


def _check_hint(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise wrong(f"a mapping with a key at least is wanted, not {show(value)}")
    problem = find_problem({TEXT.check(key): item for key, item in value.items()})
    if problem:
        raise wrong(problem)
    plain = json_form(value)
    kept = redact(plain)
    # Redacted secrets are all the same text, so any other secret would fit.
    hidden = sorted(key for key in plain if kept.get(key) != plain[key])
    if hidden:
        raise wrong(f"{show(hidden[0])} names or holds a secret, and none is kept to compare; match on something else")
    return dict(value)


EXPECTATION_KEYS = Table.of(
    (
        Key("description", TEXT, "What is expected, for people.", required=True),
        Key("match_hint", Kind(_check_hint), "What a signal must hold to be the answer.", nullable=True),
        Key("expires_minutes", Kind(_check_minutes), "After so many minutes the question is closed.", nullable=True),
        Key("polarity", one_of(*Polarity), "positive: it happens; negative: it does not happen.", nullable=True),
        Key("critical", FLAG, "Without it the entry is a failure, whatever else is met.", nullable=True),
        Key("check", CHECK, "What finds out: {after, command} or {after, url, status, path, equals}.", nullable=True),
    )
)
_check_record = record_of(EXPECTATION_KEYS).check


def read_expectations(given: Any, *, entry_id: str, timestamp: datetime) -> tuple[Expectation, ...]:
    """Return expectations, open from this timestamp on, for the mappings that a caller gives.

    Raises:
        ValueError: what is wrong with them and where, all at once.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"expectations: a list of mappings is wanted, not {show(given)}; write it in brackets")  # noqa: TRY004 - one kind of refusal

    def read(record: Any) -> Expectation:
        return _make(_check_record(record), entry_id, timestamp)

    try:
        return check_each(given, read)
    except WrongValueError as error:
        raise WrongValueError(findings_below("expectations", error)) from None


def _make(record: Mapping[str, Any], entry_id: str, timestamp: datetime) -> Expectation:
    polarity = Polarity(record.get("polarity") or Polarity.POSITIVE)
    minutes = record.get("expires_minutes")
    if polarity is Polarity.NEGATIVE and minutes is None:
        raise wrong(
            "polarity negative wants expires_minutes: that nothing happened can only be said when a time is over"
        )
    hint, check = record.get("match_hint"), record.get("check")
    if check is not None and minutes is not None and read_check(check).after_ms >= minutes * _MINUTE_MS:
        raise wrong(
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
        raise wrong(f"expires_minutes {show(minutes)} ends after the year 9999; give fewer, or none")
    return from_ms(began + max(1, round(minutes * _MINUTE_MS)))
