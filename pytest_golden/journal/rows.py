"""Entries, expectations, signals and history as the columns of their tables, and back. No SQL: see `store.py`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.journal.hints import rank, write_shape
from pytest_golden.journal.model import (
    Assessment,
    Expectation,
    ExpectationStatus,
    HistoryRecord,
    ImmediateResult,
    JournalEntry,
    Polarity,
    RoutedBy,
    Signal,
    SignalType,
)
from pytest_golden.journal.rules import Counts
from pytest_golden.manifest.units import parse_duration
from pytest_golden.storage.columns import from_ms, storable, to_ms
from pytest_golden.trajectory.vocabulary import freeze, freeze_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_COUNTED = ("open", "met", "unmet", "expired", "critical_lost", "positive", "negative", "correction")
#: The columns of an entry that hold its counts.
COUNT_COLUMNS = tuple(f"{name}_count" for name in _COUNTED)
#: The columns of an entry but its counts, which begin at 0.
ENTRY_COLUMNS = (
    *("id", "job_id", "agent_id", "session_key", "parent_id", "intent", "intent_type", "actions", "immediate_result"),
    *("immediate_notes", "assessment", "assessment_notes", "closed_at", "created_at", "updated_at"),
)
_KEPT_OF_EXPECTATION = (
    *("id", "entry_id", "description", "polarity", "critical", "status", "match_hint", "expires_at", "check"),
    "created_at",
)
#: What `expectation_columns` and `routing_columns` return.
EXPECTATION_COLUMNS = (*_KEPT_OF_EXPECTATION, "check_due_at")
ROUTING_COLUMNS = ("agent_id", "session_key", "hint_anchor", "hint_shape", "hint_rank")
#: The columns of a signal but those that tell how it found its entry.
SIGNAL_COLUMNS = ("id", "entry_id", "source", "signal_type", "summary", "data", "external_id", "created_at")
#: What `read_signal` needs. How a signal was routed is long, and only explanations read it.
READ_SIGNAL_COLUMNS = (*SIGNAL_COLUMNS, "expectation_id", "routed_by")


def to_column(value: Any) -> Any:
    """Return a value as its column takes it; JSON content and None as they are."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return storable(value)
    return to_ms(value) if isinstance(value, datetime) else value


def entry_columns(entry: JournalEntry) -> dict[str, Any]:
    """Return an entry's `ENTRY_COLUMNS`."""
    return {name: to_column(getattr(entry, name)) for name in ENTRY_COLUMNS}


def expectation_columns(expectation: Expectation) -> dict[str, Any]:
    """Return the columns of an open expectation."""
    columns = {name: to_column(getattr(expectation, name)) for name in _KEPT_OF_EXPECTATION}
    due_at = find_due(expectation.check, columns["created_at"])
    return {**columns, "status": ExpectationStatus.OPEN.value, "check_due_at": due_at}


def find_due(check: Mapping[str, Any] | None, created_at: int) -> int | None:
    """Return when a check is due, in milliseconds since the epoch as `created_at` is; None for a check that this version does not know."""
    try:
        return None if check is None else created_at + round(parse_duration(check.get("after")) * 1000)
    except ValueError:
        return None


def routing_columns(
    expectation: Expectation, anchor: int | None, agent_id: str, session_key: str | None
) -> dict[str, Any]:
    """Return the columns by which signals find an expectation; `anchor` is the one of its hint's that it lies under."""
    hint = expectation.match_hint or {}
    return {
        "agent_id": agent_id,
        "session_key": session_key,
        "hint_anchor": anchor,
        "hint_shape": write_shape(hint),
        "hint_rank": rank(len(hint), to_column(expectation.expires_at)),
    }


def signal_columns(signal: Signal) -> dict[str, Any]:
    """Return a signal's `SIGNAL_COLUMNS`."""
    columns = {name: to_column(getattr(signal, name)) for name in SIGNAL_COLUMNS}
    return {**columns, "data": signal.data or None}


def count_columns(counts: Counts) -> dict[str, int]:
    """Return the columns that hold an entry's counts."""
    return {column: getattr(counts, name) for column, name in zip(COUNT_COLUMNS, _COUNTED, strict=True)}


def read_counts(row: Any) -> Counts:
    """Make the counts of an entry's row."""
    return Counts(
        **dict(zip(_COUNTED, (getattr(row, column) for column in COUNT_COLUMNS), strict=True)),
        human_word=None if row.human_word is None else Assessment(row.human_word),
        immediate_result=ImmediateResult(row.immediate_result),
    )


def read_entry(
    row: Any, *, expectations: Iterable[Any] = (), signals: Iterable[Any] = (), history: Iterable[Any] = ()
) -> JournalEntry:
    """Make an entry of its row and the rows that belong to it."""
    return JournalEntry(
        **_read_fields(row, ENTRY_COLUMNS, _ENTRY_READERS),
        expectations=tuple(map(read_expectation, expectations)),
        signals=tuple(map(read_signal, signals)),
        history=tuple(map(_read_history, history)),
    )


def read_expectation(row: Any) -> Expectation:
    """Make an expectation of its row."""
    names = (*_KEPT_OF_EXPECTATION, "resolved_by", "resolved_at")
    return Expectation(**_read_fields(row, names, _EXPECTATION_READERS))


def read_signal(row: Any) -> Signal:
    """Make a signal of its row."""
    fields = _read_fields(row, READ_SIGNAL_COLUMNS, _SIGNAL_READERS)
    return Signal(**{**fields, "data": freeze_mapping("data", row.data)})


def _read_history(row: Any) -> HistoryRecord:
    details = freeze_mapping("details", row.details)
    return HistoryRecord(what=row.what, who=row.who, when=from_ms(row.changed_at), why=row.why, details=details)


def _read_fields(row: Any, names: Iterable[str], readers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return the fields of a row by name; what has a reader and is not NULL is read by it."""
    values = {name: getattr(row, name) for name in names}
    return values | {name: read(values[name]) for name, read in readers.items() if values[name] is not None}


_ENTRY_READERS: Mapping[str, Callable[[Any], Any]] = {
    "actions": lambda actions: tuple(freeze("actions", actions)),
    "immediate_result": ImmediateResult,
    "assessment": Assessment,
    **dict.fromkeys(("closed_at", "created_at", "updated_at"), from_ms),
}
_EXPECTATION_READERS: Mapping[str, Callable[[Any], Any]] = {
    "polarity": Polarity,
    "status": ExpectationStatus,
    "match_hint": lambda hint: freeze_mapping("match_hint", hint),
    "check": lambda check: freeze_mapping("check", check),
    **dict.fromkeys(("expires_at", "created_at", "resolved_at"), from_ms),
}
_SIGNAL_READERS: Mapping[str, Callable[[Any], Any]] = {
    "signal_type": SignalType,
    "routed_by": RoutedBy,
    "created_at": from_ms,
}
