"""Expectations whose time is over, or that nobody will answer any more. Each function works on an open connection."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Integer, and_, bindparam, case, func, literal_column, select, update

from pytest_golden.journal.assessment_store import Change, get_standing, write_standing
from pytest_golden.journal.model import Assessment, ExpectationStatus, Polarity
from pytest_golden.journal.rows import read_counts
from pytest_golden.journal.rules import DEFAULT_RULES, Rules, lapse
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import expectations
from pytest_golden.storage.statements import Prepared, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

#: Who resolves what nobody has answered in time.
SWEEP = "sweep"
# The size of a batch, so that others may write in between.
_MOST_AT_ONCE = 500
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
_IS_OPEN = expectations.c.status == literal_column("'open'")
# Whether any is due is asked at each signal: without a moment, since a server plans anew for each that it is told.
_SOONEST = Prepared(
    select(expectations.c.expires_at)
    .where(_IS_OPEN, expectations.c.expires_at.is_not(None))
    .order_by(expectations.c.expires_at)
    .limit(1)
)
_DUE = Prepared(
    select(
        expectations.c.number,
        expectations.c.entry_id,
        expectations.c.polarity,
        expectations.c.critical,
        expectations.c.created_at,
    )
    .where(_IS_OPEN, expectations.c.expires_at <= bindparam("moment", type_=BigInteger()))
    .order_by(expectations.c.expires_at)
    .limit(_MOST_AT_ONCE)
)
_RESOLVE = Prepared(
    update(expectations).where(expectations.c.number == bindparam("the_expectation", type_=Integer())),
    *("status", "resolved_by", "resolved_at"),
)


def resolve_due(connection: Connection, moment: datetime, rules: Mapping[str, Rules]) -> tuple[int, bool]:
    """Resolve expectations that expired without an answer, and assess their entries by their agents' rules.

    Returns how many, and whether there may be more: one call resolves a limited number, those that are due longest.
    """
    rows = sorted(_DUE.run(connection, {"moment": to_ms(moment)}).fetchall(), key=lambda row: row[1])
    for entry_id, of_entry in groupby(rows, key=lambda row: row[1]):
        _resolve(connection, entry_id, tuple(of_entry), to_ms(moment), rules)
    return len(rows), len(rows) == _MOST_AT_ONCE


def ask_for_soonest() -> Question:
    """Ask when the next open expectation is due."""
    return Question(_SOONEST, {})


def is_any_due(soonest: Iterable[Any], moment: datetime) -> bool:
    """Tell from what is answered by `ask_for_soonest` whether an expectation's time is over."""
    return any(expires_at <= to_ms(moment) for (expires_at,) in soonest)


def close_expectations(
    connection: Connection,
    entry_id: str,
    moment: datetime,
    *,
    who: str,
    why: str,
    rules: Rules = DEFAULT_RULES,
) -> Assessment:
    """Close the open expectations of an entry as if they had expired, and return the entry's assessment.

    Raises:
        JournalError: there is no such entry.
    """
    standing = get_standing(connection, entry_id)
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
    return write_standing(connection, standing, counts, change, rules)


def _resolve(
    connection: Connection, entry_id: str, rows: tuple[Any, ...], now: int, rules: Mapping[str, Rules]
) -> None:
    standing = get_standing(connection, entry_id)
    counts = read_counts(standing)
    for number, _, polarity, critical, created_at in rows:
        after = lapse(Polarity(polarity))
        counts = counts.moved(ExpectationStatus.OPEN, after, critical=bool(critical))
        names = {"status": after.value, "resolved_by": SWEEP, "resolved_at": max(now, created_at)}
        _RESOLVE.leave(connection, {"the_expectation": number, **names})
    change = Change(SWEEP, now, "the time is over", {"closed_expectations": len(rows)})
    write_standing(connection, standing, counts, change, rules.get(standing.agent_id, DEFAULT_RULES))
