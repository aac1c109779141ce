"""Receive a signal: route it, record it once with what follows from it, and give orphans another chance.

Apart from `reroute_orphans`, each function works on an open connection, inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Integer, Text, bindparam, func, literal_column, select

from pytest_golden.errors import JournalError
from pytest_golden.journal import routing_store
from pytest_golden.journal.assessment_store import SIGNAL_COLUMNS, Change, get_standing, override, read_signal
from pytest_golden.journal.hints import SOURCE, Words, anchors_of, fits, read_words
from pytest_golden.journal.model import Assessment, Expectation, ImmediateResult, RoutedBy, Signal, SignalType
from pytest_golden.journal.routing import MOST_KEPT, News, Route, explain_correction, route
from pytest_golden.journal.rules import FORGES, HUMAN, Rules, corrects, rules_of
from pytest_golden.journal.store import Received, SweptStore, answer_also, correct, take_signal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import entries, expectations, signals
from pytest_golden.storage.statements import Prepared, Question, ask, is_near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.journal.routing import Candidate

_WORDS = {SignalType.POSITIVE: Assessment.SUCCESS, SignalType.CORRECTION: Assessment.FAILURE}
_DIGITS = 32
_READ_AT_ONCE = 500
_TAKEN_AT_ONCE = 100
_SIGNALS = select(*(signals.c[name] for name in SIGNAL_COLUMNS))
_BY_EXTERNAL_ID = _SIGNALS.where(
    signals.c.source == bindparam("the_source"), signals.c.external_id == bindparam("the_external_id")
)
_BY_CONTENT = (
    _SIGNALS.add_columns(signals.c.expectation_mark)
    .where(signals.c.content_digest == bindparam("the_digest"))
    .order_by(signals.c.number.desc())
    .limit(1)
)
_LAST_EXPECTATION = select(func.max(expectations.c.number)).scalar_subquery()
_LAST_NUMBERS = Prepared(
    select(
        func.coalesce(_LAST_EXPECTATION, 0).label("expectation"),
        func.coalesce(select(func.max(signals.c.number)).scalar_subquery(), 0).label("signal"),
    )
)
# Read from the end, where the row is found at once.
_LAST_BEFORE = (
    select(expectations.c.number)
    .where(expectations.c.created_at <= bindparam("the_timestamp", type_=BigInteger()))
    .order_by(expectations.c.number.desc())
    .limit(1)
)
_LATEST_OF_SESSION = Prepared(
    select(entries.c.id, entries.c.immediate_result)
    .where(
        entries.c.agent_id == bindparam("the_agent", type_=Text()),
        entries.c.session_key == bindparam("the_session", type_=Text()),
    )
    .order_by(entries.c.number.desc())
    .limit(1)
)
_AGENTS_OF_SESSION = Prepared(
    select(entries.c.agent_id)
    .where(entries.c.session_key == bindparam("the_session", type_=Text()))
    .group_by(entries.c.agent_id)
    .limit(2)
)
_HINTS_OF_ENTRY = Prepared(select(expectations.c.match_hint).where(expectations.c.entry_id == bindparam("the_entry")))
_RESOLVER = Prepared(
    _SIGNALS.join(expectations, expectations.c.resolved_by == signals.c.id).where(
        expectations.c.id == bindparam("the_expectation", type_=Text()),
        # Good news does not answer "no incidents".
        expectations.c.polarity == literal_column("'positive'"),
    )
)
_WORD = Prepared(select(entries.c.human_word).where(entries.c.id == bindparam("the_entry")))
_CREATED = select(entries.c.created_at).where(entries.c.id == bindparam("the_entry"))
_CREATED_AT = Prepared(_CREATED)
_ORPHANS = (
    _SIGNALS.add_columns(signals.c.agent_id, signals.c.session_key, signals.c.number)
    .where(signals.c.routed_by == literal_column("'orphan'"))
    .order_by(signals.c.created_at, signals.c.number)
)
_ORPHANS_SINCE = _ORPHANS.where(signals.c.created_at >= bindparam("the_timestamp", type_=BigInteger()))
_ORPHANS_SINCE_ENTRY = Prepared(_ORPHANS.where(signals.c.created_at >= _CREATED.scalar_subquery()))
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
# The number of a signal with the same news, how many expectations are open, and the number of the last expectation. The keys:
# whether the signal has an external id, and whether one agent is searched.
_SURROUNDINGS = {
    (has_id, is_of_agent): Prepared(
        select(
            known.with_only_columns(signals.c.number).scalar_subquery().label("known"),
            counted.scalar_subquery().label("open_count"),
            _LAST_EXPECTATION.label("last_expectation"),
        )
    )
    for has_id, known in ((True, _BY_EXTERNAL_ID), (False, _BY_CONTENT))
    for is_of_agent, counted in ((True, routing_store.COUNT_OF_AGENT), (False, routing_store.COUNT_OF_ANY))
}


class LastNumbers(NamedTuple):
    """The numbers of the expectation and of the signal that were recorded last, 0 without any."""

    expectation: int
    signal: int


class Owner(NamedTuple):
    """Whose an entry is."""

    agent_id: str
    session_key: str | None


class Orphan(NamedTuple):
    """A signal without an entry, the agent and session that it would belong to, and its number in the order of recording."""

    signal: Signal
    agent_id: str | None
    session_key: str | None
    number: int


class Incoming(NamedTuple):
    """A signal to be received, its words, and the digest that identifies its content if it has no external id."""

    signal: Signal
    agent_id: str | None
    session_key: str | None
    words: Words
    digest: str | None


def read_incoming(signal: Signal, agent_id: str | None, session_key: str | None) -> Incoming:
    """Prepare a signal for `receive`; an entry that `signal.entry_id` names must exist and be this agent's."""
    digest = None if signal.external_id is not None else _digest(signal, agent_id, session_key)
    return Incoming(signal, agent_id, session_key, read_words(signal.source, signal.data), digest)


