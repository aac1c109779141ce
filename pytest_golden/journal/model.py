"""The frozen values of the journal: entries, expectations, signals, history. `rules.py` says what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pytest_golden.values.json_form import FrozenDict
from pytest_golden.values.shape import Shape


class ImmediateResult(StrEnum):
    """How an action ended, as seen at once."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


class Assessment(StrEnum):
    """The state of an entry, by all signals received about it."""

    OPEN = "open"
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    EXPIRED = "expired"


class ExpectationStatus(StrEnum):
    """Whether an expectation is open, and how it was answered."""

    OPEN = "open"
    MET = "met"
    UNMET = "unmet"
    EXPIRED = "expired"


class Polarity(StrEnum):
    """Whether something is expected to happen, or not to happen until the expiry."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class SignalType(StrEnum):
    """The meaning of a signal."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"
    CORRECTION = "correction"


class RoutedBy(StrEnum):
    """The rule by which a signal found its entry."""

    MATCH_HINT = "match_hint"
    SESSION_KEY = "session_key"
    TIME_WINDOW = "time_window"
    ENTRY = "entry"
    ORPHAN = "orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(Shape):
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
    match_hint: Mapping[str, Any] | None = field(default=None, hash=False)
    expires_at: datetime | None = None
    check: Mapping[str, Any] | None = field(default=None, hash=False)
    resolved_by: str | None = None
    created_at: datetime
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal(Shape):
    """A piece of news, and the entry and expectation that it found; without `expectation_id` it concerns the whole entry."""

    id: str
    entry_id: str | None = None
    expectation_id: str | None = None
    source: str
    signal_type: SignalType
    summary: str
    data: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)
    external_id: str | None = None
    routed_by: RoutedBy = RoutedBy.ORPHAN
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord(Shape):
    """One change of an entry: `what` is `outcome` (reported by the agent) or `assessment`."""

    what: str
    who: str
    when: datetime
    why: str | None = None
    details: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry(Shape):
    """The intent, the actions, the immediate result and the assessment of one piece of work.

    `expectations`, `signals` and `history` are in the order of recording, and filled only where a function says so.
    """

    id: str
    job_id: str | None = None
    agent_id: str
    session_key: str | None = None
    intent: str
    intent_type: str | None = None
    actions: tuple[Any, ...] = field(default=(), hash=False)
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
