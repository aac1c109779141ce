"""Read the journal for those who show it. Nothing is changed; each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, and_, func, literal_column, or_, select, tuple_, union_all

from pytest_golden.errors import JournalError
from pytest_golden.journal.assessment_store import SIGNAL_COLUMNS, read_entry, read_expectation, read_signal
from pytest_golden.journal.model import Assessment, Expectation, ImmediateResult, JournalEntry, RoutedBy, Signal
from pytest_golden.journal.rules import COMMENTS, GITHUB, HUMAN
from pytest_golden.storage.schema import ALL_AGENTS, entries, entry_history, entry_tally, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    #: A day (since the epoch, UTC) or a type of entries, how they are assessed, and how many there are.
    Count = Sequence[Any]

_IS_OPEN = expectations.c.status == literal_column("'open'")
_MOST_NEUTRAL = 2_000
_IS_ORPHAN = signals.c.routed_by == literal_column("'orphan'")
_DAY_MS = 86_400_000
_LISTED_SIGNAL = (*(signals.c[name] for name in SIGNAL_COLUMNS), signals.c.number, signals.c.agent_id)
_NEWEST, _FIRST = entries.alias("newest"), expectations.alias("first")
_PARTS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("expectations", expectations, tuple(expectations.c)),
    ("signals", signals, tuple(signals.c[name] for name in SIGNAL_COLUMNS)),
    ("history", entry_history, tuple(entry_history.c)),
)


def list_numbered_entries(
    connection: Connection,
    limit: int,
    *,
    before: int | None = None,
    most_expectations: int | None = None,
    without_type: str | None = None,
    **sought: str | None,
) -> tuple[tuple[int, JournalEntry, int], ...]:
    """Return the newest entries, each with its number before it and how many expectations it has in all after it.

    With `before`, those that were recorded before this number; `sought` are columns and their values, None for any, and `without_type`
    is an intent type to leave out. An entry has its first `most_expectations`.
    """
    wanted = [entries.c[name] == value for name, value in sought.items() if value is not None]
    if sought.get("assessment") not in {None, Assessment.SUCCESS}:
        # Written as a literal, so that the database can use the index of the rare assessments.
        wanted.append(entries.c.assessment != literal_column("'success'"))
    if without_type is not None:
        wanted.append(entries.c.intent_type.is_distinct_from(without_type))
    if before is not None:
        wanted.append(entries.c.number < before)
    chosen = select(entries).where(*wanted).order_by(entries.c.number.desc()).limit(limit)
    found = connection.execute(chosen).all()
    asked: dict[str, list[Any]] = {row.id: [] for row in found}
    for row in connection.execute(_expectations_of(tuple(asked), most_expectations)):
        asked[row.entry_id].append(row)
    return tuple(
        (
            row.number,
            read_entry(row, expectations=asked[row.id]),
            row.open_count + row.met_count + row.unmet_count + row.expired_count,
        )
        for row in found
    )


def list_intents(connection: Connection, words: str, limit: int, *, most: int) -> tuple[Row[Any], ...]:
    """Return id, intent, agent, assessment and time of the entries of agents whose intent has these words, among the newest `most`."""
    shown = [entries.c[name] for name in ("number", "id", "intent", "agent_id", "assessment", "created_at")]
    newest = select(*shown, entries.c.intent_type).order_by(entries.c.number.desc()).limit(most).subquery()
    found = select(newest).where(newest.c.intent.icontains(words, autoescape=True))
    return tuple(connection.execute(found.order_by(newest.c.number.desc()).limit(limit)))


def _expectations_of(entry_ids: Sequence[str], most: int | None) -> Any:
    # Selected by ids: with a subquery for the newest ten, a server may plan to read all expectations.
    query = select(expectations).order_by(expectations.c.number)
    if most is None:
        return query.where(expectations.c.entry_id.in_(entry_ids))
    ids = select(entries.c.id).where(entries.c.id.in_(entry_ids)).subquery("ids")
    first = select(_FIRST.c.number).where(_FIRST.c.entry_id == ids.c.id).order_by(_FIRST.c.number).limit(most)
    return query.join(ids, expectations.c.number.in_(first.correlate(ids)))


def list_open_rows(
    connection: Connection, now: int, *, agent_id: str | None, after: tuple[int | None, int] | None = None, limit: int
) -> tuple[Row[Any], ...]:
    """Return the rows of open expectations whose time is not over, the soonest first, those without an expiry last.

    With `after`, an expiry and a number, return those that follow that one.
    """
    chosen = select(expectations).where(_IS_OPEN)
    if agent_id is not None:
        chosen = chosen.where(expectations.c.agent_id == agent_id)
    expiry, number = after or (now, None)
    rows: list[Row[Any]] = []
    # In two parts, since databases sort NULL differently.
    if expiry is not None:
        soonest = chosen.where(expectations.c.expires_at > now)
        if number is not None:
            place = tuple_(expectations.c.expires_at, expectations.c.number)
            soonest = soonest.where(place > tuple_(expiry, number))
        rows += connection.execute(soonest.order_by(expectations.c.expires_at, expectations.c.number).limit(limit))
    if len(rows) < limit:
        lasting = chosen.where(expectations.c.expires_at.is_(None)).order_by(expectations.c.number)
        if expiry is None and number is not None:
            lasting = lasting.where(expectations.c.number > number)
        rows += connection.execute(lasting.limit(limit - len(rows)))
    return tuple(rows)


def list_signal_rows(
    connection: Connection, *, routed_by: RoutedBy | None, agent_id: str | None, before: int | None, limit: int
) -> tuple[Row[Any], ...]:
    """Return the rows of the newest signals, newest first; with `before`, those that were recorded before this number."""
    number = signals.c.number
    wanted = [] if before is None else [number < before]
    if routed_by is not None:
        wanted.append(signals.c.routed_by == routed_by.value)
    if agent_id is not None:
        wanted.append(signals.c.agent_id == agent_id)
    chosen = select(*_LISTED_SIGNAL).where(*wanted).order_by(number.desc()).limit(limit)
    if agent_id is not None and routed_by is None:
        # Its index is sorted by rule, then number: read the newest of each rule, and of these the newest.
        parts = (
            select(
                select(number)
                .where(*wanted, signals.c.routed_by == rule.value)
                .order_by(number.desc())
                .limit(limit)
                .subquery()
            )
            for rule in RoutedBy
        )
        chosen = select(*_LISTED_SIGNAL).where(number.in_(union_all(*parts))).order_by(number.desc()).limit(limit)
    return tuple(connection.execute(chosen))


def get_signal_row(connection: Connection, signal_id: str) -> Row[Any]:
    """Return the whole row of a signal.

    Raises:
        JournalError: there is no such signal.
    """
    row = connection.execute(select(signals).where(signals.c.id == signal_id)).one_or_none()
    if row is None:
        raise JournalError(f"the journal has no signal {signal_id!r}")
    return row


def find_expectations(connection: Connection, ids: Collection[str]) -> dict[str, Expectation]:
    """Return those of these expectations that exist, by their ids."""
    if not ids:
        return {}
    rows = connection.execute(select(expectations).where(expectations.c.id.in_(list(ids))))
    return {row.id: read_expectation(row) for row in rows}


def list_agent_rows(connection: Connection, *, after: str | None, limit: int) -> tuple[Row[Any], ...]:
    """Return id and timestamp of each agent's newest entry, sorted by agent; with `after`, of the agents after this one."""
    # The index is sorted by agent: each step skips to the next agent, however many entries an agent has.
    first = select(func.min(entries.c.agent_id).label("agent_id"))
    names = (first if after is None else first.where(entries.c.agent_id > after)).cte("names", recursive=True)
    next_one = select(func.min(entries.c.agent_id)).where(entries.c.agent_id > names.c.agent_id).scalar_subquery()
    names = names.union_all(select(next_one).where(names.c.agent_id.is_not(None)))
    some = select(names.c.agent_id).where(names.c.agent_id.is_not(None)).limit(limit).subquery("some")
    newest = (
        select(func.max(_NEWEST.c.number))
        .where(_NEWEST.c.agent_id == some.c.agent_id)
        .correlate(some)
        .scalar_subquery()
    )
    query = select(entries.c.agent_id, entries.c.id, entries.c.created_at).join(some, entries.c.number == newest)
    return tuple(connection.execute(query.order_by(entries.c.agent_id)))


