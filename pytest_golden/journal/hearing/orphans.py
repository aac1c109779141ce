"""Find a place for news that came before the expectation that it answers: by hint alone, and only since the entry began.

Works on an open connection, inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.journal.hearing.hearing import write_routing
from pytest_golden.journal.hearing.store import list_orphans_of, list_orphans_since_entry, read_beginning
from pytest_golden.journal.hints import anchors_of, read_words
from pytest_golden.journal.model import ExpectationStatus
from pytest_golden.journal.routing.rules import Candidate, News, route
from pytest_golden.journal.routing.store import find_by_hint
from pytest_golden.journal.rules import DEFAULT_RULES, Rules, settle
from pytest_golden.journal.store import Heard, take_signal
from pytest_golden.storage.moments import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from sqlalchemy import Connection

    from pytest_golden.journal.hearing.store import Orphan
    from pytest_golden.journal.model import Expectation
    from pytest_golden.journal.routing.rules import Route


def route_to_new(connection: Connection, new: Sequence[Expectation], agent_id: str, rules: Rules) -> int:
    """Give new expectations of one entry the orphans that fit their hints, the oldest first; give how many were taken."""
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
    """Give open expectations those of these orphans that fit their hints, the oldest first; give how many were taken."""
    taken = 0
    for orphan in list_orphans_of(connection, ids):
        found = find_place(connection, orphan)
        if found.taken is not None:
            _take(connection, orphan, found, rules.get(found.taken.agent_id, DEFAULT_RULES))
            taken += 1
    return taken


def find_place(connection: Connection, orphan: Orphan) -> Route:
    """Find the expectation whose hint an orphan fits, as things are now."""
    news = _make_news(orphan)
    since = [one for one in find_by_hint(connection, news) if read_beginning(connection, one.entry_id) <= news.moment]
    return route(news, since)


def has_anchor(orphan: Orphan, anchors: AbstractSet[int]) -> bool:
    """Tell whether expectations with these anchors in the index may be answered by an orphan."""
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
    heard = Heard(found.rule, write_routing(found), orphan.agent_id)
    take_signal(connection, signal, found.taken.id, heard, is_kept=True, rules=rules)