def ask_for_agents(session_key: str) -> Question:
    """Ask which agents have entries in a session, for `read_only_agent`."""
    return Question(_AGENTS_OF_SESSION, {"the_session": session_key})


def read_only_agent(rows: Iterable[Any]) -> str | None:
    """Return the agent of a session, from the answer to `ask_for_agents`; None if there is none, or several."""
    found = [row[0] for row in rows]
    return found[0] if len(found) == 1 else None


def ask_about(one: Incoming, *, near: bool) -> tuple[Question, ...]:
    """Return the queries that every signal needs before it is routed; `near` tells that the store is not on a server."""
    signal, agent_id = one.signal, one.agent_id
    has_id = signal.external_id is not None
    known = _name_id(signal.source, signal.external_id) if has_id else {"the_digest": one.digest}
    surroundings = Question(
        _SURROUNDINGS[has_id, agent_id is not None], {**known, **routing_store.name_agent(agent_id)}
    )
    return surroundings, *routing_store.ask_for_candidates(one.words, agent_id, signal.entry_id, near=near)


def receive(
    connection: Connection, one: Incoming, rules: Mapping[str, Rules], answers: Sequence[Iterator[Any]] = ()
) -> Signal:
    """Route a signal and record it with everything that follows from it; repeated news returns the signal recorded first.

    `answers` are the answers to `ask_about`, if the caller has already sent those queries together with others.
    """
    signal, agent_id, session_key, words, digest = one
    surroundings, *candidates = answers or ask(connection, *ask_about(one, near=is_near(connection)))
    ((known, open_count, last_expectation),) = surroundings
    if known is not None and signal.external_id is not None:
        return read_signal(connection.execute(_BY_EXTERNAL_ID, _name_id(signal.source, signal.external_id)).one())
    target = _find_target_of_word(connection, signal, agent_id, session_key)
    news = News(
        words,
        signal.signal_type,
        to_ms(signal.created_at),
        agent_id,
        session_key,
        signal.entry_id,
        by_hint_only=target is not None,
    )
    if known is None or _is_new_word(connection, signal, target):
        found = routing_store.find_route(connection, news, answers=candidates)
    else:
        earlier = connection.execute(_BY_CONTENT, {"the_digest": digest}).one()
        found = routing_store.find_route(connection, news, after=_find_mark(connection, earlier), answers=candidates)
        if found.taken is None:
            return read_signal(earlier)
    received = Received(
        found.rule, write_routing(found, open_count), agent_id, session_key, digest, last_expectation or 0
    )
    corrected = _find_corrected(connection, signal, found)
    if corrected is not None:
        bad, answered = corrected
        explained = write_routing(explain_correction(found, bad.id, answered), open_count)
        received = received._replace(routed_by=RoutedBy.MATCH_HINT, routing=explained)
        of_agent = rules_of(answered[0].agent_id, rules)
        places = [(one.entry_id, one.id) for one in answered]
        return correct(connection, signal, bad, places, received, rules=of_agent)
    return _keep(connection, signal, found, received, target, rules)