def find_bounded_entry(
    connection: Connection, entry_id: str, most: int
) -> tuple[JournalEntry, Mapping[str, int], tuple[JournalEntry, ...]] | None:
    """Return an entry with the newest of all that belongs to it, how much there is of each kind, and its newest children.

    At most `most` of a kind are returned; None for an unknown entry.
    """
    row = connection.execute(select(entries).where(entries.c.id == entry_id)).one_or_none()
    if row is None:
        return None
    newest, counts = {}, {}
    for name, table, columns in _PARTS:
        of_entry = table.c.entry_id == entry_id
        query = select(*columns).where(of_entry).order_by(table.c.number.desc()).limit(most)
        newest[name] = connection.execute(query).all()[::-1]
        counts[name] = len(newest[name])
        if counts[name] == most:
            counts[name] = connection.scalar(select(func.count()).select_from(table).where(of_entry)) or 0
    children = select(entries).where(entries.c.parent_id == entry_id).order_by(entries.c.number.desc()).limit(most)
    return read_entry(row, **newest), counts, tuple(map(read_entry, connection.execute(children)))


def list_orphans(connection: Connection, *, limit: int) -> tuple[Signal, ...]:
    """Return the signals that found no entry, the newest first."""
    chosen = select(*_LISTED_SIGNAL).where(_IS_ORPHAN).order_by(signals.c.created_at.desc(), signals.c.number.desc())
    return tuple(map(read_signal, connection.execute(chosen.limit(limit))))


