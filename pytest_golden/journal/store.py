"""Journal entries and what belongs to them as rows, and back. Each function works on an open connection.

What news means is decided in `rules.py`. An entry's counts are kept beside it, so that a signal costs the same however
many expectations the entry has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Integer, bindparam, func, insert, literal_column, select, update

from pytest_golden.journal.hints import list_anchors
from pytest_golden.journal.model import ExpectationStatus, ImmediateResult, Polarity, RoutedBy
from pytest_golden.journal.rows import (
    ENTRY_COLUMNS,
    EXPECTATION_COLUMNS,
    READ_SIGNAL_COLUMNS,
    ROUTING_COLUMNS,
    SIGNAL_COLUMNS,
    entry_columns,
    expectation_columns,
    read_counts,
    read_entry,
    routing_columns,
    signal_columns,
    storable_or_none,
)
from pytest_golden.journal.rules import DEFAULT_RULES, Rules, settle
from pytest_golden.journal.standing.store import (
    UPDATE_ENTRY,
    Change,
    add_history,
    describe_unknown,
    get_standing,
    write_standing,
)
from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.prepared import Prepared, Question, ask
from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.journal.model import Assessment, Expectation, JournalEntry, Signal
    from pytest_golden.journal.rules import Counts

_ROUTED = ("expectation_id", "agent_id", "routed_by", "is_late")
_HEARD = ("session_key", "content_digest", "routing", "expectation_mark")
_INSERT_ENTRY = Prepared(insert(entries), *ENTRY_COLUMNS)
_INSERT_EXPECTATION = Prepared(insert(expectations), *EXPECTATION_COLUMNS, *ROUTING_COLUMNS)
_SAY_RESULT = Prepared(UPDATE_ENTRY, "immediate_result", "immediate_notes")
_SAY_ALL = Prepared(UPDATE_ENTRY, "immediate_result", "immediate_notes", "actions")
_INSERT_SIGNAL = Prepared(insert(signals), *SIGNAL_COLUMNS, *_ROUTED)
_INSERT_HEARD = Prepared(insert(signals), *SIGNAL_COLUMNS, *_ROUTED, *_HEARD)
_ROUTE_SIGNAL = Prepared(
    update(signals).where(signals.c.id == bindparam("the_signal")), "entry_id", *_ROUTED, "routing"
)
_FIND_ENTRY = Prepared(select(entries.c.number).where(entries.c.id == bindparam("the_entry")))
_SETTLE_EXPECTATION = Prepared(
    update(expectations).where(expectations.c.number == bindparam("the_expectation")),
    *("status", "resolved_by", "resolved_at"),
)
_COUNT_OPEN = Prepared(
    update(entries)
    .where(entries.c.id == bindparam("the_entry"))
    .values(open_count=entries.c.open_count + bindparam("n", type_=Integer()))
)
_ENTRY = Prepared(select(entries).where(entries.c.id == bindparam("the_entry")))
_PARTS = {
    name: Prepared(chosen.where(table.c.entry_id == bindparam("the_entry")).order_by(table.c.number))
    for name, table, chosen in (
        ("expectations", expectations, select(expectations)),
        ("signals", signals, select(*(signals.c[column] for column in READ_SIGNAL_COLUMNS))),
        ("history", entry_history, select(entry_history)),
    )
}
# An anchor with so many open expectations is as good as any with more.
_CROWDED = 32
_COUNT_AT_ANCHOR = Prepared(
    select(func.count().label("number")).select_from(
        select(literal_column("1"))
        .where(
            expectations.c.hint_anchor == bindparam("the_anchor", type_=BigInteger()),
            expectations.c.status == literal_column("'open'"),
        )
        .limit(_CROWDED)
        .subquery()
    )
)


class Heard(NamedTuple):
    """How a signal was routed, and what it is known again by."""

    routed_by: RoutedBy
    routing: Mapping[str, Any] | None = None
    agent_id: str | None = None
    session_key: str | None = None
    content_digest: str | None = None
    expectation_mark: int | None = None


class Outcome(NamedTuple):
    """What an agent says of how its action ended; no actions leave those that were said before."""

    result: ImmediateResult
    notes: str | None = None
    actions: tuple[Any, ...] = ()
    expectations: tuple[Expectation, ...] = ()


def insert_entry(connection: Connection, entry: JournalEntry) -> None:
    """Keep a new entry as it stands, one that is already closed too. What is in its tuples is not kept."""
    _INSERT_ENTRY.leave(connection, entry_columns(entry))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether there is an entry of this id."""
    return _FIND_ENTRY.first(connection, {"the_entry": entry_id}) is not None