def _find_corrected(connection: Connection, signal: Signal, found: Route) -> tuple[Signal, list[Candidate]] | None:
    """Find a forge's earlier bad news about the same, which this good news takes back, and the expectations that it has answered."""
    is_good = signal.source in FORGES and signal.signal_type is SignalType.POSITIVE
    if not is_good or signal.entry_id is not None or found.taken is not None:
        return None
    known = []
    for one in sorted(found.unmet, key=lambda one: one.number, reverse=True):
        rows = _RESOLVER.run(connection, {"the_expectation": one.id}).fetchall()
        known += [(one, read_signal(row)) for row in _RESOLVER.decode(rows) if row.source == signal.source]
    for one, earlier in known:
        if earlier.entry_id == one.entry_id and corrects(signal.data, earlier.data):
            also = [other for other, resolver in known if other is not one and resolver.id == earlier.id]
            return earlier, [one, *also]
    return None


def find_by_external_id(connection: Connection, source: str, external_id: str) -> Signal | None:
    """Find the signal that this source has sent under this id."""
    row = connection.execute(_BY_EXTERNAL_ID, _name_id(source, external_id)).one_or_none()
    return None if row is None else read_signal(row)


def find_last_numbers(connection: Connection) -> LastNumbers:
    """Return the numbers of the last expectation and the last signal."""
    return LastNumbers(*_LAST_NUMBERS.first(connection, {}))


def write_routing(route: Route, open_count: int = 0) -> dict[str, Any]:
    """Return the explanation that is stored with a signal: the first verdicts, and the number of other open expectations."""
    kept = [verdict.to_dict() for verdict in route.verdicts[:MOST_KEPT]]
    return {"candidates": kept, "others": max(len(route.verdicts), open_count) - len(kept)}


def _name_id(source: str, external_id: str | None) -> dict[str, Any]:
    return {"the_source": source, "the_external_id": external_id}


def _find_mark(connection: Connection, earlier: Any) -> int:
    """Return the number of the last expectation at the time when news was first received."""
    if earlier.expectation_mark is not None:
        return int(earlier.expectation_mark)
    return connection.scalar(_LAST_BEFORE, {"the_timestamp": earlier.created_at}) or 0


def _find_target_of_word(
    connection: Connection, signal: Signal, agent_id: str | None, session_key: str | None
) -> str | None:
    """Find the entry that a person judges: the entry that the signal names, else the latest entry of its session."""
    if signal.source != HUMAN or signal.signal_type not in _WORDS:
        return None
    if signal.entry_id is not None or agent_id is None or session_key is None:
        return signal.entry_id
    row = _LATEST_OF_SESSION.first(connection, {"the_agent": agent_id, "the_session": session_key})
    return None if row is None else row.id


def _is_new_word(connection: Connection, signal: Signal, target: str | None) -> bool:
    # The last word wins, so an earlier word counts again after a different one.
    return (
        target is not None and _WORD.first(connection, {"the_entry": target}).human_word != _WORDS[signal.signal_type]
    )


def _digest(signal: Signal, agent_id: str | None, session_key: str | None) -> str:
    said = [signal.entry_id, signal.source, signal.signal_type.value, signal.summary, signal.data]
    content = json.dumps([agent_id, session_key, *said], sort_keys=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:_DIGITS]


