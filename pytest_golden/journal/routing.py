"""The rules that route a signal to an expectation, and the explanation that is kept with it. Pure.

`routing_store.py` finds the candidates. The rules in their order: a hint whose every key fits, the same session, the time
window, the entry that the signal names, and none. Session and time are guesses: they never take what a check answers, and what
has a hint only if a key of it is equal and none differs. Expectations of the named entry come first. Within a rule, open ones come
before resolved ones, and these before expired ones; then come more hint keys, an expiry nearer to now, and the older one.
A resolved expectation is never answered again, but late news and news against what was met still go to its entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.hints import Words, allows_guess, describe_misfit, fits
from pytest_golden.journal.model import ExpectationStatus, RoutedBy, SignalType
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: How many candidates are kept with a signal.
MOST_KEPT = 25
#: At most so many open expectations are counted with each signal: to count very many would be slow.
MOST_COUNTED = 100
#: The signals that are news against what was expected.
AGAINST = frozenset({SignalType.NEGATIVE, SignalType.CORRECTION})


# The rules that take an expectation, in their order.
_RULES = (RoutedBy.MATCH_HINT, RoutedBy.SESSION_KEY, RoutedBy.TIME_WINDOW)


class News(NamedTuple):
    """A signal as the rules see it; `timestamp` is in milliseconds since the epoch.

    Without an agent, only hints are considered, those of all agents. `entry_id` is the entry that the signal names. With
    `by_hint_only`, its session and its time decide nothing, and the entry that it names is binding: a person's word is so.
    """

    words: Words
    signal_type: SignalType
    timestamp: int
    agent_id: str | None = None
    session_key: str | None = None
    entry_id: str | None = None
    by_hint_only: bool = False


class Candidate(NamedTuple):
    """An expectation that a signal may concern; `number` is its place in the order of recording."""

    id: str
    number: int
    entry_id: str
    agent_id: str
    session_key: str | None
    status: ExpectationStatus
    hint: Mapping[str, Any] | None
    created_at: int
    expires_at: int | None
    has_check: bool = False


@dataclass(frozen=True, slots=True)
class Verdict(Shape):
    """How a candidate was judged: the rule that accepted or refused it, and why."""

    expectation_id: str
    rule: RoutedBy
    taken: bool
    reason: str


class Route(NamedTuple):
    """Where a signal goes: the rule, and the expectation if one is concerned; the verdict on each candidate.

    `also` are the expectations of earlier attempts that the signal answers too, `unmet` those that it fits and that are unmet already.
    """

    rule: RoutedBy
    taken: Candidate | None
    verdicts: tuple[Verdict, ...]
    also: tuple[Candidate, ...] = ()
    unmet: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class RoutingExplanation(Shape):
    """The rule that routed a signal, and the verdict on each candidate: those that were taken first, then those they beat.

    `others` counts further expectations that were open then; with the candidates up to 100.
    """

    signal_id: str
    rule: RoutedBy
    candidates: tuple[Verdict, ...] = ()
    others: int = 0

    @property
    def is_count_cut(self) -> bool:
        """Tell whether there may have been more others than were counted."""
        return len(self.candidates) + self.others >= MOST_COUNTED


class _Fit(NamedTuple):
    order: tuple[float, ...]
    rule: RoutedBy
    candidate: Candidate
    reason: str


def route(news: News, candidates: Iterable[Candidate]) -> Route:
    """Find the expectation that a signal concerns. The order of the candidates does not matter."""
    routing = Routing(news)
    routing.consider(candidates)
    return routing.conclude()


class Routing:
    """The search for one signal's expectation. Each candidate is judged once, when it is first given."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._seen: set[str] = set()
        self._fitting: list[_Fit] = []
        self._refused: list[Verdict] = []
        self._unmet: list[Candidate] = []

    @property
    def has_taken(self) -> bool:
        """Tell whether a candidate given so far takes the signal."""
        return bool(self._fitting)

    def consider(self, candidates: Iterable[Candidate], up_to: float = math.inf) -> None:
        """Judge candidates, until there are `up_to` verdicts in all."""
        for candidate in candidates:
            if len(self._seen) >= up_to:
                return
            if candidate.id in self._seen:
                continue
            self._seen.add(candidate.id)
            found = _consider(self._news, candidate)
            if isinstance(found, Verdict):
                self._refused.append(found)
                if candidate.status is ExpectationStatus.UNMET and fits(candidate.hint or {}, self._news.words):
                    self._unmet.append(candidate)
            else:
                self._fitting.append(found)

    def conclude(self) -> Route:
        """Return where the signal goes, with the verdict on each candidate: first those that fit, the best one first."""
        fitting = sorted(self._fitting)
        taken = fitting[0] if fitting else None
        refused = sorted(self._refused, key=lambda one: one.expectation_id)
        verdicts = (*(_judge(fit, fitting[0]) for fit in fitting), *refused)
        if taken is None:
            rule = RoutedBy.ORPHAN if self._news.entry_id is None else RoutedBy.ENTRY
            return Route(rule, None, verdicts, unmet=tuple(self._unmet))
        return Route(taken.rule, taken.candidate, verdicts)


