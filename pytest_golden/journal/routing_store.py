"""Find the expectations that a signal may concern, by indexes: the cost does not grow with the number of open ones.

Each function works on an open connection; `routing.py` decides which candidate takes the signal. An expectation is indexed
under one key of its hint, its anchor. A SQLite file is searched anchor by anchor, only as far as needed; a server is asked
about all anchors at once, together with other queries.
"""

from __future__ import annotations

import json
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, or_, select, true

from pytest_golden.journal.hints import (
    CHECKED,
    NO_HINT,
    SOURCE,
    allows_guess,
    anchors_of,
    count_keys,
    fits,
    list_anchors,
    rank,
    read_shape,
)
from pytest_golden.journal.model import ExpectationStatus
from pytest_golden.journal.routing import (
    AGAINST,
    MOST_COUNTED,
    Candidate,
    News,
    Route,
    Routing,
    answer_attempts,
    answers_attempts,
)
from pytest_golden.storage.schema import entries, expectations
from pytest_golden.storage.statements import Prepared, Question, ask, is_near, list_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from pytest_golden.journal.hints import Words

    _Kind = tuple[ExpectationStatus, bool]

# How many resolved expectations under one anchor are examined, the newest first.
_LOOK_BACK = 25
# How many open expectations under an anchor a server returns at once: usually one, which fits.
_FIRST_OPEN = 4
_MOST_OF_ENTRY = 1000
# How many of one shape a guess examines: if the signal has only some of the keys, no index helps.
_MOST_GUESSES = 100
# How many other expectations get a verdict: each costs a hundredth of a signal.
_MOST_SHOWN = 10
_RESOLVED = (ExpectationStatus.MET, ExpectationStatus.UNMET, ExpectationStatus.EXPIRED)
_HINT = 6
#: The columns of a candidate, in the order of its fields.
COLUMNS = (
    *(expectations.c[name] for name in ("id", "number", "entry_id", "agent_id", "session_key", "status")),
    *(expectations.c[name] for name in ("match_hint", "created_at", "expires_at")),
    expectations.c.check.is_not(None).label("has_check"),
)
#: Written as a literal, so that the database can use the index of open expectations.
IS_OPEN = expectations.c.status == literal_column("'open'")
HAS_SHAPE = expectations.c.hint_shape.is_not(None)
IS_THE_AGENT = expectations.c.agent_id == bindparam("the_agent", type_=Text())
NEAREST_FIRST = (expectations.c.hint_rank, expectations.c.number)
_GIVEN = list_numbers("the_anchors")
_AT_GIVEN: Select[Any] = select(literal_column("1")).where(expectations.c.hint_anchor == _GIVEN)
_USED_ANCHORS = Prepared(
    select(_GIVEN.label("anchor")).where(or_(_AT_GIVEN.where(HAS_SHAPE).exists(), _AT_GIVEN.where(IS_OPEN).exists()))
)
_OPEN = select(*COLUMNS).where(IS_OPEN).order_by(*NEAREST_FIRST)
_ANY = select(*COLUMNS).where(HAS_SHAPE).order_by(expectations.c.number.desc()).limit(_LOOK_BACK)


def _at_one(chosen: Select[Any]) -> Prepared:
    return Prepared(chosen.where(expectations.c.hint_anchor == bindparam("the_anchor", type_=BigInteger())))


def _at_each(chosen: Select[Any]) -> Prepared:
    """Make a statement that returns the first few under each anchor; the anchor stands behind the other columns."""
    found = chosen.where(expectations.c.hint_anchor == _GIVEN).lateral()
    return Prepared(select(*found.c, _GIVEN.label("anchor")).join(found, true()))


# The keys: whether one agent is searched, or all. The values: open expectations, and the newest of any status.
_AT_ONE = {
    is_of_agent: tuple(_at_one(chosen.where(IS_THE_AGENT) if is_of_agent else chosen) for chosen in (_OPEN, _ANY))
    for is_of_agent in (True, False)
}
_AT_EACH = {
    is_of_agent: tuple(
        _at_each(chosen.where(IS_THE_AGENT) if is_of_agent else chosen) for chosen in (_OPEN.limit(_FIRST_OPEN), _ANY)
    )
    for is_of_agent in (True, False)
}
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
    """Select the next shape after this one, however many expectations have this one."""
    found = select(expectations.c.hint_shape).where(*wanted, expectations.c.hint_shape > shape)
    return found.order_by(expectations.c.hint_shape).limit(1)


