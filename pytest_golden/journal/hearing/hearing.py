"""Take a signal in: the same news has one effect, a person's word stands above the rules, and what fits nowhere waits.

Works on an open connection, inside the caller's transaction. Executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.hearing.store import (
    Surroundings,
    ask_for_surroundings,
    find_by_content,
    find_latest_entry,
    find_mark,
    get_by_external_id,
    read_word,
)
from pytest_golden.journal.hints import read_words
from pytest_golden.journal.model import Assessment, RoutedBy, SignalType
from pytest_golden.journal.routing.rules import MOST_KEPT, News
from pytest_golden.journal.routing.store import ask_for_candidates, find_route
from pytest_golden.journal.rules import DEFAULT_RULES, Rules
from pytest_golden.journal.sources import HUMAN
from pytest_golden.journal.standing.store import Change, override
from pytest_golden.journal.store import Heard, take_signal
from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.prepared import ask, is_near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from pytest_golden.journal.hints import Words
    from pytest_golden.journal.model import Signal
    from pytest_golden.journal.routing.rules import Route
    from pytest_golden.storage.prepared import Question

_WORDS = {SignalType.POSITIVE: Assessment.SUCCESS, SignalType.CORRECTION: Assessment.FAILURE}
_DIGITS = 32


class Incoming(NamedTuple):
    """A signal on its way in, its words, and what it is known again by, where it has no external id."""

    signal: Signal
    agent_id: str | None
    session_key: str | None
    words: Words
    digest: str | None


def read_incoming(signal: Signal, agent_id: str | None, session_key: str | None) -> Incoming:
    """Make of a signal what is heard; `signal.entry_id` is the entry that it names, which must be there and this agent's."""
    digest = None if signal.external_id is not None else _digest(signal, agent_id, session_key)
    return Incoming(signal, agent_id, session_key, read_words(signal.source, signal.data), digest)


def ask_about(one: Incoming, *, near: bool) -> tuple[Question, ...]:
    """Ask what must be known of any signal before it is heard; `near` tells that questions cost no trip to a server."""
    surroundings = ask_for_surroundings(one.signal, one.digest, one.agent_id)
    return surroundings, *ask_for_candidates(one.words, one.agent_id, one.signal.entry_id, near=near)


def hear(
    connection: Connection, one: Incoming, rules: Mapping[str, Rules], answers: Sequence[Iterator[Any]] = ()
) -> Signal:
    """Route a signal and keep it with all that follows from it; the same news again gives the signal that is there.

    `answers` are those to `ask_about` it, where that was asked with other things.
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
    heard = Heard(found.rule, routing, agent_id, session_key, digest, around.last_expectation or 0)
    return _keep(connection, signal, found, heard, target, rules)


def write_routing(route: Route, open_count: int = 0) -> dict[str, Any]:
    """Write what is kept of a routing with the signal: the first verdicts, and how many open expectations there were besides."""
    kept = [verdict.to_dict() for verdict in route.verdicts[:MOST_KEPT]]
    return {"candidates": kept, "others": max(len(route.verdicts), open_count) - len(kept)}


def _find_target_of_word(
    connection: Connection, signal: Signal, agent_id: str | None, session_key: str | None
) -> str | None:
    """Find the entry that a person's word is about: the one that it names, else the latest of its session."""
    if signal.source != HUMAN or signal.signal_type not in _WORDS:
        return None
    if signal.entry_id is not None or agent_id is None or session_key is None:
        return signal.entry_id
    return find_latest_entry(connection, agent_id, session_key)


def _is_new_word(connection: Connection, signal: Signal, target: str | None) -> bool:
    # The last word wins: one that was said before counts again once another was said after it.
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
    heard: Heard,
    target: str | None,
    rules: Mapping[str, Rules],
) -> Signal:
    named = signal.entry_id
    if found.taken is not None:
        signal = replace(signal, entry_id=found.taken.entry_id)
    elif target is not None:
        signal = replace(signal, entry_id=target)
        heard = heard._replace(routed_by=RoutedBy.SESSION_KEY if named is None else RoutedBy.ENTRY)
    if target is not None and signal.entry_id == target:
        change = Change(HUMAN, to_ms(signal.created_at), signal.summary, {"signal": signal.id})
        override(connection, target, _WORDS[signal.signal_type], change)
    expectation_id = None if found.taken is None else found.taken.id
    agent_id = heard.agent_id if found.taken is None else found.taken.agent_id
    return take_signal(connection, signal, expectation_id, heard, rules=rules.get(agent_id or "", DEFAULT_RULES))
