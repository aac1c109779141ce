"""What the journal holds, as frozen values: entries, expectations, signals, history. What they mean together: `rules.py`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.values.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

# Known by their exact class: an entry may have thousands of values, and most are of these.
_ALWAYS_PLAIN = frozenset({str, bool, int, float, NoneType})


class ImmediateResult(StrEnum):
    """How an action ended, as seen at once."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


class Assessment(StrEnum):
    """Where an entry stands, by all signals received about it."""

    OPEN = "open"
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    EXPIRED = "expired"


class ExpectationStatus(StrEnum):
    """Whether an expectation is still a question, and how it was answered."""

    OPEN = "open"
    MET = "met"
    UNMET = "unmet"
    EXPIRED = "expired"


class Polarity(StrEnum):
    """Whether something is expected to happen, or not to happen until the expiry."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class SignalType(StrEnum):
    """What a piece of news says."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"
    CORRECTION = "correction"


class RoutedBy(StrEnum):
    """By which rule a signal found its entry."""

    MATCH_HINT = "match_hint"
    SESSION_KEY = "session_key"
    TIME_WINDOW = "time_window"
    ENTRY = "entry"
    ORPHAN = "orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An open question about an entry, or one that was answered; `resolved_by` is a signal's id or who closed it.

    Every key of `match_hint` must be in a signal that fits: `source` is the signal's own, others are in its data. Without
    `expires_at` it stays open until news comes. `check` finds the answer itself: `{after, command}` or `{after, url, ...}`.
    """

    id: str
    entry_id: str
    description: str
    polarity: Polarity = Polarity.POSITIVE
    critical: bool = False
    status: ExpectationStatus = ExpectationStatus.OPEN
    match_hint: Mapping[str, Any] | None = None
    expires_at: datetime | None = None
    check: Mapping[str, Any] | None = None
    resolved_by: str | None = None
    created_at: datetime
    resolved_at: datetime | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return _to_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """News, and the entry and expectation that it found; `expectation_id` is None where it concerns the entry as a whole."""

    id: str
    entry_id: str | None = None
    expectation_id: str | None = None
    source: str
    signal_type: SignalType
    summary: str
    data: Mapping[str, Any] = field(default_factory=FrozenDict)
    external_id: str | None = None
    routed_by: RoutedBy = RoutedBy.ORPHAN
    created_at: datetime

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return _to_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """One change of an entry: `what` is `outcome` (said by who did it) or `assessment`."""

    what: str
    who: str
    when: datetime
    why: str | None = None
    details: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __hash__(self) -> int:
        return hash((self.what, self.who, self.when))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return _to_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What was intended, what was done, how it ended at once, and where it stands.

    `expectations`, `signals` and `history` are in the order of recording, and filled only where a function says so.
    """

    id: str
    job_id: str | None = None
    agent_id: str
    session_key: str | None = None
    intent: str
    intent_type: str | None = None
    actions: tuple[Any, ...] = ()
    immediate_result: ImmediateResult = ImmediateResult.UNKNOWN
    immediate_notes: str | None = None
    assessment: Assessment = Assessment.OPEN
    assessment_notes: str | None = None
    closed_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    parent_id: str | None = None
    expectations: tuple[Expectation, ...] = ()
    signals: tuple[Signal, ...] = ()
    history: tuple[HistoryRecord, ...] = ()

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return _to_dict(self)


def _to_dict(value: Expectation | Signal | HistoryRecord | JournalEntry) -> dict[str, Any]:
    items = [(name, getattr(value, name)) for name in _FIELDS[type(value)]]
    return {name: item if type(item) in _ALWAYS_PLAIN else _plain(item) for name, item in items}


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, datetime):
        return iso_utc(value)
    if isinstance(value, dict):
        return {key: item if type(item) in _ALWAYS_PLAIN else _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _to_dict(value) if isinstance(value, Expectation | Signal | HistoryRecord) else value


_FIELDS: Mapping[type[Any], tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind)) for kind in (Expectation, Signal, HistoryRecord, JournalEntry)
}