def _keep(
    connection: Connection,
    signal: Signal,
    found: Route,
    received: Received,
    target: str | None,
    rules: Mapping[str, Rules],
) -> Signal:
    named = signal.entry_id
    if found.taken is not None:
        signal = replace(signal, entry_id=found.taken.entry_id)
    elif target is not None:
        signal = replace(signal, entry_id=target)
        received = received._replace(routed_by=RoutedBy.SESSION_KEY if named is None else RoutedBy.ENTRY)
    elif named is None and (entry_id := _find_entry_of_session(connection, signal, received)) is not None:
        signal = replace(signal, entry_id=entry_id)
        received = received._replace(routed_by=RoutedBy.SESSION_KEY)
    if target is not None and signal.entry_id == target:
        change = Change(HUMAN, to_ms(signal.created_at), signal.summary, {"signal": signal.id})
        override(connection, target, _WORDS[signal.signal_type], change)
    expectation_id = None if found.taken is None else found.taken.id
    agent_id = received.agent_id if found.taken is None else found.taken.agent_id
    of_agent = rules_of(agent_id, rules)
    taken = take_signal(connection, signal, expectation_id, received, rules=of_agent)
    for one in found.also:
        answer_also(connection, signal, one.entry_id, one.id, rules=of_agent)
    return taken


def _find_entry_of_session(connection: Connection, signal: Signal, received: Received) -> str | None:
    """Find the entry that news of a session is about when it answers nothing: the latest, if its work has ended.

    While it has not, the news waits as an orphan: what is expected may be told with the outcome.
    """
    if received.agent_id is None or received.session_key is None:
        return None
    names = {"the_agent": received.agent_id, "the_session": received.session_key}
    row = _LATEST_OF_SESSION.first(connection, names)
    if row is None:
        return None
    hints = _list_hints(connection, row.id)
    has_ended = hints or row.immediate_result != ImmediateResult.UNKNOWN.value
    return row.id if has_ended and not _is_about_another(signal, hints) else None


def _list_hints(connection: Connection, entry_id: str) -> list[Mapping[str, Any] | None]:
    rows = _HINTS_OF_ENTRY.run(connection, {"the_entry": entry_id}).fetchall()
    return [row.match_hint for row in _HINTS_OF_ENTRY.decode(rows)]


def _is_about_another(signal: Signal, hints: Iterable[Mapping[str, Any] | None]) -> bool:
    """Tell whether a key of a hint has another value in the signal, apart from its source."""
    words = read_words(signal.source, signal.data)
    pairs = ((key, value) for hint in hints for key, value in (hint or {}).items() if key != SOURCE)
    return any(key in words and not fits({key: value}, words) for key, value in pairs)


def route_to_new(
    connection: Connection, entry_id: str, owner: Owner, new: Sequence[Expectation], rules: Mapping[str, Rules]
) -> None:
    """Assign orphans, the oldest first, that fit the hint of a new expectation of one entry, or are of its session."""
    hints = [expectation.match_hint for expectation in new if expectation.match_hint]
    if not hints and owner.session_key is None:
        return
    rows = _ORPHANS_SINCE_ENTRY.run(connection, {"the_entry": entry_id}).fetchall()
    orphans = [
        one for one in _read_orphans(_ORPHANS_SINCE_ENTRY.decode(rows)) if one.agent_id in {None, owner.agent_id}
    ]
    fitting = [one for one in orphans if any(fits(hint, _make_news(one).words) for hint in hints)]
    _assign(connection, fitting, rules)
    rest = [one for one in orphans if one not in fitting and (one.agent_id, one.session_key) == owner]
    if owner.session_key is not None and rest:
        of_agent = rules_of(owner.agent_id, rules)
        all_hints = _list_hints(connection, entry_id)
        for orphan in (one for one in rest if not _is_about_another(one.signal, all_hints)):
            received = Received(RoutedBy.SESSION_KEY, None, owner.agent_id)
            signal = replace(orphan.signal, entry_id=entry_id)
            take_signal(connection, signal, None, received, is_kept=True, rules=of_agent)


def reroute_orphans(swept: SweptStore, timestamp: datetime, since: LastNumbers | None = None) -> int:
    """Assign orphans to expectations whose hints they fit, for example after an import; return how many were assigned.

    Examining tens of thousands takes seconds, so it reads first, and writes only what fits, in small batches. Expectations
    that are due at `timestamp` are resolved first. With `since`, only pairs in which one part is newer are examined.

    Raises:
        StorageError: the store cannot be read or written.
    """
    fitting = _find_fitting(swept, since)
    taken = 0
    for start in range(0, max(len(fitting), 1), _TAKEN_AT_ONCE):
        some = fitting[start : start + _TAKEN_AT_ONCE]
        taken += swept.after_sweep(timestamp, partial(_route_again, ids=some, rules=swept.rules))
    return taken


