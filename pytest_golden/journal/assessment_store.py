"""Entries, expectations and signals as rows and back; the assessment of an entry, and expectations whose time is over.

Each function works on an open connection, inside the caller's transaction. A change is written with its record in the history.
"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Integer, and_, bindparam, insert, literal_column, select, update

from pytest_golden.clock import new_id
from pytest_golden.errors import JournalError
from pytest_golden.journal import model
from pytest_golden.journal.rules import (
    DEFAULT_RULES,
    SYSTEM,
    Counts,
    Rules,
    assess,
    describe_assessment,
    lapse,
    rules_of,
)
from pytest_golden.manifest.units import parse_duration
from pytest_golden.storage.columns import from_ms, storable, to_ms
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.storage.statements import Prepared, Question, ask
from pytest_golden.trajectory.vocabulary import freeze, freeze_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "actions": lambda actions: tuple(freeze("actions", actions)),
    "immediate_result": model.ImmediateResult,
    "assessment": model.Assessment,
    "polarity": model.Polarity,
    "status": model.ExpectationStatus,
    "signal_type": model.SignalType,
    "routed_by": model.RoutedBy,
    **{name: partial(freeze_mapping, name) for name in ("match_hint", "check")},
    **dict.fromkeys(("closed_at", "created_at", "updated_at", "expires_at", "resolved_at"), from_ms),
}
#: The columns that hold the fields of an entry, an expectation and a signal.
ENTRY_COLUMNS = tuple(one.name for one in fields(model.JournalEntry) if one.name in entries.c)
EXPECTATION_COLUMNS = tuple(one.name for one in fields(model.Expectation))
SIGNAL_COLUMNS = tuple(one.name for one in fields(model.Signal))
_COUNTED = tuple(one.name for one in fields(Counts) if f"{one.name}_count" in entries.c)
#: The columns of an entry that hold its counts.
COUNT_COLUMNS = tuple(f"{name}_count" for name in _COUNTED)
_INSERT_HISTORY = Prepared(insert(entry_history), "entry_id", "changed_at", "what", "who", "why", "details")
UPDATE_ENTRY = update(entries).where(entries.c.number == bindparam("the_entry"))
_COUNT_ENTRY = Prepared(UPDATE_ENTRY, *COUNT_COLUMNS, "updated_at")
_ASSESSED = (*COUNT_COLUMNS, "assessment", "assessment_notes", "updated_at")
_ASSESS_ENTRY = Prepared(UPDATE_ENTRY, *_ASSESSED)
_OVERRIDE_ENTRY = Prepared(UPDATE_ENTRY, "human_word", "assessment_notes")
_CLOSE_ENTRY = Prepared(UPDATE_ENTRY, *_ASSESSED, "closed_at")
# The columns that an assessment needs, and one expectation of the entry, if it is given.
_STANDING = Prepared(
    select(
        *(entries.c[name] for name in ("number", "id", "agent_id", "session_key", "immediate_result", "assessment")),
        *(entries.c[name] for name in ("closed_at", "updated_at", "human_word", *COUNT_COLUMNS)),
        *(expectations.c[name] for name in ("status", "polarity", "critical", "expires_at", "description")),
        expectations.c.number.label("expectation_number"),
        expectations.c.created_at.label("expectation_created_at"),
    )
    .outerjoin_from(
        entries,
        expectations,
        and_(expectations.c.entry_id == entries.c.id, expectations.c.id == bindparam("the_expectation")),
    )
    .where(entries.c.id == bindparam("the_entry"))
)
#: Where the record of an assessment in the history has its notes, if they are not its `why`.
NOTES = "notes"
MOST_OF_CAUSE = 1_000
#: Resolves expectations that expired without an answer.
SWEEP = "sweep"
_EXPIRED = model.ExpectationStatus.EXPIRED
# The size of a batch, so that others may write in between.
_MOST_AT_ONCE = 500
_IS_OPEN = expectations.c.status == literal_column("'open'")
# Runs for each signal. It has no timestamp parameter, since a server would plan it again for each value.
_SOONEST = Prepared(
    select(expectations.c.expires_at)
    .where(_IS_OPEN, expectations.c.expires_at.is_not(None))
    .order_by(expectations.c.expires_at)
    .limit(1)
)
_OPEN = select(
    *(
        expectations.c[name]
        for name in ("number", "entry_id", "polarity", "critical", "created_at", "description", "id")
    )
).where(_IS_OPEN)
_DUE = Prepared(
    _OPEN.where(expectations.c.expires_at <= bindparam("timestamp", type_=BigInteger()))
    .order_by(expectations.c.expires_at)
    .limit(_MOST_AT_ONCE)
)
_UNFINISHED = Prepared(
    select(entries.c.id, entries.c.agent_id, entries.c.created_at, entries.c.number)
    .where(
        entries.c.closed_at.is_(None),
        entries.c.immediate_result == literal_column(f"'{model.ImmediateResult.UNKNOWN}'"),
        entries.c.open_count == 0,
        entries.c.created_at <= bindparam("before", type_=BigInteger()),
        entries.c.number > bindparam("after", type_=BigInteger()),
    )
    .order_by(entries.c.number)
    .limit(_MOST_AT_ONCE)
)
_RESOLVE = Prepared(
    update(expectations).where(expectations.c.number == bindparam("the_expectation", type_=Integer())),
    *("status", "resolved_by", "resolved_at"),
)
_TELL = Prepared(
    insert(signals),
    *("id", "entry_id", "expectation_id", "source", "signal_type", "summary", "external_id", "routed_by"),
    *("agent_id", "is_late", "created_at"),
)


class Change(NamedTuple):
    """A change of an entry: who makes it, when (milliseconds since the epoch), why, and further details for the history.

    `cause` says why in the notes of an assessment, where that is more than `why`.
    """

    who: str
    timestamp: int
    why: str | None = None
    details: Mapping[str, Any] | None = None
    cause: str | None = None


def to_column(value: Any) -> Any:
    """Return a value as its column takes it; JSON content and None as they are."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return storable(value)
    return to_ms(value) if isinstance(value, datetime) else value


