"""The report of a day or a week: what gates and agents did, what failed and why, and what waits for a person. As values, and as a page to mail.

The page has no script and no style sheet: mail programs drop them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.inbox_items import KINDS, open_inbox
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.gate.store import RESULT_TYPE
from pytest_golden.journal.review import JournalPages
from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.regression.wording import count_of
from pytest_golden.report.html_page import Html, join, one_line, tag
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.history.recorded_model import ListedRun
    from pytest_golden.journal.service import Journal
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store

_MOST_RUNS, _MOST_AGENTS, _MOST_FAILURES, _MOST_LOOKED_AT = 1_000, 100, 20, 2_000
_PAGE = 200
_STYLE = "font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 46rem; margin: 1rem auto; padding: 0 1rem"
_CELL = "text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top"


@dataclass(frozen=True, slots=True)
class AgentPeriod(Shape):
    """How an agent's entries of the period stand; `success_rate` is None without any that is assessed."""

    agent: str
    assessed: int
    success_rate: float | None
    open: int
    expired: int


@dataclass(frozen=True, slots=True)
class PeriodFailure(Shape):
    """An agent's entry that failed in the period, and why."""

    entry_id: str
    agent: str
    intent: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReport(Shape):
    """What happened from `since` to `until`: own gate runs and how many were not PASSED, the newest 20 failures of agents, and what waits.

    `is_red` tells whether the last run of the period failed; None without a run. `failure_count` counts all failures that were
    looked at, the newest 2,000 entries.
    """

    since: datetime
    until: datetime
    runs: int
    red_runs: int
    flaky_runs: int
    is_red: bool | None
    last_verdict: str | None
    agents: tuple[AgentPeriod, ...]
    failures: tuple[PeriodFailure, ...]
    failure_count: int
    waiting: Mapping[str, int]


def sum_up_period(
    store: Store, journal: Journal, manifest: Manifest | None, since: datetime, until: datetime
) -> PeriodReport:
    """Read what happened in a period.

    Raises:
        StorageError: the store cannot be read.
    """
    runs = [one for one in _list_runs(RecordedGates(store), since) if one.verdict.status is not None]
    failures = [
        PeriodFailure(one.id, one.agent_id, one.intent, one.assessment_notes or "", one.updated_at)
        for one in journal.review_journal("failure", limit=_MOST_LOOKED_AT, without_type=RESULT_TYPE)
        if one.updated_at >= since and one.agent_id != GATE_AGENT
    ]
    return PeriodReport(
        since=since,
        until=until,
        runs=len(runs),
        red_runs=sum(not one.verdict.is_good for one in runs),
        flaky_runs=sum(one.verdict.flaky > 0 for one in runs),
        is_red=not runs[0].verdict.is_good if runs else None,
        last_verdict=runs[0].verdict.sentence if runs else None,
        agents=tuple(_list_agents(store, journal, since)),
        failures=tuple(failures[:_MOST_FAILURES]),
        failure_count=len(failures),
        waiting=open_inbox(store, manifest, until, by_person=True).counts,
    )


def _list_runs(gates: RecordedGates, since: datetime) -> Iterator[ListedRun]:
    cursor: str | None = None
    for _ in range(_MOST_RUNS // _PAGE):
        page = gates.list_runs(_PAGE, cursor, own_only=True)
        yield from (one for one in page.items if one.started_at >= since)
        cursor = page.next_cursor
        if cursor is None or page.items[-1].started_at < since:
            return


def _list_agents(store: Store, journal: Journal, since: datetime) -> Iterator[AgentPeriod]:
    for one in JournalPages(store).list_agents(_MOST_AGENTS).items:
        found = journal.summary(one.agent_id, since)
        if one.agent_id != GATE_AGENT and (found.n or found.open or found.expired):
            yield AgentPeriod(one.agent_id, found.n, found.success_rate, found.open, found.expired)


def describe_gates(report: PeriodReport) -> str:
    """Return a sentence about the gate runs."""
    if not report.runs:
        return "No gate was run."
    flaky = f", {report.flaky_runs} of them with a flaky project" if report.flaky_runs else ""
    return f"{count_of(report.runs, 'gate run')}, {report.red_runs} red{flaky}. The last one: {report.last_verdict}."


def describe_waiting(report: PeriodReport) -> str:
    """Return a sentence about what waits for a person."""
    return "; ".join(f"{KINDS[kind]}: {number}" for kind, number in report.waiting.items()) or "nothing"


def period_html(report: PeriodReport) -> str:
    """Return the report as one HTML page that mail programs show."""
    title = f"Golden projects: {report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC"
    rate = ("-" if one.success_rate is None else f"{one.success_rate:.0%}" for one in report.agents)
    agents = [
        (one.agent, shown, one.assessed, one.open, one.expired) for one, shown in zip(report.agents, rate, strict=True)
    ]
    failures = [(one.at.strftime("%Y-%m-%d %H:%M"), one.agent, one.intent, one.why) for one in report.failures]
    more = report.failure_count - len(report.failures)
    body = (
        tag("h1", title, style="font-size: 1.3rem"),
        tag(
            "p",
            tag("strong", "Red. " if report.is_red else "" if report.is_red is None else "Green. "),
            describe_gates(report),
        ),
        tag("p", tag("strong", "Waiting for you: "), describe_waiting(report), ". See: golden inbox."),
        *_table("Agents", ("Agent", "Succeeded", "Assessed", "Open", "Expired"), agents),
        *_table("What failed, and why", ("When", "Agent", "Intent", "Why"), failures),
        tag("p", f"{more} more: golden journal review --filter failure") if more > 0 else None,
    )
    head = (tag("meta", charset="utf-8"), tag("title", title))
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body, style=_STYLE), lang='en')}\n"


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[Html]:
    cells = [[tag("td", one_line(str(value)), style=_CELL) for value in row] for row in rows]
    if cells:
        yield tag("h2", title, style="font-size: 1.1rem")
        head = tag("tr", *(tag("th", name, style=_CELL, scope="col") for name in names))
        yield tag("table", head, join(tag("tr", *row) for row in cells), style="border-collapse: collapse")