def attach(connection: Connection, signal_id: str, entry_id: str, rules: Mapping[str, Rules]) -> Signal:
    """Give an orphan to an entry, as news of the entry alone, and return the signal as it is stored then.

    Raises:
        JournalError: there is no such signal or entry, the signal has found an entry already, or it is another agent's than the entry.
    """
    found = _read_orphans(connection.execute(_ORPHANS.where(signals.c.id == signal_id)).all())
    if not found:
        raise JournalError(
            f"no signal {signal_id!r:.100} waits as an orphan; `golden journal orphans` lists those that do"
        )
    standing = get_standing(connection, entry_id)
    if found[0].agent_id not in {None, standing.agent_id}:
        raise JournalError(
            f"signal {signal_id} is for agent {found[0].agent_id!r:.100}, and the entry is of {standing.agent_id!r:.100}"
        )
    received = Received(RoutedBy.ENTRY, None, standing.agent_id)
    signal = replace(found[0].signal, entry_id=entry_id)
    return take_signal(connection, signal, None, received, is_kept=True, rules=rules_of(standing.agent_id, rules))


def _route_again(connection: Connection, ids: Sequence[str], rules: Mapping[str, Rules]) -> int:
    """Assign those of these signals that are orphans, the oldest first, as `reroute_orphans` does."""
    return _assign(connection, _read_orphans(connection.execute(_ORPHANS.where(signals.c.id.in_(ids))).all()), rules)


def _assign(connection: Connection, orphans: Iterable[Orphan], rules: Mapping[str, Rules]) -> int:
    taken = 0
    for orphan in orphans:
        found = _find_place(connection, orphan)
        if found.taken is not None:
            signal = replace(orphan.signal, entry_id=found.taken.entry_id)
            received = Received(found.rule, write_routing(found), orphan.agent_id)
            of_agent = rules_of(found.taken.agent_id, rules)
            take_signal(connection, signal, found.taken.id, received, is_kept=True, rules=of_agent)
            taken += 1
    return taken


def _find_fitting(swept: SweptStore, since: LastNumbers | None) -> list[str]:
    """Return the ids of the orphans that fit an expectation now, the oldest first."""
    fitting: list[Orphan] = []
    last = -1
    if since is not None:
        last = since.signal
        with swept.store.read() as connection:
            fitting += _find_answers(connection, since)
    while True:
        with swept.store.read() as connection:
            orphans = _read_orphans(connection.execute(_ORPHANS_AFTER, {"the_number": last, "the_most": _READ_AT_ONCE}))
            fitting += (one for one in orphans if _find_place(connection, one).taken is not None)
        if len(orphans) < _READ_AT_ONCE:
            fitting.sort(key=lambda one: (one.signal.created_at, one.number))
            return [one.signal.id for one in fitting]
        last = orphans[-1].number


def _find_answers(connection: Connection, since: LastNumbers) -> list[Orphan]:
    """Return the orphans recorded up to `since` that fit an expectation recorded after it."""
    found = _NEW_ANCHORS.run(connection, {"the_number": since.expectation}).fetchall()
    if not found:
        return []
    new_anchors = {anchor for anchor, _ in found}
    rows = connection.execute(_ORPHANS_SINCE, {"the_timestamp": min(began for _, began in found)})
    return [
        one
        for one in _read_orphans(rows.all())
        if one.number <= since.signal
        and not new_anchors.isdisjoint(anchors_of(read_words(one.signal.source, one.signal.data)))
        and _find_place(connection, one).taken is not None
    ]


def _find_place(connection: Connection, orphan: Orphan) -> Route:
    """Find the expectation whose hint an orphan fits now, of an entry that began before it was received."""
    news = _make_news(orphan)
    found = routing_store.find_by_hint(connection, news)
    began = {one.id: _CREATED_AT.first(connection, {"the_entry": one.entry_id}).created_at for one in found}
    return route(news, [one for one in found if began[one.id] <= news.timestamp])


def _read_orphans(rows: Iterable[Any]) -> list[Orphan]:
    return [Orphan(read_signal(row), row.agent_id, row.session_key, row.number) for row in rows]


def _make_news(orphan: Orphan) -> News:
    signal = orphan.signal
    words = read_words(signal.source, signal.data)
    return News(words, signal.signal_type, to_ms(signal.created_at), orphan.agent_id, by_hint_only=True)
