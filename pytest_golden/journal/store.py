"""Journal entries and what belongs to them as rows, and back. Each function works on an open connection.

What news means is decided in `rules.py`. An entry's counts are kept beside it, so that a signal costs the same however
many expectations the entry has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, and_, bindparam, case, func, insert, select, update

from pytest_golden.errors import JournalError
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity
from pytest_golden.journal.rows import (
    COUNT_COLUMNS,
    count_columns,
    entry_columns,
    expectation_columns,
    read_counts,
    read_entry,
    signal_columns,
    storable_or_none,
)
from pytest_golden.journal.rules import DEFAULT_RULES, Rules, assess, lapse, settle
from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.journal.model import Expectation, JournalEntry, RoutedBy, Signal
    from pytest_golden.journal.rules import Counts

_INSERT_ENTRY = insert(entries)
_INSERT_EXPECTATION = insert(expectations)
_INSERT_SIGNAL = insert(signals)
_INSERT_HISTORY = insert(entry_history)
_UPDATE_ENTRY = update(entries).where(entries.c.number == bindparam("the_entry"))
_UPDATE_EXPECTATION = update(expectations).where(expectations.c.number == bindparam("the_expectation"))
_COUNT_OPEN = (
    update(entries)
    .where(entries.c.id == bindparam("the_entry"))
    .values(open_count=entries.c.open_count + bindparam("n"))
)
# What an entry is assessed from, and one of its expectations, if one is asked for.
_STANDING: Select[Any] = (
    select(
        entries.c.number,
        entries.c.id,
        entries.c.agent_id,
        entries.c.immediate_result,
        entries.c.assessment,
        entries.c.closed_at,
        entries.c.updated_at,
        entries.c.human_word,
        *(entries.c[name] for name in COUNT_COLUMNS),
        expectations.c.number.label("expectation_number"),
        expectations.c.status,
        expectations.c.polarity,
        expectations.c.critical,
        expectations.c.expires_at,
        expectations.c.created_at.label("expectation_created_at"),
    )
    .outerjoin_from(
        entries,
        expectations,
        and_(expectations.c.entry_id == entries.c.id, expectations.c.id == bindparam("the_expectation")),
    )
    .where(entries.c.id == bindparam("the_entry"))
    .with_for_update(of=entries)
)
_OPEN_OF_ENTRY = and_(
    expectations.c.entry_id == bindparam("the_entry"), expectations.c.status == ExpectationStatus.OPEN.value
)
_COUNT_OPEN_KINDS = (
    select(expectations.c.polarity, expectations.c.critical, func.count().label("number"))
    .where(_OPEN_OF_ENTRY)
    .group_by(expectations.c.polarity, expectations.c.critical)
)
_MOMENT = bindparam("moment", type_=BigInteger())
_LAPSE = (
    update(expectations)
    .where(_OPEN_OF_ENTRY)
    .values(
        status=case({polarity.value: lapse(polarity).value for polarity in Polarity}, value=expectations.c.polarity),
        resolved_by=bindparam("who"),
        resolved_at=case((expectations.c.created_at > _MOMENT, expectations.c.created_at), else_=_MOMENT),
    )
)


class Outcome(NamedTuple):
    """What an agent says of how its action ended; no actions leave those that were said before."""

    result: ImmediateResult
    notes: str | None = None
    actions: tuple[Any, ...] = ()
    expectations: tuple[Expectation, ...] = ()


class Change(NamedTuple):
    """Who changes an entry, when (milliseconds since the epoch), why, and what else the history keeps of it."""

    who: str
    moment: int
    why: str | None = None
    details: Mapping[str, Any] | None = None


def insert_entry(connection: Connection, entry: JournalEntry) -> None:
    """Keep a new entry as it stands, one that is already closed too. What is in its tuples is not kept."""
    connection.execute(_INSERT_ENTRY, entry_columns(entry))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether there is an entry of this id."""
    return connection.scalar(select(entries.c.number).where(entries.c.id == entry_id)) is not None


def insert_expectations(connection: Connection, new: Sequence[Expectation]) -> None:
    """Keep new, open expectations and count them; their entries must be there."""
    _insert_expectation_rows(connection, new)
    for entry_id, number in Counter(expectation.entry_id for expectation in new).items():
        connection.execute(_COUNT_OPEN, {"the_entry": entry_id, "n": number})


