"""The expectations that a signal may concern, found by indexes: what it costs does not grow with how many are open.

Each function works on an open connection. Which of the candidates takes the signal is decided in `rules.py`.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, select

from pytest_golden.journal.hints import NO_HINT, SOURCE, contradicts, count_keys, fits, rank, read_shape
from pytest_golden.journal.model import ExpectationStatus, SignalType
from pytest_golden.journal.routing.anchored.store import (
    COLUMNS,
    HAS_SHAPE,
    IS_OPEN,
    IS_THE_AGENT,
    NEAREST_FIRST,
    ask_at_anchors,
    find_at_anchors,
)
from pytest_golden.journal.routing.rules import MOST_COUNTED, Candidate, News, Routing
from pytest_golden.storage.prepared import Prepared, Question, ask, is_near
from pytest_golden.storage.schema import expectations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from pytest_golden.journal.hints import Words
    from pytest_golden.journal.routing.rules import Route

    # A status, and whether those are meant whose time is over.
    _Kind = tuple[ExpectationStatus, bool]

_MOST_OF_ENTRY = 1000
# How many of one shape a guess looks at: where some keys are in the signal and others are not, no index leads further.
_MOST_GUESSES = 100
# Those that are shown besides what was in question: to judge and to keep one costs a hundredth of a signal.
_MOST_SHOWN = 10
_AGAINST = frozenset({SignalType.NEGATIVE, SignalType.CORRECTION})
_RESOLVED = (ExpectationStatus.MET, ExpectationStatus.UNMET, ExpectationStatus.EXPIRED)
_HINT = 6
_LATEST_FIRST = (expectations.c.hint_rank.desc(), expectations.c.number.desc())
_IS_THE_STATUS = expectations.c.status == bindparam("the_status", type_=Text())
_IS_THE_SESSION = expectations.c.session_key == bindparam("the_session", type_=Text())
_OF_SHAPE = select(*COLUMNS).where(
    IS_THE_AGENT,
    _IS_THE_STATUS,
    expectations.c.hint_shape == bindparam("the_shape", type_=Text()),
    expectations.c.hint_rank >= bindparam("low", type_=BigInteger()),
    expectations.c.hint_rank < bindparam("high", type_=BigInteger()),
    expectations.c.created_at <= bindparam("latest", type_=BigInteger()),
)


def _find_next_shape(wanted: tuple[ColumnElement[bool], ...], shape: ColumnElement[str]) -> Select[Any]:
    """Skip to the next shape, however many have this one."""
    found = select(expectations.c.hint_shape).where(*wanted, expectations.c.hint_shape > shape)
    return found.order_by(expectations.c.hint_shape).limit(1)


def _list_shapes(wanted: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    """Make the list of the shapes that there are, from that of those without a hint on."""
    first: Any = _find_next_shape(wanted, literal_column("''")).scalar_subquery()
    shapes = select(first.label("shape")).cte("shapes", recursive=True)
    following = _find_next_shape(wanted, shapes.c.shape).correlate(shapes).scalar_subquery()
    shapes = shapes.union_all(select(following).where(shapes.c.shape.is_not(None)))
    return select(shapes.c.shape).where(shapes.c.shape.is_not(None))


# By whether a session is asked for: the next shape, and all of them.
_SHAPES = {
    in_session: (
        Prepared(_find_next_shape(wanted, bindparam("the_shape", type_=Text()))),
        Prepared(_list_shapes(wanted)),
    )
    for in_session, wanted in (
        (True, (IS_THE_AGENT, _IS_THE_STATUS, _IS_THE_SESSION)),
        (False, (IS_THE_AGENT, _IS_THE_STATUS)),
    )
}
# Likewise: those of a shape with the nearest expiry first, and with the latest first.
_BY_SHAPE = {
    True: (
        Prepared(_OF_SHAPE.where(_IS_THE_SESSION).order_by(*NEAREST_FIRST)),
        Prepared(_OF_SHAPE.where(_IS_THE_SESSION).order_by(*_LATEST_FIRST)),
    ),
    False: (
        Prepared(_OF_SHAPE.order_by(*NEAREST_FIRST)),
        Prepared(_OF_SHAPE.order_by(*_LATEST_FIRST)),
    ),
}
_OF_ENTRY = Prepared(
    select(*COLUMNS)
    .where(expectations.c.entry_id == bindparam("the_entry", type_=Text()))
    .order_by(expectations.c.number)
    .limit(_MOST_OF_ENTRY)
)
_OPEN_OF_AGENT = (
    select(*COLUMNS).where(IS_THE_AGENT, IS_OPEN, HAS_SHAPE).order_by(expectations.c.hint_shape, *NEAREST_FIRST)
)
_OPEN_OF_ANY = select(*COLUMNS).where(IS_OPEN, HAS_SHAPE).order_by(expectations.c.expires_at)
# Counted in an index alone; that of all agents does not tell which are a gate's.
_SOME_OPEN: Select[Any] = select(literal_column("1")).where(IS_OPEN).limit(MOST_COUNTED)
#: How many open expectations there are of the agent, or of all; counted up to 100.
COUNT_OF_AGENT = select(func.count()).select_from(_SOME_OPEN.where(IS_THE_AGENT, HAS_SHAPE).subquery())
COUNT_OF_ANY = select(func.count()).select_from(_SOME_OPEN.subquery())
_SHOWN_OF_AGENT = Prepared(_OPEN_OF_AGENT.limit(_MOST_SHOWN))
_SHOWN_OF_ANY = Prepared(_OPEN_OF_ANY.limit(_MOST_SHOWN))


def ask_for_candidates(words: Words, agent_id: str | None, entry_id: str | None, *, near: bool) -> list[Question]:
    """Ask for some expectations that are shown, for those of the entry that a signal names, and for those that its words fit."""
    names = name_agent(agent_id)
    shown = Question(_SHOWN_OF_ANY if agent_id is None else _SHOWN_OF_AGENT, names)
    named = [] if entry_id is None else [Question(_OF_ENTRY, {"the_entry": entry_id})]
    return [shown, *named, *ask_at_anchors(words, names, near=near)]


def find_route(
    connection: Connection, news: News, *, after: int | None = None, answers: Sequence[Iterator[Any]] = ()
) -> Route:
    """Find where a signal goes, with a verdict on every candidate that was looked at.

    With `after`, only open expectations recorded after the one of that number may take it. `answers` are those to
    `ask_for_candidates`, where that was asked with other things.
    """
    search = _Search(connection, news, after)
    routing = Routing(news)
    named, by_hint, shown = search.named_hinted_and_shown(answers)
    routing.consider(named)
    routing.consider(by_hint)
    if not routing.has_taken and news.agent_id is not None and news.entry_id is None and not news.by_hint_only:
        for guess in (search.by_session, search.late_in_session, search.by_window):
            if not routing.has_taken:
                routing.consider(guess())
    if after is None:
        routing.consider(shown, up_to=_MOST_SHOWN)
    return routing.conclude()


def find_by_hint(connection: Connection, news: News) -> tuple[Candidate, ...]:
    """Find the expectations that a signal may concern by their hints."""
    return tuple(_Search(connection, news).by_hint())


def name_agent(agent_id: str | None) -> dict[str, Any]:
    """Give the name that statements about an agent want."""
    return {} if agent_id is None else {"the_agent": agent_id}


class _Search:
    """One signal's look into the indexes."""

    def __init__(self, connection: Connection, news: News, after: int | None = None) -> None:
        self._connection = connection
        self._news = news
        self._after = after
        self._names = name_agent(news.agent_id)

    def named_hinted_and_shown(
        self, answers: Sequence[Iterator[Any]]
    ) -> tuple[Iterator[Candidate], Iterator[Candidate], Iterator[Candidate]]:
        """Give the expectations of the entry that the signal names, what `by_hint` gives, and some that are shown.

        Those were not in question: they are for whoever asks why not.
        """
        news = self._news
        if not answers:
            near = is_near(self._connection)
            asked = ask_for_candidates(news.words, news.agent_id, news.entry_id, near=near)
            answers = ask(self._connection, *asked)
        count = 0 if news.entry_id is None else 1
        named = (candidate for rows in answers[1 : 1 + count] for candidate in _candidates(rows))
        return filter(self._may_take, named), self.by_hint(answers[1 + count :]), _candidates(answers[0])

    def by_hint(self, answers: Sequence[Iterator[Any]] = ()) -> Iterator[Candidate]:
        """Give the best expectation under each anchor whose hint fits, and the newest resolved ones that fit."""
        for is_of_open, rows in find_at_anchors(self._connection, self._news.words, self._names, answers):
            if is_of_open:
                yield from self._first_fit(rows)
            elif self._after is None:
                yield from filter(self._fits, _candidates(rows))

    def by_session(self) -> Iterator[Candidate]:
        """Give the best expectations of the signal's session that no hint keeps from it, and whose time is not over."""
        if self._news.session_key is None:
            return iter(())
        return self._by_shape(self._list_kinds(), in_session=True)

    def late_in_session(self) -> Iterator[Candidate]:
        """Give the same of those whose time is over."""
        if self._news.session_key is None or self._after is not None:
            return iter(())
        return self._by_shape([(status, True) for status in _RESOLVED], in_session=True)

    def by_window(self) -> Iterator[Candidate]:
        """Give the agent's best expectations in whose time window the signal comes and that no hint keeps from it."""
        return self._by_shape(self._list_kinds(), in_session=False)

    def _list_kinds(self) -> list[_Kind]:
        """Give what may take a signal whose time is not over."""
        is_against = self._news.signal_type in _AGAINST and self._after is None
        return [(status, False) for status in (ExpectationStatus.OPEN, ExpectationStatus.MET)[: 1 + is_against]]

    def _by_shape(self, kinds: Sequence[_Kind], *, in_session: bool) -> Iterator[Candidate]:
        """Give the best of each shape: those whose time is over from the latest on, others from the nearest expiry on."""
        names = {**self._names, **({"the_session": self._news.session_key} if in_session else {})}
        of_kind = {status: {**names, "the_status": status.value} for status, _ in kinds}
        plain = [
            self._ask_of_shape(NO_HINT, of_kind[kind[0]], is_over=kind[1], in_session=in_session) for kind in kinds
        ]
        shapes, found = self._find_shapes(of_kind, plain, in_session=in_session)
        questions = [
            self._ask_of_shape(shape, of_kind[status], is_over=is_over, in_session=in_session)
            for status, is_over in kinds
            for shape in shapes[status]
            if self._is_possible(shape)
        ]
        for rows in (*found, *ask(self._connection, *questions)):
            yield from self._first_allowed(islice(rows, _MOST_GUESSES))

    def _find_shapes(
        self, of_kind: Mapping[ExpectationStatus, Mapping[str, Any]], more: Sequence[Question], *, in_session: bool
    ) -> tuple[dict[ExpectationStatus, list[str]], list[Iterator[Any]]]:
        """Find the shapes of hints that there are of each status, and the answers to more questions."""
        next_one, all_ones = _SHAPES[in_session]
        if is_near(self._connection):
            shapes = {status: list(self._skip(next_one, names)) for status, names in of_kind.items()}
            return shapes, ask(self._connection, *more)
        found = ask(self._connection, *(Question(all_ones, names) for names in of_kind.values()), *more)
        shapes = {status: [row[0] for row in rows] for status, rows in zip(of_kind, found, strict=False)}
        return shapes, found[len(of_kind) :]

    def _skip(self, next_one: Prepared, names: Mapping[str, Any]) -> Iterator[str]:
        row = next_one.first(self._connection, {**names, "the_shape": NO_HINT})
        while row is not None:
            yield row.hint_shape
            row = next_one.first(self._connection, {**names, "the_shape": row.hint_shape})

    def _ask_of_shape(self, shape: str, names: Mapping[str, Any], *, is_over: bool, in_session: bool) -> Question:
        nearest, latest = _BY_SHAPE[in_session]
        count = count_keys(shape)
        over, never = rank(count, self._news.moment) + 1, rank(count, None)
        low, high = (0, over) if is_over else (over, never + in_session)
        bounds = {"the_shape": shape, "low": low, "high": high, "latest": self._news.moment}
        return Question(latest if is_over else nearest, {**names, **bounds}, is_paged=True)

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