def _list_shapes(wanted: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    """Select all shapes of hints that are in use, except that of expectations without a hint."""
    first: Any = _find_next_shape(wanted, literal_column("''")).scalar_subquery()
    shapes = select(first.label("shape")).cte("shapes", recursive=True)
    following = _find_next_shape(wanted, shapes.c.shape).correlate(shapes).scalar_subquery()
    shapes = shapes.union_all(select(following).where(shapes.c.shape.is_not(None)))
    return select(shapes.c.shape).where(shapes.c.shape.is_not(None))


# The key: whether one session is searched.
_SHAPES = {
    True: Prepared(_list_shapes((IS_THE_AGENT, _IS_THE_STATUS, _IS_THE_SESSION))),
    False: Prepared(_list_shapes((IS_THE_AGENT, _IS_THE_STATUS))),
}
# The key: whether one session is searched. The values: the nearest expiry first, and the latest first.
_BY_SHAPE = {
    in_session: tuple(Prepared(chosen.order_by(*order)) for order in (NEAREST_FIRST, _LATEST_FIRST))
    for in_session, chosen in ((True, _OF_SHAPE.where(_IS_THE_SESSION)), (False, _OF_SHAPE))
}
_OF_ENTRY = Prepared(
    select(*COLUMNS)
    .where(expectations.c.entry_id == bindparam("the_entry", type_=Text()))
    .order_by(expectations.c.number)
    .limit(_MOST_OF_ENTRY)
)
_ENTRY, _OTHER = entries.alias(), entries.alias()
# What waits under the anchors of a hint, in other entries with the same intent or session; "source=ci" may have very many.
_AT_ANCHORS = (
    select(*COLUMNS)
    .where(expectations.c.hint_anchor.in_(select(_GIVEN)), IS_THE_AGENT, IS_OPEN)
    .limit(_MOST_GUESSES)
    .subquery()
)
_OF_ATTEMPTS = Prepared(
    select(_AT_ANCHORS)
    .select_from(_AT_ANCHORS, _ENTRY, _OTHER)
    .where(
        _ENTRY.c.id == bindparam("the_entry", type_=Text()),
        _OTHER.c.id == _AT_ANCHORS.c.entry_id,
        _OTHER.c.id != _ENTRY.c.id,
        or_(_OTHER.c.intent == _ENTRY.c.intent, _OTHER.c.session_key == _ENTRY.c.session_key),
    )
)
_OPEN_OF_AGENT = (
    select(*COLUMNS).where(IS_THE_AGENT, IS_OPEN, HAS_SHAPE).order_by(expectations.c.hint_shape, *NEAREST_FIRST)
)
_OPEN_OF_ANY = select(*COLUMNS).where(IS_OPEN, HAS_SHAPE).order_by(expectations.c.expires_at)
# Counted in an index alone. The index of all agents includes the expectations of gates.
_SOME_OPEN: Select[Any] = select(literal_column("1")).where(IS_OPEN).limit(MOST_COUNTED)
#: How many open expectations there are of the agent, or of all; counted up to 100.
COUNT_OF_AGENT = select(func.count()).select_from(_SOME_OPEN.where(IS_THE_AGENT, HAS_SHAPE).subquery())
COUNT_OF_ANY = select(func.count()).select_from(_SOME_OPEN.subquery())
_SHOWN_OF_AGENT = Prepared(_OPEN_OF_AGENT.limit(_MOST_SHOWN))
_SHOWN_OF_ANY = Prepared(_OPEN_OF_ANY.limit(_MOST_SHOWN))


def ask_for_candidates(words: Words, agent_id: str | None, entry_id: str | None, *, near: bool) -> list[Question]:
    """Return the questions for some expectations to show, those of the entry that is named, and those that the words fit."""
    names = name_agent(agent_id)
    shown = Question(_SHOWN_OF_ANY if agent_id is None else _SHOWN_OF_AGENT, names)
    named = [] if entry_id is None else [Question(_OF_ENTRY, {"the_entry": entry_id})]
    return [shown, *named, *ask_at_anchors(words, names, near=near)]


def find_route(
    connection: Connection, news: News, *, after: int | None = None, answers: Sequence[Iterator[Any]] = ()
) -> Route:
    """Find where a signal goes, with a verdict on every candidate that was examined.

    With `after`, only open expectations recorded after the one with that number may take it. `answers` are the answers to
    `ask_for_candidates`, where the caller has asked those questions together with others.
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
    found = routing.conclude()
    if found.taken is None or not answers_attempts(news, found):
        return found
    return answer_attempts(news, found, search.attempts_like(found.taken))


def find_by_hint(connection: Connection, news: News) -> tuple[Candidate, ...]:
    """Find the expectations that a signal may concern by their hints."""
    return tuple(_Search(connection, news).by_hint())


def name_agent(agent_id: str | None) -> dict[str, Any]:
    """Return the parameters of statements about an agent; none for all agents."""
    return {} if agent_id is None else {"the_agent": agent_id}


class _Search:
    """The search of the indexes for one signal."""

    def __init__(self, connection: Connection, news: News, after: int | None = None) -> None:
        self._connection = connection
        self._news = news
        self._after = after
        self._names = name_agent(news.agent_id)

    def named_hinted_and_shown(
        self, answers: Sequence[Iterator[Any]]
    ) -> tuple[Iterator[Candidate], Iterator[Candidate], Iterator[Candidate]]:
        """Return the expectations of the entry that the signal names, what `by_hint` finds, and some that are only shown.

        The last were not in question: they explain to a reader why they did not take the signal.
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
        """Return the best expectation under each anchor whose hint fits, and the newest resolved ones that fit."""
        for is_of_open, rows in find_at_anchors(self._connection, self._news.words, self._names, answers):
            if is_of_open:
                yield from self._first_fit(rows)
            elif self._after is None:
                yield from filter(self._fits, _candidates(rows))

    def attempts_like(self, taken: Candidate) -> Iterator[Candidate]:
        """Return the open expectations of other attempts: entries of the agent with the same intent, or in the same session."""
        anchors = json.dumps(list_anchors(taken.hint or {}))
        names = {"the_agent": taken.agent_id, "the_entry": taken.entry_id, "the_anchors": anchors}
        return filter(self._may_take, _candidates(_OF_ATTEMPTS.run(self._connection, names)))

    def by_session(self) -> Iterator[Candidate]:
        """Return the best unexpired expectations of the signal's session that a guess may take."""
        if self._news.session_key is None:
            return iter(())
        return self._by_shape(self._list_kinds(), in_session=True)

    def late_in_session(self) -> Iterator[Candidate]:
        """Return the best expired expectations of the signal's session that a guess may take."""
        if self._news.session_key is None or self._after is not None:
            return iter(())
        return self._by_shape([(status, True) for status in _RESOLVED], in_session=True)

    def by_window(self) -> Iterator[Candidate]:
        """Return the agent's best expectations whose time window holds the signal and that a guess may take."""
        return self._by_shape(self._list_kinds(), in_session=False)

    def _list_kinds(self) -> list[_Kind]:
        """Return the statuses of unexpired expectations that may take the signal."""
        is_against = self._news.signal_type in AGAINST and self._after is None
        return [(status, False) for status in (ExpectationStatus.OPEN, ExpectationStatus.MET)[: 1 + is_against]]

    def _by_shape(self, kinds: Sequence[_Kind], *, in_session: bool) -> Iterator[Candidate]:
        """Yield the best of each shape: expired ones from the latest on, others from the nearest expiry on."""
        names = {**self._names, **({"the_session": self._news.session_key} if in_session else {})}
        of_kind = {status: {**names, "the_status": status.value} for status, _ in kinds}
        plain = [
            self._ask_of_shape(NO_HINT, of_kind[kind[0]], is_over=kind[1], in_session=in_session) for kind in kinds
        ]
        of_shapes = [Question(_SHAPES[in_session], names) for names in of_kind.values()]
        found = ask(self._connection, *of_shapes, *plain)
        shapes = {status: [row[0] for row in found.pop(0)] for status in of_kind}
        questions = [
            self._ask_of_shape(shape, of_kind[status], is_over=is_over, in_session=in_session)
            for status, is_over in kinds
            for shape in shapes[status]
            if self._is_possible(shape)
        ]
        for rows in (*found, *ask(self._connection, *questions)):
            yield from self._first_allowed(islice(rows, _MOST_GUESSES))

    def _ask_of_shape(self, shape: str, names: Mapping[str, Any], *, is_over: bool, in_session: bool) -> Question:
        nearest, latest = _BY_SHAPE[in_session]
        count = count_keys(shape)
        over, never = rank(count, self._news.timestamp) + 1, rank(count, None)
        low, high = (0, over) if is_over else (over, never + in_session)
        bounds = {"the_shape": shape, "low": low, "high": high, "latest": self._news.timestamp}
        return Question(latest if is_over else nearest, {**names, **bounds}, is_paged=True)

    def _is_possible(self, shape: str) -> bool:
        """Tell whether a guess may take a hint of this shape; what fits is found by its anchor."""
        if shape == CHECKED:
            return False
        source, keys = read_shape(shape)
        if source is not None and (source,) != self._news.words[SOURCE]:
            return False
        known = [key in self._news.words for key in keys]
        return not all(known) and (source is not None or any(known))

    def _first_fit(self, rows: Iterable[Any]) -> Iterator[Candidate]:
        return islice((one for one in _candidates(rows) if self._fits(one) and self._may_take(one)), 1)

    def _first_allowed(self, rows: Iterable[Any]) -> Iterator[Candidate]:
        # Checked before a candidate is made of the row: most may differ.
        words = self._news.words
        allowed = (row for row in rows if row[_HINT] is None or allows_guess(json.loads(row[_HINT]), words))
        return islice(filter(self._may_take, _candidates(allowed)), 1)

    def _fits(self, candidate: Candidate) -> bool:
        return bool(candidate.hint) and fits(candidate.hint or {}, self._news.words)

    def _may_take(self, candidate: Candidate) -> bool:
        if self._after is None:
            return True
        return candidate.number > self._after and candidate.status is ExpectationStatus.OPEN


def ask_at_anchors(words: Words, names: Mapping[str, Any], *, near: bool) -> list[Question]:
    """Return the questions that `find_at_anchors` needs; `names` has the agent's, if only one is asked about."""
    given = {"the_anchors": json.dumps(list(dict.fromkeys(anchors_of(words))))}
    if near:
        return [Question(_USED_ANCHORS, given)]
    return [Question(statement, {**names, **given}) for statement in _AT_EACH["the_agent" in names]]


def find_at_anchors(
    connection: Connection, words: Words, names: Mapping[str, Any], answers: Sequence[Iterator[Any]] = ()
) -> Iterator[tuple[bool, Iterator[Any]]]:
    """Yield the rows under each anchor: the open ones, the nearest expiry first, then the newest of any status.

    Each group of rows comes with whether it is the open ones. `answers` are those to `ask_at_anchors`, if asked before.
    """
    near = is_near(connection)
    answers = answers or ask(connection, *ask_at_anchors(words, names, near=near))
    open_ones, any_ones = _AT_ONE["the_agent" in names]
    if near:
        for (anchor,) in list(answers[0]):
            at_anchor = {**names, "the_anchor": anchor}
            yield True, open_ones.stream(connection, at_anchor)
            yield False, iter(any_ones.run(connection, at_anchor))
        return
    for anchor, rows in groupby(answers[0], key=itemgetter(-1)):
        yield True, _go_on(connection, open_ones, {**names, "the_anchor": int(anchor)}, [row[:-1] for row in rows])
    yield False, (row[:-1] for row in answers[1])


def _go_on(connection: Connection, statement: Prepared, names: Mapping[str, Any], rows: Sequence[Any]) -> Iterator[Any]:
    yield from rows
    if len(rows) == _FIRST_OPEN:
        # Starts from the beginning: a caller that wants more refuses the first rows again.
        yield from statement.stream(connection, names)


def _candidates(rows: Iterable[Any]) -> Iterator[Candidate]:
    for *names, status, hint, created_at, expires_at, has_check in rows:
        read = None if hint is None else json.loads(hint)
        yield Candidate._make((*names, ExpectationStatus(status), read, created_at, expires_at, bool(has_check)))