def record_signal(
    connection: Connection,
    signal: Signal,
    expectation_id: str | None,
    moment: datetime,
    *,
    routed_by: RoutedBy,
    who: str = "golden",
    rules: Rules = DEFAULT_RULES,
) -> Assessment:
    """Keep a signal on its entry, let it settle the expectation that it fits, and give the entry's assessment.

    Without an expectation it is news about the entry alone. One that settles nothing because it is late, or because the
    expectation was resolved before, is kept as news about the entry.

    Raises:
        JournalError: there is no such entry, or no such expectation of it.
    """
    standing = _get_standing(connection, signal.entry_id, expectation_id)
    now = to_ms(moment)
    is_late = expectation_id is not None and standing.expires_at is not None and now >= standing.expires_at
    is_answer = expectation_id is not None and standing.status == ExpectationStatus.OPEN and not is_late
    connection.execute(
        _INSERT_SIGNAL,
        {
            **signal_columns(signal),
            "expectation_id": expectation_id if is_answer else None,
            "agent_id": standing.agent_id,
            "routed_by": routed_by.value,
            "is_late": is_late,
        },
    )
    if expectation_id is None:
        counts = read_counts(standing).heard(signal.signal_type)
    else:
        counts = _settle_expectation(connection, standing, signal, now, is_late=is_late)
    change = Change(who, now, signal.summary, {"signal": signal.id})
    return _write_standing(connection, standing, counts, change, rules)


def close_expectations(
    connection: Connection,
    entry_id: str,
    moment: datetime,
    *,
    who: str,
    why: str,
    rules: Rules = DEFAULT_RULES,
) -> Assessment:
    """Close what is still open of an entry as if its time were over, and give the entry's assessment.

    Raises:
        JournalError: there is no such entry.
    """
    standing = _get_standing(connection, entry_id)
    counts = read_counts(standing)
    if not counts.open:
        return Assessment(standing.assessment)
    now = to_ms(moment)
    closed = connection.execute(_COUNT_OPEN_KINDS, {"the_entry": entry_id}).all()
    connection.execute(_LAPSE, {"the_entry": entry_id, "who": who, "moment": now})
    for row in closed:
        after = lapse(Polarity(row.polarity))
        counts = counts.moved(ExpectationStatus.OPEN, after, row.number, critical=row.critical)
    change = Change(who, now, why, {"closed_expectations": sum(row.number for row in closed)})
    return _write_standing(connection, standing, counts, change, rules)


def record_outcome(
    connection: Connection,
    entry_id: str,
    outcome: Outcome,
    moment: datetime,
    *,
    who: str,
    rules: Rules = DEFAULT_RULES,
) -> Assessment:
    """Keep how an entry's action ended, with what is expected now, and give the entry's assessment.

    Said twice, the later result stands and its expectations are added; the history has both.

    Raises:
        JournalError: there is no such entry.
    """
    standing = _get_standing(connection, entry_id)
    _insert_expectation_rows(connection, outcome.expectations)
    said = {"result": outcome.result.value, "expectations": len(outcome.expectations)}
    now = max(to_ms(moment), standing.updated_at)
    _add_history(connection, entry_id, "outcome", Change(who, now, outcome.notes, said))
    changed: dict[str, Any] = {
        "immediate_result": outcome.result.value,
        "immediate_notes": storable_or_none(outcome.notes),
    }
    if outcome.actions:
        changed["actions"] = outcome.actions
    connection.execute(_UPDATE_ENTRY, {"the_entry": standing.number, **changed})
    counts = replace(read_counts(standing), immediate_result=outcome.result)
    counts = counts.moved(None, ExpectationStatus.OPEN, len(outcome.expectations), critical=False)
    return _write_standing(connection, standing, counts, Change(who, now, outcome.notes), rules)


def get_entry(connection: Connection, entry_id: str) -> JournalEntry:
    """Give an entry with its expectations, signals and history.

    Raises:
        JournalError: there is no such entry.
    """
    row = connection.execute(select(entries).where(entries.c.id == entry_id)).one_or_none()
    if row is None:
        raise _unknown(entry_id)
    parts = {
        name: connection.execute(select(table).where(table.c.entry_id == entry_id).order_by(table.c.number)).all()
        for name, table in (("expectations", expectations), ("signals", signals), ("history", entry_history))
    }
    return read_entry(row, **parts)


