"""The words of a trajectory and the checks on what a caller gives. No values are built here; see `step.py` and `model.py`."""

from __future__ import annotations

import math
import reprlib
from datetime import UTC, datetime
from enum import Enum, StrEnum
from numbers import Real
from typing import Any, TypeVar

SCHEMA_VERSION = 1


class StepType(StrEnum):
    """What kind of thing a step is."""

    REASONING = "reasoning"
    ACTION = "action"
    OBSERVATION = "observation"
    TOOL_CALL = "tool_call"
    STATE_CHANGE = "state_change"


class Importance(StrEnum):
    """How much a step matters, from least to most. As text they sort by letter; compare `rank` instead."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Give 0 for low up to 3 for critical."""
        return _RANKS[self]


_RANKS = {importance: rank for rank, importance in enumerate(Importance)}


class TrajectoryOutcome(StrEnum):
    """How what a trajectory tells of has ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"
    PARTIAL = "partial"


class Missing(Enum):
    """The default of arguments for which None is a value of its own or an error worth a better sentence."""

    MISSING = "missing"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80

Word = TypeVar("Word", bound=StrEnum)


def check_word(field: str, word: Any, words: type[Word]) -> Word:
    """Give the enumeration's member for a plain word.

    Raises:
        ValueError: the word is missing or not one of them; the message names the field and what is allowed.
    """
    if isinstance(word, words):
        return word
    try:
        return words(word)
    except ValueError:
        allowed = ", ".join(words)
        told = "is missing" if word is None or word is Missing.MISSING else f"{_SHORT.repr(word)} is unknown"
        raise ValueError(f"{field} {told}: give one of {allowed}") from None


def check_text(field: str, text: object) -> str:
    """Give the text back; refuse anything else and what is blank with a `ValueError` that names the field."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{field} must be text that is not blank, not {_SHORT.repr(text)}")
    return text


def check_time(field: str, moment: object) -> datetime:
    """Give the moment in UTC; refuse anything but an aware datetime with a `ValueError` that names the field."""
    if type(moment) is datetime and moment.tzinfo is UTC:
        return moment
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise ValueError(f"{field} must be an aware datetime (one with a time zone), not {_SHORT.repr(moment)}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{field} {moment!r} lies outside the years 1 to 9999 in UTC") from None


def check_duration(field: str, duration_ms: object) -> float | None:
    """Give milliseconds as a float, None for unknown; refuse what is negative, not finite or no number."""
    if duration_ms is None:
        return None
    if not isinstance(duration_ms, bool) and isinstance(duration_ms, Real):
        try:
            milliseconds = float(duration_ms)
        except OverflowError:
            milliseconds = math.inf
        if math.isfinite(milliseconds) and milliseconds >= 0:
            return milliseconds
    raise ValueError(f"{field} must be a finite number of milliseconds, 0 or more, or None, not {duration_ms!r}")


def parse_time(field: str, text: Any) -> datetime:
    """Read ISO-8601 text with an offset or `Z`, as `to_dict` writes it; `ValueError` names the field."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{field} must be ISO-8601 text such as 2026-01-31T12:00:00Z, not {text!r}") from None
    return check_time(field, moment)