def write_columns(value: model.JournalEntry | model.Expectation | model.Signal, names: Iterable[str]) -> dict[str, Any]:
    """Return the columns of a value."""
    return {name: to_column(getattr(value, name)) for name in names}


def find_due(check: Mapping[str, Any] | None, created_at: int) -> int | None:
    """Return when a check is due, in milliseconds since the epoch as `created_at` is; None for a check that this version does not know."""
    try:
        return None if check is None else created_at + round(parse_duration(check.get("after")) * 1000)
    except ValueError:
        return None


def count_columns(counts: Counts) -> dict[str, int]:
    """Return the columns that hold an entry's counts."""
    return {column: getattr(counts, name) for column, name in zip(COUNT_COLUMNS, _COUNTED, strict=True)}


def read_counts(row: Any) -> Counts:
    """Make the counts of an entry's row."""
    return Counts(
        **dict(zip(_COUNTED, (getattr(row, column) for column in COUNT_COLUMNS), strict=True)),
        human_word=None if row.human_word is None else model.Assessment(row.human_word),
        immediate_result=model.ImmediateResult(row.immediate_result),
    )


def read_entry(
    row: Any, *, expectations: Iterable[Any] = (), signals: Iterable[Any] = (), history: Iterable[Any] = ()
) -> model.JournalEntry:
    """Make an entry of its row and the rows that belong to it."""
    return model.JournalEntry(
        **_read_fields(row, ENTRY_COLUMNS),
        expectations=tuple(map(read_expectation, expectations)),
        signals=tuple(map(read_signal, signals)),
        history=tuple(map(_read_history, history)),
    )


def read_expectation(row: Any) -> model.Expectation:
    """Make an expectation of its row."""
    return model.Expectation(**_read_fields(row, EXPECTATION_COLUMNS))


def read_signal(row: Any) -> model.Signal:
    """Make a signal of its row."""
    return model.Signal(**_read_fields(row, SIGNAL_COLUMNS) | {"data": freeze_mapping("data", row.data)})


def _read_history(row: Any) -> model.HistoryRecord:
    details = freeze_mapping("details", row.details)
    return model.HistoryRecord(what=row.what, who=row.who, when=from_ms(row.changed_at), why=row.why, details=details)