def answers_attempts(news: News, found: Route) -> bool:
    """Tell whether earlier attempts may wait for the same news: an open hint fits, and the news decides."""
    return (
        found.rule is RoutedBy.MATCH_HINT
        and found.taken is not None
        and _is_waiting(found.taken, news.timestamp)
        and news.signal_type is not SignalType.NEUTRAL
        and news.entry_id is None
    )


def answer_attempts(news: News, found: Route, attempts: Iterable[Candidate]) -> Route:
    """Let a signal answer the equal hints of several attempts of one agent: the newest one takes it, the others too."""
    if found.taken is None:
        return found
    # Of each attempt one, the oldest: what an attempt expects twice is to be heard twice.
    oldest = {found.taken.entry_id: found.taken}
    for one in sorted(attempts, key=lambda one: one.number):
        if _is_waiting(one, news.timestamp) and one.hint == found.taken.hint:
            oldest.setdefault(one.entry_id, one)
    if len(oldest) == 1:
        return found
    newest, *also = sorted(oldest.values(), key=lambda one: one.number, reverse=True)
    waiting = {one.id for one in oldest.values()}
    told = f"every key of its hint fits ({', '.join(newest.hint or ())})"
    taken = (
        Verdict(newest.id, found.rule, taken=True, reason=f"{told}; it is of the newest attempt"),
        *(
            Verdict(one.id, found.rule, taken=True, reason=f"{told}: an earlier attempt waits for the same")
            for one in also
        ),
    )
    others = tuple(one for one in found.verdicts if one.expectation_id not in waiting)
    return Route(found.rule, newest, (*taken, *others), tuple(also))


def explain_correction(found: Route, corrected: str, answered: Sequence[Candidate]) -> Route:
    """Let a route say that a signal answers these expectations, since it corrects what an earlier one has said."""
    reason = f"it corrects signal {corrected}, which was about the same"
    taken = tuple(Verdict(one.id, RoutedBy.MATCH_HINT, taken=True, reason=reason) for one in answered)
    ids = {one.id for one in answered}
    others = tuple(one for one in found.verdicts if one.expectation_id not in ids)
    return Route(RoutedBy.MATCH_HINT, answered[0], (*taken, *others))


def _is_waiting(one: Candidate, timestamp: int) -> bool:
    return one.status is ExpectationStatus.OPEN and (one.expires_at is None or timestamp < one.expires_at)


def read_explanation(
    signal_id: str, rule: RoutedBy, expectation_id: str | None, kept: Mapping[str, Any] | None
) -> RoutingExplanation:
    """Return the explanation of a signal; nothing is `kept` if the caller named the expectation."""
    if kept is not None:
        candidates = tuple(
            Verdict(one["expectation_id"], RoutedBy(one["rule"]), one["taken"], one["reason"])
            for one in kept["candidates"]
        )
        return RoutingExplanation(signal_id, rule, candidates, kept["others"])
    if expectation_id is None:
        return RoutingExplanation(signal_id, rule)
    known = Verdict(expectation_id, rule, taken=True, reason="the signal was recorded for it")
    return RoutingExplanation(signal_id, rule, (known,))


