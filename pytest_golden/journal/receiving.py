"""Receive a signal: route it, record it once with what follows from it, and give orphans another chance.

Apart from `reroute_orphans`, each function works on an open connection, inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.assessment_store import Change, override
from pytest_golden.journal.hints import Words, anchors_of, read_words
from pytest_golden.journal.model import Assessment, Expectation, ExpectationStatus, RoutedBy, Signal, SignalType
from pytest_golden.journal.receiving_store import (
    Surroundings,
    ask_for_surroundings,
    find_by_content,
    find_latest_entry,
    find_mark,
    find_new_anchors,
    get_by_external_id,
    list_orphans_after,
    list_orphans_of,
    list_orphans_since,
    list_orphans_since_entry,
    read_beginning,
    read_word,
)
from pytest_golden.journal.routing import MOST_KEPT, Candidate, News, Route, route
from pytest_golden.journal.routing_store import ask_for_candidates, find_by_hint, find_route
from pytest_golden.journal.rules import DEFAULT_RULES, HUMAN, Rules, settle
from pytest_golden.journal.store import Received, SweptStore, take_signal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.statements import Question, ask, is_near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.journal.receiving_store import LastNumbers, Orphan

_WORDS = {SignalType.POSITIVE: Assessment.SUCCESS, SignalType.CORRECTION: Assessment.FAILURE}
_DIGITS = 32
_READ_AT_ONCE = 500
_TAKEN_AT_ONCE = 100


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


def ask_about(one: Incoming, *, near: bool) -> tuple[Question, ...]:
    """Return the queries that every signal needs before it is routed; `near` tells that the store is not on a server."""
    surroundings = ask_for_surroundings(one.signal, one.digest, one.agent_id)
    return surroundings, *ask_for_candidates(one.words, one.agent_id, one.signal.entry_id, near=near)


def receive(
    connection: Connection, one: Incoming, rules: Mapping[str, Rules], answers: Sequence[Iterator[Any]] = ()
) -> Signal:
    """Route a signal and record it with everything that follows from it; repeated news returns the signal recorded first.

    `answers` are the answers to `ask_about`, if the caller has already sent those queries together with others.
    """
    signal, agent_id, session_key, words, digest = one
    surroundings, *candidates = answers or ask(connection, *ask_about(one, near=is_near(connection)))
    (around,) = map(Surroundings._make, surroundings)
    is_known = around.known is not None
    if is_known and signal.external_id is not None:
        return get_by_external_id(connection, signal.source, signal.external_id)
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
    earlier = find_by_content(connection, digest) if is_known and digest is not None else None
    if earlier is None or _is_new_word(connection, signal, target):
        found = find_route(connection, news, answers=candidates)
    else:
        found = find_route(connection, news, after=find_mark(connection, earlier), answers=candidates)
        if found.taken is None:
            return earlier.signal
    routing = write_routing(found, around.open_count)
    received = Received(found.rule, routing, agent_id, session_key, digest, around.last_expectation or 0)
    return _keep(connection, signal, found, received, target, rules)


def write_routing(route: Route, open_count: int = 0) -> dict[str, Any]:
    """Return the explanation that is stored with a signal: the first verdicts, and the number of other open expectations."""
    kept = [verdict.to_dict() for verdict in route.verdicts[:MOST_KEPT]]
    return {"candidates": kept, "others": max(len(route.verdicts), open_count) - len(kept)}


def _find_target_of_word(
    connection: Connection, signal: Signal, agent_id: str | None, session_key: str | None
) -> str | None:
    """Find the entry that a person judges: the entry that the signal names, else the latest entry of its session."""
    if signal.source != HUMAN or signal.signal_type not in _WORDS:
        return None
    if signal.entry_id is not None or agent_id is None or session_key is None:
        return signal.entry_id
    return find_latest_entry(connection, agent_id, session_key)


def _is_new_word(connection: Connection, signal: Signal, target: str | None) -> bool:
    # The last word wins, so an earlier word counts again after a different one.
    return target is not None and read_word(connection, target) is not _WORDS[signal.signal_type]


def _digest(signal: Signal, agent_id: str | None, session_key: str | None) -> str:
    content = [
        agent_id,
        session_key,
        signal.entry_id,
        signal.source,
        signal.signal_type.value,
        signal.summary,
        signal.data,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()[:_DIGITS]


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
    if target is not None and signal.entry_id == target:
        change = Change(HUMAN, to_ms(signal.created_at), signal.summary, {"signal": signal.id})
        override(connection, target, _WORDS[signal.signal_type], change)
    expectation_id = None if found.taken is None else found.taken.id
    agent_id = received.agent_id if found.taken is None else found.taken.agent_id
    return take_signal(connection, signal, expectation_id, received, rules=rules.get(agent_id or "", DEFAULT_RULES))


def route_to_new(connection: Connection, new: Sequence[Expectation], agent_id: str, rules: Rules) -> int:
    """Assign orphans, the oldest first, to those new expectations of one entry whose hints they fit; return how many."""
    asked = [expectation for expectation in new if expectation.match_hint]
    if not asked:
        return 0
    known = {one.id: one for one in asked}
    candidates = {one.id: _make_candidate(one, number, agent_id) for number, one in enumerate(asked)}
    taken = 0
    for orphan in list_orphans_since_entry(connection, asked[0].entry_id):
        if orphan.agent_id not in {None, agent_id}:
            continue
        found = route(_make_news(orphan), candidates.values())
        if found.taken is not None:
            _take(connection, orphan, found, rules)
            after = settle(orphan.signal.signal_type, found.taken.status, known[found.taken.id].polarity)
            candidates[found.taken.id] = found.taken._replace(status=after.status)
            taken += 1
    return taken


def route_again(connection: Connection, ids: Sequence[str], rules: Mapping[str, Rules]) -> int:
    """Assign these orphans, the oldest first, to expectations whose hints they fit; return how many were assigned."""
    taken = 0
    for orphan in list_orphans_of(connection, ids):
        found = find_place(connection, orphan)
        if found.taken is not None:
            _take(connection, orphan, found, rules.get(found.taken.agent_id, DEFAULT_RULES))
            taken += 1
    return taken


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
        taken += swept.after_sweep(timestamp, partial(route_again, ids=some, rules=swept.rules))
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
            orphans = list_orphans_after(connection, last, _READ_AT_ONCE)
            fitting += (one for one in orphans if find_place(connection, one).taken is not None)
        if len(orphans) < _READ_AT_ONCE:
            fitting.sort(key=lambda one: (one.signal.created_at, one.number))
            return [one.signal.id for one in fitting]
        last = orphans[-1].number


def _find_answers(connection: Connection, since: LastNumbers) -> list[Orphan]:
    """Return the orphans recorded up to `since` that fit an expectation recorded after it."""
    anchors, beginning = find_new_anchors(connection, since.expectation)
    if beginning is None:
        return []
    known = (one for one in list_orphans_since(connection, beginning) if one.number <= since.signal)
    return [one for one in known if has_anchor(one, anchors) and find_place(connection, one).taken is not None]


def find_place(connection: Connection, orphan: Orphan) -> Route:
    """Find the expectation whose hint an orphan fits now."""
    news = _make_news(orphan)
    since = [
        one for one in find_by_hint(connection, news) if read_beginning(connection, one.entry_id) <= news.timestamp
    ]
    return route(news, since)


def has_anchor(orphan: Orphan, anchors: AbstractSet[int]) -> bool:
    """Tell whether an orphan may answer expectations that are indexed under these anchors."""
    return not anchors.isdisjoint(anchors_of(read_words(orphan.signal.source, orphan.signal.data)))


def _make_news(orphan: Orphan) -> News:
    signal = orphan.signal
    words = read_words(signal.source, signal.data)
    return News(words, signal.signal_type, to_ms(signal.created_at), orphan.agent_id, by_hint_only=True)


def _make_candidate(expectation: Expectation, number: int, agent_id: str) -> Candidate:
    return Candidate(
        expectation.id,
        number,
        expectation.entry_id,
        agent_id,
        None,
        ExpectationStatus.OPEN,
        expectation.match_hint,
        to_ms(expectation.created_at),
        None if expectation.expires_at is None else to_ms(expectation.expires_at),
    )


def _take(connection: Connection, orphan: Orphan, found: Route, rules: Rules) -> None:
    assert found.taken is not None
    signal = replace(orphan.signal, entry_id=found.taken.entry_id)
    received = Received(found.rule, write_routing(found), orphan.agent_id)
    take_signal(connection, signal, found.taken.id, received, is_kept=True, rules=rules)
