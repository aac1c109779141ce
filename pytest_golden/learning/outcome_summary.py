"""Sum up what agents did: how often they succeeded, what failed again and again, which steps became worse, and whether hints helped.

The gate's own outcomes are left out: its projects have a history. What is read is bounded, the newest first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.review import RateByDay, SuccessRate
from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.learning.lessons.lesson_wording import find_telling_line
from pytest_golden.learning.lessons.store import count_recalls_by_agent, count_waiting
from pytest_golden.learning.outcomes import OUTCOMES
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.learning.store import list_latest
from pytest_golden.regression.comparison import fisher_worse
from pytest_golden.storage.columns import to_ms
from pytest_golden.values.checking import parse_time
from pytest_golden.values.json_form import FrozenDict
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.storage.store import Store

MOST_OUTCOMES, _MOST_FAILURES, _MOST_SHOWN, _MOST_AGENTS = 3_000, 1_000, 20, 100
_SEVERAL, _FEWEST, _LEVEL = 2, 10, 0.05
_MOST_STEPS = 8
_MERGED = form(merged=True)
# Where the context of an outcome tells what kind of work it was.
_DOMAINS = ("domain", "intent_type")


@dataclass(frozen=True, slots=True)
class AgentFigures(Shape):
    """What an agent did in the time, and what became of the hints and lessons that are its own.

    `median_seconds` is None where no duration is known. A pass followed `helped` of the `shown` hints, a failure `harmed`.
    """

    agent: str
    rate: SuccessRate = field(metadata=_MERGED)
    median_seconds: float | None
    shown: int
    helped: int
    harmed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RepeatedFailure(Shape):
    """A failure that several outcomes had, by its signature; its telling line and the id are those of the last one."""

    message: str
    count: int
    agents: tuple[str, ...]
    last_at: datetime
    last_outcome_id: str


@dataclass(frozen=True, slots=True)
class WorseStrategy(Shape):
    """Steps that succeed less often in the later half of their outcomes than in the earlier one (Fisher's exact test, one-sided)."""

    steps: tuple[str, ...]
    earlier: SuccessRate
    later: SuccessRate
    p_value: float


@dataclass(frozen=True, slots=True)
class OutcomeSummary(RateByDay):
    """The outcomes of agents since a time. `is_cut`: there are more than are counted, which are the newest.

    `by_domain` is by what the outcomes' context names as `domain` or `intent_type`.
    """

    median_seconds: float | None = None
    is_cut: bool = False
    agents: tuple[AgentFigures, ...] = ()
    failures: tuple[RepeatedFailure, ...] = ()
    worse: tuple[WorseStrategy, ...] = ()
    by_domain: Mapping[str, SuccessRate] = field(default_factory=FrozenDict, hash=False)


class _Outcome(NamedTuple):
    id: str
    agent: str
    at: datetime
    success: bool
    seconds: float | None
    error: str
    steps: tuple[str, ...]
    domain: str


def sum_up_outcomes(store: Store, agent: str | None = None, since: datetime | None = None) -> OutcomeSummary:
    """Sum up the newest outcomes of an agent or of all, those since a time.

    Raises:
        StorageError: the store cannot be read.
    """
    with store.read() as connection:
        kept = list_latest(connection, OUTCOMES, agent, MOST_OUTCOMES + 1, without=GATE_AGENT)
        newest = [_read(*one) for one in kept]
        recalls = count_recalls_by_agent(connection, None if since is None else to_ms(since))
        waiting = count_waiting(connection)
    outcomes = [one for one in newest[:MOST_OUTCOMES] if one is not None and (since is None or one.at >= since)]
    groups = _group((one.agent, one) for one in outcomes)
    names = {name for name in (*groups, *recalls, *waiting) if name != GATE_AGENT and agent in {None, name}}
    agents = (_measure_agent(name, groups.get(name, ()), recalls.get(name, {}), waiting.get(name, 0)) for name in names)
    days = _group((one.at.date().isoformat(), one) for one in outcomes)
    domains = _group((one.domain, one) for one in outcomes if one.domain)
    rate = _rate(outcomes)
    return OutcomeSummary(
        rate.n,
        rate.success_rate,
        median_seconds=_find_median(outcomes),
        is_cut=len(newest) > MOST_OUTCOMES and len(outcomes) == MOST_OUTCOMES,
        agents=tuple(sorted(agents, key=lambda one: (-one.rate.n, one.agent)))[:_MOST_AGENTS],
        failures=tuple(_find_repeated(outcomes))[:_MOST_SHOWN],
        worse=tuple(sorted(_find_worse(outcomes), key=lambda one: one.p_value))[:_MOST_SHOWN],
        by_domain=FrozenDict({name: _rate(domains[name]) for name in sorted(domains)}),
        by_time=FrozenDict({day: _rate(days[day]) for day in sorted(days)}),
    )


def _read(agent: str, value: Mapping[str, Any]) -> _Outcome | None:
    """Read what counts of an outcome; None for a memory that is none."""
    at, path, context = value.get("timestamp"), value.get("execution_path"), value.get("context")
    seconds = value.get("execution_time")
    known = context if isinstance(context, Mapping) else {}
    try:
        timestamp = parse_time("timestamp", at)
    except ValueError:
        return None
    return _Outcome(
        str(value.get("outcome_id")),
        agent,
        timestamp,
        value.get("success") is True,
        float(seconds) if isinstance(seconds, int | float) else None,
        str(value.get("error_message") or "").strip(),
        tuple(map(str, path)) if isinstance(path, list | tuple) else (),
        next((known[name] for name in _DOMAINS if isinstance(known.get(name), str) and known[name].strip()), ""),
    )


def _group(pairs: Iterable[tuple[str, _Outcome]]) -> dict[str, list[_Outcome]]:
    groups: defaultdict[str, list[_Outcome]] = defaultdict(list)
    for key, one in pairs:
        groups[key].append(one)
    return groups


def _rate(outcomes: Sequence[_Outcome]) -> SuccessRate:
    n = len(outcomes)
    return SuccessRate(n, sum(one.success for one in outcomes) / n if n else None)


def _find_median(outcomes: Iterable[_Outcome]) -> float | None:
    seconds = [one.seconds for one in outcomes if one.seconds is not None]
    return median(seconds) if seconds else None


def _measure_agent(
    name: str, outcomes: Sequence[_Outcome], recalls: Mapping[bool | None, int], waiting: int
) -> AgentFigures:
    shown, helped, harmed = sum(recalls.values()), recalls.get(True, 0), recalls.get(False, 0)
    return AgentFigures(name, _rate(outcomes), _find_median(outcomes), shown, helped, harmed, waiting)


def _find_repeated(outcomes: Iterable[_Outcome]) -> Iterator[RepeatedFailure]:
    """Yield the failures that came twice at least, the most frequent first."""
    failed = islice((one for one in outcomes if not one.success and one.error), _MOST_FAILURES)
    groups = _group((error_signature(cause_of(one.error)), one) for one in failed)
    for same in sorted(groups.values(), key=len, reverse=True):
        if len(same) >= _SEVERAL:
            last = max(same, key=lambda one: one.at)
            agents = tuple(sorted({one.agent for one in same}))
            yield RepeatedFailure(find_telling_line(last.error), len(same), agents, last.at, last.id)


def _find_worse(outcomes: Iterable[_Outcome]) -> Iterator[WorseStrategy]:
    groups: defaultdict[tuple[str, ...], list[_Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.steps].append(one)
    for steps, same in groups.items():
        if not steps or len(same) < _FEWEST:
            continue
        same.sort(key=lambda one: one.at)
        halves = same[: len(same) // 2], same[len(same) // 2 :]
        passed = [sum(one.success for one in half) for half in halves]
        p_value = fisher_worse(passed[0], len(halves[0]) - passed[0], passed[1], len(halves[1]) - passed[1])
        if p_value < _LEVEL:
            yield WorseStrategy(steps[:_MOST_STEPS], _rate(halves[0]), _rate(halves[1]), p_value)