def _consider(news: News, candidate: Candidate) -> _Fit | Verdict:
    if news.agent_id is not None and candidate.agent_id != news.agent_id:
        return _refuse(candidate, RoutedBy.MATCH_HINT, "it is another agent's")
    if news.by_hint_only and news.entry_id is not None and not _is_named(news, candidate):
        return _refuse(candidate, RoutedBy.MATCH_HINT, "the signal goes to the entry that it names")
    rule = _find_rule(news, candidate)
    if isinstance(rule, Verdict):
        return rule
    is_late = candidate.expires_at is not None and news.timestamp >= candidate.expires_at
    is_open = candidate.status is ExpectationStatus.OPEN and not is_late
    is_against = candidate.status is ExpectationStatus.MET and news.signal_type in AGAINST
    if not (is_open or is_late or is_against):
        return _refuse(candidate, rule, f"it fits, but is {candidate.status} already")
    order = (
        not _is_named(news, candidate),
        _RULES.index(rule),
        not is_open,
        is_late,
        -len(candidate.hint or ()),
        math.inf if candidate.expires_at is None else abs(candidate.expires_at - news.timestamp),
        candidate.number,
    )
    return _Fit(order, rule, candidate, _explain(rule, candidate, is_open=is_open, is_late=is_late))


def _find_rule(news: News, candidate: Candidate) -> RoutedBy | Verdict:
    """Return the first rule by which a candidate fits, or why none does."""
    if candidate.hint and fits(candidate.hint, news.words):
        return RoutedBy.MATCH_HINT
    misfit = describe_misfit(candidate.hint, news.words) if candidate.hint else "it has no hint"
    if news.agent_id is None or news.by_hint_only or not allows_guess(candidate.hint, news.words):
        return _refuse(candidate, RoutedBy.MATCH_HINT, misfit)
    if candidate.has_check:
        return _refuse(candidate, RoutedBy.MATCH_HINT, f"{misfit}; its check answers it")
    if news.entry_id is not None and not _is_named(news, candidate):
        return _refuse(candidate, RoutedBy.MATCH_HINT, f"{misfit}; the signal names another entry")
    if news.session_key is not None and candidate.session_key == news.session_key:
        return RoutedBy.SESSION_KEY
    return _try_window(news, candidate, misfit)


def _try_window(news: News, candidate: Candidate, misfit: str) -> RoutedBy | Verdict:
    if candidate.expires_at is None:
        return _refuse(candidate, RoutedBy.TIME_WINDOW, f"{misfit}; another session; it has no time window")
    if not candidate.created_at <= news.timestamp < candidate.expires_at:
        return _refuse(candidate, RoutedBy.TIME_WINDOW, f"{misfit}; another session; outside its time window")
    return RoutedBy.TIME_WINDOW


def _is_named(news: News, candidate: Candidate) -> bool:
    return candidate.entry_id == news.entry_id


def _explain(rule: RoutedBy, candidate: Candidate, *, is_open: bool, is_late: bool) -> str:
    reason = {
        RoutedBy.MATCH_HINT: f"every key of its hint fits ({', '.join(candidate.hint or ())})",
        RoutedBy.SESSION_KEY: "it is in the same session",
        RoutedBy.TIME_WINDOW: "the signal came in its time window",
    }[rule]
    if is_late:
        return f"{reason}; its time is over, so the news goes to its entry and decides nothing"
    return reason if is_open else f"{reason}; it is met, so news against it goes to its entry"


def _judge(fit: _Fit, taken: _Fit) -> Verdict:
    if fit is taken:
        return Verdict(fit.candidate.id, fit.rule, taken=True, reason=fit.reason)
    # The first difference in the order decided.
    differing = next(place for place, pair in enumerate(zip(fit.order, taken.order, strict=True)) if pair[0] != pair[1])
    won = (
        "is of the entry that the signal names",
        "fits by an earlier rule",
        "is open",
        "is not over",
        "has more hint keys",
        "has a nearer expiry",
        "is older",
    )[differing]
    return Verdict(fit.candidate.id, fit.rule, taken=False, reason=f"{fit.reason}, but {taken.candidate.id} {won}")


def _refuse(candidate: Candidate, rule: RoutedBy, reason: str) -> Verdict:
    return Verdict(candidate.id, rule, taken=False, reason=reason)