def list_entries(
    connection: Connection,
    *,
    agent_id: str | None = None,
    assessment: Assessment | None = None,
    intent_type: str | None = None,
    limit: int,
) -> tuple[JournalEntry, ...]:
    """Give the newest entries with their expectations, newest first; None stands for any."""
    wanted = [
        column == value
        for column, value in (
            (entries.c.agent_id, agent_id),
            (entries.c.assessment, assessment),
            (entries.c.intent_type, intent_type),
        )
        if value is not None
    ]
    if assessment is Assessment.OPEN:
        # What the index of the open ones goes by.
        wanted.append(entries.c.closed_at.is_(None))
    chosen = select(entries).where(*wanted).order_by(entries.c.number.desc()).limit(limit)
    ids = chosen.with_only_columns(entries.c.id).subquery()
    found = connection.execute(chosen).all()
    asked: dict[str, list[Any]] = {row.id: [] for row in found}
    for row in connection.execute(
        select(expectations).where(expectations.c.entry_id.in_(select(ids))).order_by(expectations.c.number)
    ):
        asked[row.entry_id].append(row)
    return tuple(read_entry(row, expectations=asked[row.id]) for row in found)


def get_agent(connection: Connection, entry_id: str) -> str:
    """Give the agent whose entry it is.

    Raises:
        JournalError: there is no such entry.
    """
    agent_id: str | None = connection.scalar(select(entries.c.agent_id).where(entries.c.id == entry_id))
    if agent_id is None:
        raise _unknown(entry_id)
    return agent_id


def _settle_expectation(
    connection: Connection, standing: Row[Any], signal: Signal, now: int, *, is_late: bool
) -> Counts:
    before = ExpectationStatus(standing.status)
    settlement = settle(signal.signal_type, before, Polarity(standing.polarity), is_late=is_late)
    if settlement.status is not before:
        connection.execute(
            _UPDATE_EXPECTATION,
            {
                "the_expectation": standing.expectation_number,
                "status": settlement.status.value,
                "resolved_by": signal.id,
                "resolved_at": max(now, standing.expectation_created_at),
            },
        )
    counts = read_counts(standing).heard(settlement.counts_as)
    return counts.moved(before, settlement.status, critical=standing.critical)


def _get_standing(connection: Connection, entry_id: str | None, expectation_id: str | None = None) -> Row[Any]:
    names = {"the_entry": entry_id, "the_expectation": expectation_id}
    row: Row[Any] | None = connection.execute(_STANDING, names).one_or_none()
    if row is None:
        raise _unknown(entry_id)
    if expectation_id is not None and row.expectation_number is None:
        raise JournalError(f"entry {entry_id} has no expectation {expectation_id!r}")
    return row


def _write_standing(
    connection: Connection, standing: Row[Any], counts: Counts, change: Change, rules: Rules
) -> Assessment:
    before = Assessment(standing.assessment)
    after = assess(counts, rules, before=before)
    # A clock that went back must not put a change before what it changes.
    moment = max(change.moment, standing.updated_at)
    has_left_open = standing.closed_at is None and after is not Assessment.OPEN
    connection.execute(
        _UPDATE_ENTRY,
        {
            "the_entry": standing.number,
            **count_columns(counts),
            "assessment": after.value,
            "closed_at": moment if has_left_open else standing.closed_at,
            "updated_at": moment,
        },
    )
    if after is not before:
        details = {"from": before.value, "to": after.value, **(change.details or {})}
        _add_history(connection, standing.id, "assessment", change._replace(moment=moment, details=details))
    return after


def _add_history(connection: Connection, entry_id: str, what: str, change: Change) -> None:
    connection.execute(
        _INSERT_HISTORY,
        {
            "entry_id": entry_id,
            "changed_at": change.moment,
            "what": what,
            "who": change.who,
            "why": storable_or_none(change.why),
            "details": change.details,
        },
    )


def _insert_expectation_rows(connection: Connection, new: Sequence[Expectation]) -> None:
    if new:
        connection.execute(_INSERT_EXPECTATION, [expectation_columns(expectation) for expectation in new])


def _unknown(entry_id: str | None) -> JournalError:
    return JournalError(f"the journal has no entry {entry_id!r}")
