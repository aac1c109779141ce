"""The expectations that a signal may concern, found by indexes: what it costs does not grow with how many are open.

Each function works on an open connection. Which of the candidates takes the signal is decided in `rules.py`.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, select

from pytest_golden.journal.hints import NO_HINT, SOURCE, anchors_of, contradicts, count_keys, fits, rank, read_shape
from pytest_golden.journal.model import ExpectationStatus, SignalType
from pytest_golden.journal.routing.rules import MOST_KEPT, Candidate, News, Routing
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import expectations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection, Select

    from pytest_golden.journal.routing.rules import Route

# How many resolved expectations under one anchor are looked at, the newest first.
_LOOK_BACK = 25
_MOST_OF_ENTRY = 1000
# How many of one shape a guess looks at: where some keys are in the signal and others are not, no index leads further.
_MOST_GUESSES = 100
# With more keys than this, a signal's anchors are first asked which of them lead anywhere.
_FEW_ANCHORS = 48
_CHUNK = 500
_AGAINST = frozenset({SignalType.NEGATIVE, SignalType.CORRECTION})
_RESOLVED = (ExpectationStatus.MET, ExpectationStatus.UNMET, ExpectationStatus.EXPIRED)
_COLUMNS = (
    expectations.c.id,
    expectations.c.number,
    expectations.c.entry_id,
    expectations.c.agent_id,
    expectations.c.session_key,
    expectations.c.status,
    expectations.c.match_hint,
    expectations.c.created_at,
    expectations.c.expires_at,
)
_HINT = 6
# Written out, so that the index of the open ones is known to hold them all.
_IS_OPEN = expectations.c.status == literal_column("'open'")
_HAS_SHAPE = expectations.c.hint_shape.is_not(None)
_AGENT = bindparam("the_agent", type_=Text())
_IS_THE_AGENT = expectations.c.agent_id == _AGENT
_NEAREST_FIRST = (expectations.c.hint_rank, expectations.c.number)
_LATEST_FIRST = (expectations.c.hint_rank.desc(), expectations.c.number.desc())
_IS_THE_ANCHOR = expectations.c.hint_anchor == bindparam("the_anchor", type_=BigInteger())
_OPEN_AT_ANCHOR = select(*_COLUMNS).where(_IS_THE_ANCHOR, _IS_OPEN).order_by(*_NEAREST_FIRST)
_ANY_AT_ANCHOR = (
    select(*_COLUMNS).where(_IS_THE_ANCHOR, _HAS_SHAPE).order_by(expectations.c.number.desc()).limit(_LOOK_BACK)
)
# By whether one agent is asked or all are.
_AT_ANCHOR = {
    True: (
        Prepared(_OPEN_AT_ANCHOR.where(_IS_THE_AGENT)),
        Prepared(_ANY_AT_ANCHOR.where(_IS_THE_AGENT)),
    ),
    False: (Prepared(_OPEN_AT_ANCHOR), Prepared(_ANY_AT_ANCHOR)),
}
_AMONG_ANCHORS = select(expectations.c.hint_anchor).where(
    expectations.c.hint_anchor.in_(bindparam("anchors", expanding=True))
)
_USED_ANCHORS = _AMONG_ANCHORS.where(_HAS_SHAPE).union(_AMONG_ANCHORS.where(_IS_OPEN))
_IS_THE_STATUS = expectations.c.status == bindparam("the_status", type_=Text())
_IS_THE_SESSION = expectations.c.session_key == bindparam("the_session", type_=Text())
_NEXT_SHAPE = (
    select(expectations.c.hint_shape)
    .where(_IS_THE_AGENT, _IS_THE_STATUS, expectations.c.hint_shape > bindparam("the_shape", type_=Text()))
    .order_by(expectations.c.hint_shape)
    .limit(1)
)
_OF_SHAPE = (
    select(*_COLUMNS)
    .where(
        _IS_THE_AGENT,
        _IS_THE_STATUS,
        expectations.c.hint_shape == bindparam("the_shape", type_=Text()),
        expectations.c.hint_rank >= bindparam("low", type_=BigInteger()),
        expectations.c.hint_rank < bindparam("high", type_=BigInteger()),
        expectations.c.created_at <= bindparam("latest", type_=BigInteger()),
    )
    .limit(_MOST_GUESSES)
)
# By whether a session is asked for: the shapes, those of a shape with the nearest expiry first, and with the latest first.
_BY_SHAPE = {
    True: (
        Prepared(_NEXT_SHAPE.where(_IS_THE_SESSION)),
        Prepared(_OF_SHAPE.where(_IS_THE_SESSION).order_by(*_NEAREST_FIRST)),
        Prepared(_OF_SHAPE.where(_IS_THE_SESSION).order_by(*_LATEST_FIRST)),
    ),
    False: (
        Prepared(_NEXT_SHAPE),
        Prepared(_OF_SHAPE.order_by(*_NEAREST_FIRST)),
        Prepared(_OF_SHAPE.order_by(*_LATEST_FIRST)),
    ),
}
_OF_ENTRY = Prepared(
    select(*_COLUMNS)
    .where(expectations.c.entry_id == bindparam("the_entry", type_=Text()))
    .order_by(expectations.c.number)
    .limit(_MOST_OF_ENTRY)
)
_OPEN_OF_AGENT = (
    select(*_COLUMNS).where(_IS_THE_AGENT, _IS_OPEN, _HAS_SHAPE).order_by(expectations.c.hint_shape, *_NEAREST_FIRST)
)
_OPEN_OF_ANY = select(*_COLUMNS).where(_IS_OPEN, _HAS_SHAPE).order_by(expectations.c.expires_at)
# Counted in an index alone; that of all agents does not tell which are a gate's.
_A_THOUSAND: Select[Any] = select(literal_column("1")).where(_IS_OPEN).limit(1000)
_COUNT_OF_AGENT = Prepared(
    select(func.count().label("number")).select_from(_A_THOUSAND.where(_IS_THE_AGENT, _HAS_SHAPE).subquery())
)
_COUNT_OF_ANY = Prepared(select(func.count().label("number")).select_from(_A_THOUSAND.subquery()))
_SHOWN_OF_AGENT = Prepared(_OPEN_OF_AGENT.limit(MOST_KEPT))
_SHOWN_OF_ANY = Prepared(_OPEN_OF_ANY.limit(MOST_KEPT))


def find_route(connection: Connection, news: News, *, after: int | None = None) -> Route:
    """Find where a signal goes, with a verdict on every candidate that was looked at.

    With `after`, only open expectations recorded after the one of that number may take it.
    """
    search = _Search(connection, news, after)
    routing = Routing(news)
    routing.consider(search.of_named_entry())
    routing.consider(search.by_hint())
    if not routing.has_taken and news.agent_id is not None and news.entry_id is None and not news.by_hint_only:
        routing.consider(search.by_session())
        if not routing.has_taken:
            routing.consider(search.by_window())
    if after is None:
        routing.consider(search.to_be_shown(), up_to=MOST_KEPT)
    return routing.conclude()


def find_by_hint(connection: Connection, news: News) -> tuple[Candidate, ...]:
    """Find the expectations that a signal may concern by their hints."""
    return tuple(_Search(connection, news).by_hint())


def count_open(connection: Connection, agent_id: str | None) -> int:
    """Count the open expectations that are asked, up to 1,000 of them."""
    counted = _COUNT_OF_ANY if agent_id is None else _COUNT_OF_AGENT
    return int(counted.first(connection, _name_agent(agent_id)).number)


def _name_agent(agent_id: str | None) -> dict[str, Any]:
    return {} if agent_id is None else {"the_agent": agent_id}


class _Search:
    """One signal's look into the indexes."""

    def __init__(self, connection: Connection, news: News, after: int | None = None) -> None:
        self._connection = connection
        self._news = news
        self._after = after
        self._names = _name_agent(news.agent_id)

    def of_named_entry(self) -> Iterator[Candidate]:
        """Give the expectations of the entry that the signal names, open or not."""
        if self._news.entry_id is not None:
            names = {"the_entry": self._news.entry_id}
            yield from filter(self._may_take, _candidates(_OF_ENTRY.run(self._connection, names)))

    def by_hint(self) -> Iterator[Candidate]:
        """Give the best expectation under each anchor whose hint fits, and the newest resolved ones that fit."""
        open_ones, any_ones = _AT_ANCHOR[self._news.agent_id is not None]
        for anchor in self._anchors():
            names = {**self._names, "the_anchor": anchor}
            yield from self._first_fit(open_ones.stream(self._connection, names))
            if self._after is None:
                yield from filter(self._fits, _candidates(any_ones.run(self._connection, names)))

    def by_session(self) -> Iterator[Candidate]:
        """Give the best expectations of the signal's session that no hint keeps from it."""
        if self._news.session_key is None:
            return
        yield from self._by_shape(ExpectationStatus.OPEN, in_session=True)
        if self._after is not None:
            return
        if self._news.signal_type in _AGAINST:
            yield from self._by_shape(ExpectationStatus.MET, in_session=True)
        for status in _RESOLVED:
            yield from self._by_shape(status, in_session=True, is_over=True)

    def by_window(self) -> Iterator[Candidate]:
        """Give the agent's best expectations in whose time window the signal comes and that no hint keeps from it."""
        yield from self._by_shape(ExpectationStatus.OPEN, in_session=False)
        if self._news.signal_type in _AGAINST and self._after is None:
            yield from self._by_shape(ExpectationStatus.MET, in_session=False)

    def to_be_shown(self) -> Iterator[Candidate]:
        """Give open expectations that were not in question, for whoever asks why they were not."""
        shown = _SHOWN_OF_ANY if self._news.agent_id is None else _SHOWN_OF_AGENT
        yield from _candidates(shown.run(self._connection, self._names))

    def _anchors(self) -> Iterable[int]:
        anchors = list(dict.fromkeys(anchors_of(self._news.words)))
        if len(anchors) <= _FEW_ANCHORS:
            return anchors
        used: list[int] = []
        for start in range(0, len(anchors), _CHUNK):
            asked = {"anchors": anchors[start : start + _CHUNK]}
            used += self._connection.execute(_USED_ANCHORS, asked).scalars()
        return used

    def _by_shape(self, status: ExpectationStatus, *, in_session: bool, is_over: bool = False) -> Iterator[Candidate]:
        """Give the best of each shape: those whose time is over from the latest on, others from the nearest expiry on."""
        shapes, nearest, latest = _BY_SHAPE[in_session]
        names: dict[str, Any] = {**self._names, "the_status": status.value}
        if in_session:
            names["the_session"] = self._news.session_key
        for shape in self._shapes(shapes, names):
            if not self._is_possible(shape):
                continue
            count = count_keys(shape)
            over, never = rank(count, self._news.moment) + 1, rank(count, None)
            low, high = (0, over) if is_over else (over, never + in_session)
            bounds = {"the_shape": shape, "low": low, "high": high, "latest": self._news.moment}
            yield from self._first_allowed((latest if is_over else nearest).run(self._connection, {**names, **bounds}))

    def _shapes(self, shapes: Prepared, names: dict[str, Any]) -> Iterator[str]:
        # From below the empty shape of those without a hint, which is no text that is greater than another.
        yield NO_HINT
        row = shapes.first(self._connection, {**names, "the_shape": NO_HINT})
        while row is not None:
            yield row.hint_shape
            row = shapes.first(self._connection, {**names, "the_shape": row.hint_shape})

    def _is_possible(self, shape: str) -> bool:
        """Tell whether a hint of this shape may neither fit nor be contradicted; what fits is found by its anchor."""
        source, keys = read_shape(shape)
        if source is not None and (source,) != self._news.words[SOURCE]:
            return False
        return shape == NO_HINT or any(key not in self._news.words for key in keys)

    def _first_fit(self, rows: Iterable[Any]) -> Iterator[Candidate]:
        return islice((one for one in _candidates(rows) if self._fits(one) and self._may_take(one)), 1)

    def _first_allowed(self, rows: Iterable[Any]) -> Iterator[Candidate]:
        # Before a candidate is made of it: most may have to go.
        allowed = (row for row in rows if not self._is_contradicted(row[_HINT]))
        return islice(filter(self._may_take, _candidates(allowed)), 1)

    def _is_contradicted(self, hint: str | None) -> bool:
        return hint is not None and contradicts(json.loads(hint), self._news.words)

    def _fits(self, candidate: Candidate) -> bool:
        return bool(candidate.hint) and fits(candidate.hint or {}, self._news.words)

    def _may_take(self, candidate: Candidate) -> bool:
        if self._after is None:
            return True
        return candidate.number > self._after and candidate.status is ExpectationStatus.OPEN


def _candidates(rows: Iterable[Any]) -> Iterator[Candidate]:
    for id_, number, entry_id, agent_id, session_key, status, hint, created_at, expires_at in rows:
        yield Candidate(
            id_,
            number,
            entry_id,
            agent_id,
            session_key,
            ExpectationStatus(status),
            None if hint is None else json.loads(hint),
            created_at,
            expires_at,
        )