def insert_expectations(connection: Connection, new: Sequence[Expectation], *, by_hint_only: bool = False) -> None:
    """Keep new, open expectations and count them; their entries must be there.

    With `by_hint_only` no signal is taken to concern them because of its session or time.
    """
    for entry_id, of_entry in groupby(new, key=lambda expectation: expectation.entry_id):
        standing = get_standing(connection, entry_id)
        _insert_expectation_rows(connection, tuple(of_entry), standing, by_hint_only=by_hint_only)
    for entry_id, number in Counter(expectation.entry_id for expectation in new).items():
        _COUNT_OPEN.leave(connection, {"the_entry": entry_id, "n": number})


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
    standing = get_standing(connection, signal.entry_id, expectation_id)
    row = _read_answer(standing, expectation_id, to_ms(moment))
    _INSERT_SIGNAL.leave(connection, {**signal_columns(signal), **row, "routed_by": routed_by.value})
    return _assess_by(connection, standing, signal, to_ms(moment), who=who, rules=rules)


def take_signal(
    connection: Connection,
    signal: Signal,
    expectation_id: str | None,
    heard: Heard,
    *,
    is_kept: bool = False,
    rules: Rules = DEFAULT_RULES,
) -> Signal:
    """Do what `record_signal` does with a signal that was routed, at its own moment, and give it as it is kept.

    `is_kept` tells that it is there as an orphan already. A signal without an entry is kept as an orphan.

    Raises:
        JournalError: there is no such entry, or no such expectation of it.
    """
    moment = to_ms(signal.created_at)
    if signal.entry_id is None:
        row: dict[str, Any] = {"expectation_id": None, "agent_id": heard.agent_id, "is_late": False}
    else:
        standing = get_standing(connection, signal.entry_id, expectation_id)
        row = _read_answer(standing, expectation_id, moment)
    row |= {"routed_by": heard.routed_by.value}
    if is_kept:
        place = {"entry_id": signal.entry_id, "routing": heard.routing, "the_signal": signal.id}
        _ROUTE_SIGNAL.leave(connection, {**row, **place})
    else:
        known = {name: getattr(heard, name) for name in _HEARD}
        _INSERT_HEARD.leave(connection, {**signal_columns(signal), **row, **known})
    if signal.entry_id is not None:
        _assess_by(connection, standing, signal, moment, who=signal.source, rules=rules)
    return replace(signal, expectation_id=row["expectation_id"], routed_by=heard.routed_by)


def record_outcome(
    connection: Connection,
    entry_id: str,
    outcome: Outcome,
    moment: datetime,
    *,
    who: str,
    rules: Rules = DEFAULT_RULES,
    standing: Any = None,
) -> Assessment:
    """Keep how an entry's action ended, with what is expected now, and give the entry's assessment.

    Said twice, the later result stands and its expectations are added; the history has both. `standing` is that of the
    entry, where it was read in this transaction.

    Raises:
        JournalError: there is no such entry.
    """
    standing = standing or get_standing(connection, entry_id)
    _insert_expectation_rows(connection, outcome.expectations, standing)
    said = {"result": outcome.result.value, "expectations": len(outcome.expectations)}
    now = max(to_ms(moment), standing.updated_at)
    add_history(connection, entry_id, "outcome", Change(who, now, outcome.notes, said))
    changed: dict[str, Any] = {
        "immediate_result": outcome.result.value,
        "immediate_notes": storable_or_none(outcome.notes),
    }
    if outcome.actions:
        _SAY_ALL.leave(connection, {"the_entry": standing.number, **changed, "actions": outcome.actions})
    else:
        _SAY_RESULT.leave(connection, {"the_entry": standing.number, **changed})
    counts = replace(read_counts(standing), immediate_result=outcome.result)
    counts = counts.moved(None, ExpectationStatus.OPEN, len(outcome.expectations), critical=False)
    return write_standing(connection, standing, counts, Change(who, now, outcome.notes), rules)


