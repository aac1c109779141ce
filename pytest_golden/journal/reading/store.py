"""Looks into the journal that change nothing. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, literal_column, select

from pytest_golden.errors import JournalError
from pytest_golden.journal.model import Assessment, RoutedBy
from pytest_golden.journal.reading.summary import Count
from pytest_golden.journal.rows import READ_SIGNAL_COLUMNS, read_entry, read_expectation, read_signal
from pytest_golden.storage.schema import ALL_AGENTS, entries, entry_tally, expectations, signals

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.journal.model import Expectation, JournalEntry, Signal

_IS_OPEN = expectations.c.status == literal_column("'open'")
_IS_ORPHAN = signals.c.routed_by == literal_column("'orphan'")
_DAY_MS = 86_400_000


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
    if assessment not in {None, Assessment.SUCCESS}:
        # Written out, so that the indexes of what is rare are known to hold them all.
        wanted.append(entries.c.assessment != literal_column("'success'"))
    chosen = select(entries).where(*wanted).order_by(entries.c.number.desc()).limit(limit)
    ids = chosen.with_only_columns(entries.c.id).subquery()
    found = connection.execute(chosen).all()
    asked: dict[str, list[Any]] = {row.id: [] for row in found}
    for row in connection.execute(
        select(expectations).where(expectations.c.entry_id.in_(select(ids))).order_by(expectations.c.number)
    ):
        asked[row.entry_id].append(row)
    return tuple(read_entry(row, expectations=asked[row.id]) for row in found)


def list_open(connection: Connection, now: int, *, agent_id: str | None, limit: int) -> tuple[Expectation, ...]:
    """Give the open expectations whose time is not over, the soonest first, those without an expiry last."""
    chosen = select(expectations).where(_IS_OPEN)
    if agent_id is not None:
        chosen = chosen.where(expectations.c.agent_id == agent_id)
    # In two parts, since databases differ in where nothing stands.
    soonest = chosen.where(expectations.c.expires_at > now).order_by(expectations.c.expires_at, expectations.c.number)
    rows = list(connection.execute(soonest.limit(limit)))
    if len(rows) < limit:
        lasting = chosen.where(expectations.c.expires_at.is_(None)).order_by(expectations.c.number)
        rows += connection.execute(lasting.limit(limit - len(rows)))
    return tuple(map(read_expectation, rows))


def list_orphans(connection: Connection, *, limit: int) -> tuple[Signal, ...]:
    """Give the signals that found no entry, the newest first."""
    columns = (signals.c[name] for name in READ_SIGNAL_COLUMNS)
    chosen = select(*columns).where(_IS_ORPHAN).order_by(signals.c.created_at.desc(), signals.c.number.desc())
    return tuple(map(read_signal, connection.execute(chosen.limit(limit))))


def get_routing(connection: Connection, signal_id: str) -> tuple[RoutedBy, str | None, Any]:
    """Give the rule that routed a signal, the expectation that it answered, and what was kept of the candidates.

    Raises:
        JournalError: there is no such signal.
    """
    chosen = select(signals.c.routed_by, signals.c.expectation_id, signals.c.routing).where(signals.c.id == signal_id)
    row = connection.execute(chosen).one_or_none()
    if row is None:
        raise JournalError(f"the journal has no signal {signal_id!r}")
    return RoutedBy(row.routed_by), row.expectation_id, row.routing


def count_entries(connection: Connection, *, agent_id: str | None, since: int | None) -> tuple[Count, ...]:
    """Count the entries that began at this moment or later by day (UTC), intent type and assessment."""
    # The tally knows whole days; what began on the first one before the moment is not counted by it.
    first_day = None if since is None else -(-since // _DAY_MS)
    columns = (entry_tally.c.day, entry_tally.c.intent_type, entry_tally.c.assessment, entry_tally.c.amount)
    tally = select(*columns).where(entry_tally.c.agent_id == (agent_id or ALL_AGENTS))
    if first_day is not None:
        tally = tally.where(entry_tally.c.day >= first_day)
    rows = list(connection.execute(tally))
    if since is not None and first_day is not None and since % _DAY_MS:
        rows += _count_first_day(connection, agent_id, since, first_day * _DAY_MS)
    return tuple(Count(int(day), kind, Assessment(word), int(amount)) for day, kind, word, amount in rows if amount)


def _count_first_day(connection: Connection, agent_id: str | None, since: int, until: int) -> list[Any]:
    kind = func.coalesce(entries.c.intent_type, literal_column("''"))
    chosen = (
        select(literal_column(str(until // _DAY_MS - 1)), kind, entries.c.assessment, func.count())
        .where(entries.c.created_at >= since, entries.c.created_at < until)
        .group_by(kind, entries.c.assessment)
    )
    if agent_id is not None:
        # Not a plain column, so that the index of moments is gone by.
        chosen = chosen.where(func.coalesce(entries.c.agent_id, "") == agent_id)
    return list(connection.execute(chosen))
