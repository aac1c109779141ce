"""Entries, expectations, signals and history as the columns of their tables, and back. No SQL: see `store.py`."""

from __future__ import annotations

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
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from pytest_golden.values.frozen import FrozenDict

_COUNTED = ("open", "met", "unmet", "expired", "critical_lost", "positive", "negative", "correction")
#: The columns of an entry that hold its counts.
COUNT_COLUMNS = tuple(f"{name}_count" for name in _COUNTED)

#: What `entry_columns` gives.
ENTRY_COLUMNS = (
    *("id", "job_id", "agent_id", "session_key", "parent_id", "intent", "intent_type", "actions", "immediate_result"),
    *("immediate_notes", "assessment", "assessment_notes", "closed_at", "created_at", "updated_at"),
)
#: What `expectation_columns` and `routing_columns` give.
EXPECTATION_COLUMNS = (
    *("id", "entry_id", "description", "polarity", "critical", "status", "match_hint", "expires_at", "check"),
    *("check_due_at", "created_at"),
)
ROUTING_COLUMNS = ("agent_id", "session_key", "hint_anchor", "hint_shape", "hint_rank")
#: What `signal_columns` gives.
SIGNAL_COLUMNS = ("id", "entry_id", "source", "signal_type", "summary", "data", "external_id", "created_at")
#: What `read_signal` needs. How a signal was routed is long, and read only by whoever asks for it.
READ_SIGNAL_COLUMNS = (*SIGNAL_COLUMNS, "expectation_id", "routed_by")


def entry_columns(entry: JournalEntry) -> dict[str, Any]:
    """Return an entry's columns but its counts, which begin at 0."""
    return {
        "id": entry.id,
        "job_id": entry.job_id,
        "agent_id": entry.agent_id,
        "session_key": entry.session_key,
        "parent_id": entry.parent_id,
        "intent": storable(entry.intent),
        "intent_type": entry.intent_type,
        "actions": entry.actions,
        "immediate_result": entry.immediate_result.value,
        "immediate_notes": storable_or_none(entry.immediate_notes),
        "assessment": entry.assessment.value,
        "assessment_notes": storable_or_none(entry.assessment_notes),
        "closed_at": _ms_or_none(entry.closed_at),
        "created_at": to_ms(entry.created_at),
        "updated_at": to_ms(entry.updated_at),
    }


def read_entry(
    row: Any, *, expectations: Iterable[Any] = (), signals: Iterable[Any] = (), history: Iterable[Any] = ()
) -> JournalEntry:
    """Make an entry of its row and the rows that belong to it."""
    return JournalEntry(
        id=row.id,
        job_id=row.job_id,
        agent_id=row.agent_id,
        session_key=row.session_key,
        intent=row.intent,
        intent_type=row.intent_type,
        actions=tuple(freeze("actions", row.actions)),
        immediate_result=ImmediateResult(row.immediate_result),
        immediate_notes=row.immediate_notes,
        assessment=Assessment(row.assessment),
        assessment_notes=row.assessment_notes,
        closed_at=_moment_or_none(row.closed_at),
        created_at=from_ms(row.created_at),
        updated_at=from_ms(row.updated_at),
        parent_id=row.parent_id,
        expectations=tuple(map(read_expectation, expectations)),
        signals=tuple(map(read_signal, signals)),
        history=tuple(map(_read_history, history)),
    )


def expectation_columns(expectation: Expectation) -> dict[str, Any]:
    """Return the columns of an open expectation."""
    return {
        "id": expectation.id,
        "entry_id": expectation.entry_id,
        "description": storable(expectation.description),
        "polarity": expectation.polarity.value,
        "critical": expectation.critical,
        "status": ExpectationStatus.OPEN.value,
        "match_hint": expectation.match_hint,
        "expires_at": _ms_or_none(expectation.expires_at),
        "check": expectation.check,
        "check_due_at": find_due(expectation.check, to_ms(expectation.created_at)),
        "created_at": to_ms(expectation.created_at),
    }


def find_due(check: Mapping[str, Any] | None, created_at: int) -> int | None:
    """Return when a check is due, in milliseconds since the epoch as `created_at` is; None for what is no check here."""
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
        "hint_rank": rank(len(hint), _ms_or_none(expectation.expires_at)),
    }


def signal_columns(signal: Signal) -> dict[str, Any]:
    """Return a signal's columns but those that tell how it found its entry."""
    return {
        "id": signal.id,
        "entry_id": signal.entry_id,
        "source": signal.source,
        "signal_type": signal.signal_type.value,
        "summary": storable(signal.summary),
        "data": signal.data or None,
        "external_id": signal.external_id,
        "created_at": to_ms(signal.created_at),
    }


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


def storable_or_none(text: str | None) -> str | None:
    """Return the text as a database takes it, None as it is."""
    return None if text is None else storable(text)


def read_expectation(row: Any) -> Expectation:
    """Make an expectation of its row."""
    return Expectation(
        id=row.id,
        entry_id=row.entry_id,
        description=row.description,
        polarity=Polarity(row.polarity),
        critical=row.critical,
        status=ExpectationStatus(row.status),
        match_hint=_frozen_or_none(row.match_hint),
        expires_at=_moment_or_none(row.expires_at),
        check=_frozen_or_none(row.check),
        resolved_by=row.resolved_by,
        created_at=from_ms(row.created_at),
        resolved_at=_moment_or_none(row.resolved_at),
    )


def read_signal(row: Any) -> Signal:
    """Make a signal of its row."""
    return Signal(
        id=row.id,
        entry_id=row.entry_id,
        expectation_id=row.expectation_id,
        source=row.source,
        signal_type=SignalType(row.signal_type),
        summary=row.summary,
        data=freeze_mapping("data", row.data),
        external_id=row.external_id,
        routed_by=RoutedBy(row.routed_by),
        created_at=from_ms(row.created_at),
    )


def _read_history(row: Any) -> HistoryRecord:
    return HistoryRecord(
        what=row.what,
        who=row.who,
        when=from_ms(row.changed_at),
        why=row.why,
        details=freeze_mapping("details", row.details),
    )


def _frozen_or_none(value: Mapping[str, Any] | None) -> FrozenDict | None:
    return None if value is None else freeze_mapping("value", value)


def _ms_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def _moment_or_none(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_ms(milliseconds)
