"""Look up what receiving a signal needs. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Integer, Row, Text, bindparam, func, literal_column, select

from pytest_golden.journal.model import Assessment, Signal
from pytest_golden.journal.routing_store import COUNT_OF_AGENT, COUNT_OF_ANY, name_agent
from pytest_golden.journal.rows import READ_SIGNAL_COLUMNS, read_signal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import entries, expectations, signals
from pytest_golden.storage.statements import Prepared, Question

if TYPE_CHECKING:
    from collections.abc import Sequence


_SIGNALS = select(*(signals.c[name] for name in READ_SIGNAL_COLUMNS))
_BY_EXTERNAL_ID = _SIGNALS.where(
    signals.c.source == bindparam("the_source"), signals.c.external_id == bindparam("the_external_id")
)
_HAS_EXTERNAL_ID = Prepared(_BY_EXTERNAL_ID.with_only_columns(signals.c.number))
_BY_CONTENT = (
    _SIGNALS.add_columns(signals.c.expectation_mark)
    .where(signals.c.content_digest == bindparam("the_digest"))
    .order_by(signals.c.number.desc())
    .limit(1)
)
_HAS_CONTENT = _BY_CONTENT.with_only_columns(signals.c.number)
_LAST_EXPECTATION = Prepared(select(func.max(expectations.c.number).label("number")))
_LAST_SIGNAL = Prepared(select(func.max(signals.c.number).label("number")))
# Read from the end, where the row is found at once.
_LAST_BEFORE = (
    select(expectations.c.number)
    .where(expectations.c.created_at <= bindparam("the_timestamp", type_=BigInteger()))
    .order_by(expectations.c.number.desc())
    .limit(1)
)
_LATEST_OF_SESSION = Prepared(
    select(entries.c.id)
    .where(
        entries.c.agent_id == bindparam("the_agent", type_=Text()),
        entries.c.session_key == bindparam("the_session", type_=Text()),
    )
    .order_by(entries.c.number.desc())
    .limit(1)
)
_WORD = Prepared(select(entries.c.human_word).where(entries.c.id == bindparam("the_entry")))
_BEGAN = Prepared(select(entries.c.created_at).where(entries.c.id == bindparam("the_entry")))
_ORPHANS = (
    _SIGNALS.add_columns(signals.c.agent_id, signals.c.number)
    .where(signals.c.routed_by == literal_column("'orphan'"))
    .order_by(signals.c.created_at, signals.c.number)
)
_ORPHANS_SINCE = _ORPHANS.where(signals.c.created_at >= bindparam("the_timestamp", type_=BigInteger()))
_BEGINNING = select(entries.c.created_at).where(entries.c.id == bindparam("the_entry")).scalar_subquery()
_ORPHANS_SINCE_ENTRY = Prepared(_ORPHANS.where(signals.c.created_at >= _BEGINNING))
_ORPHANS_AFTER = (
    _ORPHANS.where(signals.c.number > bindparam("the_number", type_=BigInteger()))
    .order_by(None)
    .order_by(signals.c.number)
    .limit(bindparam("the_most", type_=Integer()))
)

_NEW_ANCHORS = Prepared(
    select(expectations.c.hint_anchor, func.min(entries.c.created_at).label("began"))
    .join(entries, entries.c.id == expectations.c.entry_id)
    .where(expectations.c.number > bindparam("the_number", type_=BigInteger()), expectations.c.hint_anchor.is_not(None))
    .group_by(expectations.c.hint_anchor)
)

# The keys: whether the signal has an external id, and whether one agent is searched.
_SURROUNDINGS = {
    (has_id, is_of_agent): Prepared(
        select(
            known.scalar_subquery().label("known"),
            counted.scalar_subquery().label("open_count"),
            select(func.max(expectations.c.number)).scalar_subquery().label("last_expectation"),
        )
    )
    for has_id, known in ((True, _BY_EXTERNAL_ID.with_only_columns(signals.c.number)), (False, _HAS_CONTENT))
    for is_of_agent, counted in ((True, COUNT_OF_AGENT), (False, COUNT_OF_ANY))
}


class Surroundings(NamedTuple):
    """The numbers of a signal with the same news, if any, and of the last expectation; how many expectations are open."""

    known: int | None
    open_count: int
    last_expectation: int | None


class LastNumbers(NamedTuple):
    """The numbers of the expectation and of the signal that were recorded last, 0 without any."""

    expectation: int
    signal: int


class Earlier(NamedTuple):
    """A signal with the same news, and the last expectation at that time (None: unknown)."""

    signal: Signal
    mark: int | None


class Orphan(NamedTuple):
    """A signal without an entry, the agent that it would belong to, and its number in the order of recording."""

    signal: Signal
    agent_id: str | None
    number: int


def ask_for_surroundings(signal: Signal, digest: str | None, agent_id: str | None) -> Question:
    """Ask for one `Surroundings`: repeated news has the same external id, or without one the same content."""
    statement = _SURROUNDINGS[signal.external_id is not None, agent_id is not None]
    known = {"the_source": signal.source, "the_external_id": signal.external_id}
    return Question(
        statement, {**({"the_digest": digest} if signal.external_id is None else known), **name_agent(agent_id)}
    )


def find_by_external_id(connection: Connection, source: str, external_id: str) -> Signal | None:
    """Find the signal that this source has sent under this id."""
    names = {"the_source": source, "the_external_id": external_id}
    if _HAS_EXTERNAL_ID.first(connection, names) is None:
        return None
    return get_by_external_id(connection, source, external_id)


def get_by_external_id(connection: Connection, source: str, external_id: str) -> Signal:
    """Return the signal that this source has sent under this id; it must exist."""
    names = {"the_source": source, "the_external_id": external_id}
    return read_signal(connection.execute(_BY_EXTERNAL_ID, names).one())


def find_by_content(connection: Connection, digest: str) -> Earlier | None:
    """Find the newest signal with this content."""
    row = connection.execute(_BY_CONTENT, {"the_digest": digest}).one_or_none()
    if row is None:
        return None
    return Earlier(read_signal(row), row.expectation_mark)


def find_mark(connection: Connection, earlier: Earlier) -> int:
    """Return the number of the last expectation at the time when this news was first received."""
    if earlier.mark is not None:
        return earlier.mark
    found = connection.scalar(_LAST_BEFORE, {"the_timestamp": to_ms(earlier.signal.created_at)})
    return int(found or 0)


def find_last_expectation(connection: Connection) -> int:
    """Return the number of the expectation that was recorded last, 0 without any."""
    return _LAST_EXPECTATION.first(connection, {}).number or 0


def find_last_numbers(connection: Connection) -> LastNumbers:
    """Return the numbers of the last expectation and the last signal."""
    return LastNumbers(find_last_expectation(connection), _LAST_SIGNAL.first(connection, {}).number or 0)


def find_new_anchors(connection: Connection, number: int) -> tuple[frozenset[int], int | None]:
    """Return the anchors of the expectations recorded after this number, and when the first entry of these began, if any."""
    rows = _NEW_ANCHORS.run(connection, {"the_number": number}).fetchall()
    return frozenset(anchor for anchor, _ in rows), min((began for _, began in rows), default=None)


def find_latest_entry(connection: Connection, agent_id: str, session_key: str) -> str | None:
    """Find the entry that an agent began last in a session."""
    row = _LATEST_OF_SESSION.first(connection, {"the_agent": agent_id, "the_session": session_key})
    return None if row is None else row.id


def read_word(connection: Connection, entry_id: str) -> Assessment | None:
    """Read a person's last word on an entry."""
    row = _WORD.first(connection, {"the_entry": entry_id})
    return None if row is None or row.human_word is None else Assessment(row.human_word)


