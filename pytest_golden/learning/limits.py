"""What a kept value may hold: the limits, and the checks that refuse what is beyond them. Pure; nothing is cut here."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Mapping
from numbers import Real
from types import NoneType
from typing import Any

from pytest_golden.trajectory.freezing import freeze

SCHEMA_VERSION = 1
MOST_TASK_CHARACTERS = 10_000
MOST_STEPS = 1_000
MOST_BYTES = 1024 * 1024
_SHORT = reprlib.Repr()
_ATOMS = frozenset({str, bool, int, float, NoneType})
# Made once: `json.dumps` with arguments makes one for each call.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def write_json(field: str, value: Any) -> str:
    """Give the value as JSON in ASCII.

    Raises:
        ValueError: it is no JSON content (NaN is none), or more than 1 MiB of it; the message names the field.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{field} cannot be written as JSON: {error}") from None
    if len(text) > MOST_BYTES:
        raise ValueError(f"{field} is {len(text):,} bytes as JSON; at most {MOST_BYTES:,} are kept: give less of it")
    return text


def freeze_json(field: str, value: Any) -> Any:
    """Give a frozen copy of JSON content, tuples as lists; refuses as `write_json` does."""
    return freeze(field, json.loads(write_json(field, value)))


def freeze_json_mapping(field: str, value: Any) -> Mapping[str, Any]:
    """Give a frozen copy of a mapping of JSON content; refuses anything else with a `ValueError` that names the field."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{field} must be a mapping (a dict), not {value!r:.100}")  # noqa: TRY004 - one kind of refusal
    frozen: Mapping[str, Any] = freeze_json(field, dict(value))
    return frozen


def thaw(value: Any) -> Any:
    """Give frozen JSON content as plain dicts and lists, which the caller may write."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, (list, tuple)) else value


def check_texts(field: str, texts: Any, most: int | None = None) -> tuple[str, ...]:
    """Give a tuple of texts; refuses a single text, other items and more than `most` of them."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise ValueError(f"{field} must be a sequence of texts, not {texts!r:.100}")  # noqa: TRY004 - one kind of refusal
    items = tuple(texts)
    foreign = [item for item in items if not isinstance(item, str)]
    if foreign:
        raise ValueError(f"{field} must hold texts only, not {foreign[0]!r:.100}")
    if most is not None and len(items) > most:
        raise ValueError(f"{field} has {len(items):,} items; at most {most:,} are kept")
    return items


def check_seconds(field: str, seconds: object) -> float | None:
    """Give seconds as a float, None for unknown; refuses what is negative, not finite or no number."""
    amount = _find_amount(seconds)
    if amount is None and seconds is not None:
        told = "must be a finite number of seconds, 0 or more, or None when unknown"
        raise ValueError(f"{field} {told}, not {_SHORT.repr(seconds)}")
    return amount


def check_timeout(seconds: object) -> float:
    """Give the seconds that a call may take; refuses what is no finite number above 0."""
    amount = _find_amount(seconds)
    if not amount:
        raise ValueError(f"timeout_seconds must be a number above 0, not {_SHORT.repr(seconds)}")
    return amount


def check_limit(limit: object) -> None:
    """Refuse a number of answers that is no whole number, 1 or more."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a whole number, 1 or more, not {_SHORT.repr(limit)}")


def check_confidence(confidence: object) -> float:
    """Give a confidence as a float; refuses what is no number from 0 to 1."""
    amount = _find_amount(confidence)
    if amount is None or amount > 1:
        raise ValueError(f"confidence must be a number from 0 to 1, not {_SHORT.repr(confidence)}")
    return amount


def _find_amount(number: object) -> float | None:
    if isinstance(number, bool) or not isinstance(number, Real):
        return None
    try:
        amount = float(number)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def check_known_version(mapping: Mapping[str, Any]) -> None:
    """Refuse the dict form of a newer program, and what is no mapping."""
    if not isinstance(mapping, Mapping):
        raise ValueError(f"a mapping (a dict) is read, not {mapping!r:.100}")  # noqa: TRY004 - one kind of refusal
    version = mapping.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version > SCHEMA_VERSION:
        message = (
            f"schema_version {version!r} is not known here: at most {SCHEMA_VERSION}; upgrade pytest-golden-projects"
        )
        raise ValueError(message)