def get_entry(connection: Connection, entry_id: str) -> JournalEntry:
    """Give an entry with its expectations, signals and history.

    Raises:
        JournalError: there is no such entry.
    """
    asked = {"the_entry": entry_id}
    found, *parts = ask(connection, *(Question(chosen, asked) for chosen in (_ENTRY, *_PARTS.values())))
    rows = _ENTRY.decode(found)
    if not rows:
        raise describe_unknown(entry_id)
    read = {name: chosen.decode(part) for (name, chosen), part in zip(_PARTS.items(), parts, strict=True)}
    return read_entry(rows[0], **read)


def _read_answer(standing: Any, expectation_id: str | None, now: int) -> dict[str, Any]:
    """Give the columns of a signal that tell what it is to its entry."""
    is_late = expectation_id is not None and standing.expires_at is not None and now >= standing.expires_at
    is_answer = expectation_id is not None and standing.status == ExpectationStatus.OPEN and not is_late
    return {
        "expectation_id": expectation_id if is_answer else None,
        "agent_id": standing.agent_id,
        "is_late": is_late,
    }


def _assess_by(
    connection: Connection, standing: Any, signal: Signal, now: int, *, who: str, rules: Rules
) -> Assessment:
    if standing.expectation_number is None:
        counts = read_counts(standing).heard(signal.signal_type)
    else:
        counts = _settle_expectation(connection, standing, signal, now)
    change = Change(who, now, signal.summary, {"signal": signal.id})
    return write_standing(connection, standing, counts, change, rules)


def _settle_expectation(connection: Connection, standing: Any, signal: Signal, now: int) -> Counts:
    before = ExpectationStatus(standing.status)
    is_late = standing.expires_at is not None and now >= standing.expires_at
    settlement = settle(signal.signal_type, before, Polarity(standing.polarity), is_late=is_late)
    if settlement.status is not before:
        _SETTLE_EXPECTATION.leave(
            connection,
            {
                "the_expectation": standing.expectation_number,
                "status": settlement.status.value,
                "resolved_by": signal.id,
                "resolved_at": max(now, standing.expectation_created_at),
            },
        )
    counts = read_counts(standing).heard(settlement.counts_as)
    return counts.moved(before, settlement.status, critical=standing.critical)


def _insert_expectation_rows(
    connection: Connection, new: Sequence[Expectation], standing: Any, *, by_hint_only: bool = False
) -> None:
    anchors_of_each = [list_anchors(expectation.match_hint or {}) for expectation in new]
    crowds: dict[int, int] = {}
    if not by_hint_only:
        _count_crowds(connection, {anchors[0] for anchors in anchors_of_each if len(anchors) > 1}, crowds)
    for expectation, anchors in zip(new, anchors_of_each, strict=True):
        if by_hint_only or len(anchors) < 2:
            anchor = next(iter(anchors), None)
        else:
            anchor = choose_anchor(connection, anchors, crowds)
        routing = routing_columns(expectation, anchor, standing.agent_id, standing.session_key)
        if by_hint_only:
            routing |= {"hint_shape": None, "session_key": None}
        _INSERT_EXPECTATION.leave(connection, {**expectation_columns(expectation), **routing})


def choose_anchor(connection: Connection, anchors: Sequence[int], crowds: dict[int, int]) -> int:
    """Choose the anchor with the fewest open expectations; `crowds` knows those that are kept together."""
    for anchor in anchors:
        if anchor not in crowds:
            _count_crowds(connection, (anchor,), crowds)
        if not crowds[anchor]:
            break
    chosen = min((anchor for anchor in anchors if anchor in crowds), key=crowds.__getitem__)
    crowds[chosen] += 1
    return chosen


def _count_crowds(connection: Connection, anchors: Collection[int], crowds: dict[int, int]) -> None:
    counted = ask(connection, *(Question(_COUNT_AT_ANCHOR, {"the_anchor": anchor}) for anchor in anchors))
    crowds.update((anchor, int(next(rows)[0])) for anchor, rows in zip(anchors, counted, strict=True))