def read_beginning(connection: Connection, entry_id: str) -> int:
    """Return when an entry began, in milliseconds since the epoch; it must be there."""
    return int(_BEGAN.first(connection, {"the_entry": entry_id}).created_at)


def list_orphans_since(connection: Connection, timestamp: int) -> tuple[Orphan, ...]:
    """Return the orphans received at this timestamp or later, the oldest first."""
    return tuple(map(_read_orphan, connection.execute(_ORPHANS_SINCE, {"the_timestamp": timestamp}).all()))


def list_orphans_since_entry(connection: Connection, entry_id: str) -> tuple[Orphan, ...]:
    """Return the orphans received when this entry began or later, the oldest first."""
    rows = _ORPHANS_SINCE_ENTRY.run(connection, {"the_entry": entry_id}).fetchall()
    return tuple(map(_read_orphan, _ORPHANS_SINCE_ENTRY.decode(rows)))


def list_orphans_after(connection: Connection, number: int, limit: int) -> tuple[Orphan, ...]:
    """Return at most `limit` orphans recorded after this number, in the order of recording."""
    rows = connection.execute(_ORPHANS_AFTER, {"the_number": number, "the_most": limit})
    return tuple(map(_read_orphan, rows.all()))


def list_orphans_of(connection: Connection, ids: Sequence[str]) -> tuple[Orphan, ...]:
    """Return those of these signals that are orphans, the oldest first."""
    return tuple(map(_read_orphan, connection.execute(_ORPHANS.where(signals.c.id.in_(ids))).all()))


def _read_orphan(row: Row[Any]) -> Orphan:
    return Orphan(read_signal(row), row.agent_id, row.number)