def _read_fields(row: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a row by name; what has a reader and is not NULL is read by it."""
    values = ((name, getattr(row, name)) for name in names)
    return {name: value if value is None or name not in _READERS else _READERS[name](value) for name, value in values}


def ask_for_standing(entry_id: str | None, expectation_id: str | None = None) -> Question:
    """Ask for the counts and the state of an entry, and for one of its expectations."""
    return Question(_STANDING, {"the_entry": entry_id, "the_expectation": expectation_id})


def get_standing(connection: Connection, entry_id: str | None, expectation_id: str | None = None) -> Any:
    """Return the counts and the state of an entry, and one of its expectations.

    Raises:
        JournalError: there is no such entry, or no such expectation of it.
    """
    (rows,) = ask(connection, ask_for_standing(entry_id, expectation_id))
    return read_standing(rows, entry_id, expectation_id)


def read_standing(rows: Iterator[Any], entry_id: str | None, expectation_id: str | None = None) -> Any:
    """Return what `get_standing` returns, from the answer to `ask_for_standing`."""
    row = _STANDING.name_first(list(rows))
    if row is None:
        raise describe_unknown(entry_id)
    if expectation_id is not None and row.expectation_number is None:
        raise JournalError(f"entry {entry_id} has no expectation {expectation_id!r}")
    return row


def write_standing(
    connection: Connection,
    standing: Any,
    counts: Counts,
    change: Change,
    rules: Rules,
    at_least: model.Assessment = model.Assessment.OPEN,
) -> model.Assessment:
    """Assess an entry by its new counts and give the assessment; a change of it goes into its notes and the history.

    `at_least` is the assessment if nothing else follows.
    """
    before = model.Assessment(standing.assessment)
    after = assess(counts, rules, before=before)
    if after is model.Assessment.OPEN:
        after = at_least
    # A clock that went back must not date a change before the state that it changes.
    timestamp = max(change.timestamp, standing.updated_at)
    has_left_open = standing.closed_at is None and after is not model.Assessment.OPEN
    written = {"the_entry": standing.number, **count_columns(counts), "updated_at": timestamp}
    notes = change.why
    if counts.human_word is None:
        notes = describe_assessment(after, counts, (change.cause or change.why or "")[:MOST_OF_CAUSE] or None)
    assessed = {**written, "assessment": after.value, "assessment_notes": to_column(notes)}
    # Unchanged columns are not written: some are in an index, or make a trigger count.
    if has_left_open:
        _CLOSE_ENTRY.leave(connection, {**assessed, "closed_at": timestamp})
    elif after is not before:
        _ASSESS_ENTRY.leave(connection, assessed)
    else:
        _COUNT_ENTRY.leave(connection, written)
    if after is not before:
        told = {} if notes == change.why else {NOTES: to_column(notes)}
        details = {"from": before.value, "to": after.value, **(change.details or {}), **told}
        add_history(connection, standing.id, "assessment", change._replace(timestamp=timestamp, details=details))
    return after


def override(connection: Connection, entry_id: str, word: model.Assessment, change: Change) -> None:
    """Let a person's word override all rules; the history records each word, even if it changes nothing.

    Raises:
        JournalError: there is no such entry.
    """
    standing = get_standing(connection, entry_id)
    # The history keeps the word with the assessment that it changed.
    details = {"word": word.value, **(change.details or {})}
    notes = to_column(change.why)
    names = {"the_entry": standing.number, "human_word": word.value, "assessment_notes": notes}
    _OVERRIDE_ENTRY.leave(connection, names)
    counts = replace(read_counts(standing), human_word=word)
    change = change._replace(details=details)
    if write_standing(connection, standing, counts, change, DEFAULT_RULES).value == standing.assessment:
        unchanged = {"from": word.value, "to": word.value, **details}
        timestamp = max(change.timestamp, standing.updated_at)
        add_history(connection, entry_id, "assessment", change._replace(timestamp=timestamp, details=unchanged))


def add_history(connection: Connection, entry_id: str, what: str, change: Change) -> None:
    """Add a record to an entry's history."""
    _INSERT_HISTORY.leave(
        connection,
        {
            "entry_id": entry_id,
            "changed_at": change.timestamp,
            "what": what,
            "who": change.who,
            "why": to_column(change.why),
            "details": change.details,
        },
    )


def describe_unknown(entry_id: str | None) -> JournalError:
    """Return the error for an unknown entry."""
    return JournalError(f"the journal has no entry {entry_id!r}")


def resolve_due(connection: Connection, timestamp: datetime, rules: Mapping[str, Rules]) -> tuple[int, bool]:
    """Resolve expectations that expired without an answer, and assess their entries by their agents' rules.

    Returns how many, and whether there may be more: one call resolves a limited number, those that are due longest.
    """
    rows = sorted(_DUE.run(connection, {"timestamp": to_ms(timestamp)}).fetchall(), key=lambda row: row[1])
    change = Change(SWEEP, to_ms(timestamp), "the time is over")
    for entry_id, of_entry in groupby(rows, key=lambda row: row[1]):
        standing = get_standing(connection, entry_id)
        _lapse(connection, standing, tuple(of_entry), change, rules_of(standing.agent_id, rules))
    return len(rows), len(rows) == _MOST_AT_ONCE


def close_unfinished(connection: Connection, timestamp: datetime, rules: Mapping[str, Rules], after: int) -> int | None:
    """Close intents without an outcome and an expectation as expired, after the time of their agents' rules.

    One call looks at a limited number, those behind the number `after`, and returns where to go on; None at the end.
    """
    limits = [one.unfinished_after for one in rules.values() if one.unfinished_after is not None]
    if not limits:
        return None
    now = to_ms(timestamp)
    names = {"before": now - round(min(limits) * 1000), "after": after}
    rows = _UNFINISHED.run(connection, names).fetchall()
    for entry_id, agent_id, created_at, _ in rows:
        of_agent = rules_of(agent_id, rules)
        if of_agent.unfinished_after is not None and created_at <= now - of_agent.unfinished_after * 1000:
            standing = get_standing(connection, entry_id)
            change = Change(SWEEP, now, f"no outcome came within {of_agent.unfinished_after / 3600:g} h")
            write_standing(connection, standing, read_counts(standing), change, of_agent, model.Assessment.EXPIRED)
    return int(rows[-1][3]) if len(rows) == _MOST_AT_ONCE else None


def ask_for_soonest() -> Question:
    """Ask when the next open expectation is due."""
    return Question(_SOONEST, {})


def close_expectations(
    connection: Connection, entry_id: str, timestamp: datetime, *, who: str, why: str, rules: Rules = DEFAULT_RULES
) -> model.Assessment:
    """Close the open expectations of an entry as if they had expired, and return the entry's assessment.

    Raises:
        JournalError: there is no such entry.
    """
    standing = get_standing(connection, entry_id)
    if not read_counts(standing).open:
        return model.Assessment(standing.assessment)
    rows = connection.execute(_OPEN.where(expectations.c.entry_id == entry_id)).all()
    return _lapse(connection, standing, rows, Change(who, to_ms(timestamp), why), rules)


def _tell_lapsed(lapsed: Mapping[model.ExpectationStatus, Sequence[str]], why: str | None) -> str:
    """Name the first expectation that expired, else the first that is met since nothing was heard against it."""
    status, told = min(lapsed.items(), key=lambda item: item[0] is not model.ExpectationStatus.EXPIRED)
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    return f"{status.value}: {told[0]}{more} ({why})"


def _tell_expiry(connection: Connection, standing: Any, expectation_id: str, told: str, timestamp: int) -> None:
    """Record a neutral signal, so that the end of a wait is told where other news is; merged copies have it once."""
    _TELL.leave(
        connection,
        {
            "id": new_id("signal"),
            "entry_id": standing.id,
            "expectation_id": expectation_id,
            "source": SYSTEM,
            "signal_type": model.SignalType.NEUTRAL.value,
            "summary": told,
            "external_id": f"expiry of {expectation_id}",
            "routed_by": model.RoutedBy.ENTRY.value,
            "agent_id": standing.agent_id,
            "is_late": False,
            "created_at": timestamp,
        },
    )


def _lapse(
    connection: Connection, standing: Any, rows: Sequence[Any], change: Change, rules: Rules
) -> model.Assessment:
    """Resolve open expectations of an entry without an answer, and assess it."""
    counts = read_counts(standing)
    lapsed: dict[model.ExpectationStatus, list[str]] = {}
    for number, _, polarity, critical, created_at, description, expectation_id in rows:
        after = lapse(model.Polarity(polarity))
        lapsed.setdefault(after, []).append(description)
        counts = counts.moved(model.ExpectationStatus.OPEN, after, critical=bool(critical))
        resolved_at = max(change.timestamp, created_at)
        names = {"status": after.value, "resolved_by": change.who, "resolved_at": resolved_at}
        _RESOLVE.leave(connection, {"the_expectation": number, **names})
        if change.who == SWEEP:
            told = (
                f"no news in time: {description}"
                if after is _EXPIRED
                else f"nothing was heard against it: {description}"
            )
            _tell_expiry(connection, standing, expectation_id, told, resolved_at)
    change = change._replace(details={"closed_expectations": len(rows)}, cause=_tell_lapsed(lapsed, change.why))
    return write_standing(connection, standing, counts, change, rules)