def list_unread_words(connection: Connection, *, since: int, limit: int) -> tuple[Signal, ...]:
    """Return what people said at this timestamp or later that decided nothing, of entries that no person has judged."""
    # A literal, so that the database can use the index of neutral signals.
    is_neutral = and_(signals.c.signal_type == literal_column("'neutral'"), signals.c.source.in_((GITHUB, HUMAN)))
    newest_first = (signals.c.created_at.desc(), signals.c.number.desc())
    # Most neutral signals may be of checks that were skipped: only the newest are looked at.
    newest = select(signals.c.number).where(is_neutral, signals.c.created_at >= since).order_by(*newest_first)
    is_said = or_(*(signals.c.data["event"].as_string() == event for event in COMMENTS), signals.c.source == HUMAN)
    chosen = (
        select(*_LISTED_SIGNAL)
        .join(entries, entries.c.id == signals.c.entry_id)
        .where(signals.c.number.in_(newest.limit(_MOST_NEUTRAL)), is_said, entries.c.human_word.is_(None))
        .order_by(*newest_first)
    )
    return tuple(map(read_signal, connection.execute(chosen.limit(limit))))


def list_unjudged(connection: Connection, *, without_agent: str, since: int, limit: int) -> tuple[JournalEntry, ...]:
    """Return the newest failures of agents that changed at this timestamp or later and that no person has judged."""
    is_failure = entries.c.assessment == literal_column(f"'{Assessment.FAILURE}'")
    # Repeated as a literal, so that the database can use the index of the rare assessments.
    is_rare = entries.c.assessment != literal_column("'success'")
    chosen = select(entries).where(
        is_failure,
        is_rare,
        entries.c.human_word.is_(None),
        entries.c.agent_id != without_agent,
        entries.c.updated_at >= since,
    )
    return tuple(map(read_entry, connection.execute(chosen.order_by(entries.c.number.desc()).limit(limit))))


def list_unfinished(connection: Connection, *, without_agent: str, before: int, limit: int) -> tuple[JournalEntry, ...]:
    """Return the newest intents of agents, begun before this timestamp, of which nothing was heard: no outcome and no expectation."""
    chosen = select(entries).where(
        entries.c.closed_at.is_(None),
        entries.c.immediate_result == ImmediateResult.UNKNOWN.value,
        entries.c.open_count == 0,
        entries.c.agent_id != without_agent,
        entries.c.created_at < before,
    )
    return tuple(map(read_entry, connection.execute(chosen.order_by(entries.c.number.desc()).limit(limit))))


def count_entries(
    connection: Connection, *, agent_id: str | None, since: int | None
) -> tuple[list[Count], list[Count]]:
    """Count the entries that began at this timestamp or later: by day (UTC) and assessment, and by intent type and assessment."""
    # The tally has whole days, so the rest of a day that has begun before the timestamp is counted apart.
    first_day = None if since is None else -(-since // _DAY_MS)
    # Years have many rows, so the database adds them up.
    days, kinds = (
        [*connection.execute(_sum_tally(agent_id, first_day, by=column))]
        for column in (entry_tally.c.day, entry_tally.c.intent_type)
    )
    if since is not None and first_day is not None and since % _DAY_MS:
        more = _count_first_day(connection, agent_id, since, first_day * _DAY_MS)
        return [*days, *((first_day - 1, *row[1:]) for row in more)], [*kinds, *more]
    return days, kinds


def _sum_tally(agent_id: str | None, first_day: int | None, *, by: Any) -> Any:
    amount = func.sum(entry_tally.c.amount)
    query = select(by, entry_tally.c.assessment, amount)
    query = query.where(entry_tally.c.agent_id == (agent_id or ALL_AGENTS))
    if first_day is not None:
        query = query.where(entry_tally.c.day >= first_day)
    return query.group_by(by, entry_tally.c.assessment).having(amount > 0)


def _count_first_day(connection: Connection, agent_id: str | None, since: int, until: int) -> list[Count]:
    kind = func.coalesce(entries.c.intent_type, literal_column("''"))
    chosen = (
        select(kind, entries.c.assessment, func.count())
        .where(entries.c.created_at >= since, entries.c.created_at < until)
        .group_by(kind, entries.c.assessment)
    )
    if agent_id is not None:
        # Not a plain column, so that the database uses the index of timestamps.
        chosen = chosen.where(func.coalesce(entries.c.agent_id, "") == agent_id)
    return list(connection.execute(chosen))
