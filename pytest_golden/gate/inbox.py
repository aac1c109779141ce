"""What waits for a person, from the store, the manifest and the outputs that red runs kept: each with its one action."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.gate.waiting_outputs import open_waiting
from pytest_golden.journal import review_store
from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.learning.learned_pages import LearnedPages
from pytest_golden.regression.wording import count_of
from pytest_golden.storage.columns import to_ms
from pytest_golden.values.shape import Shape, in_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store

#: What may wait, the most urgent first, and what each is called.
KINDS: Mapping[str, str] = {
    "outputs": "outputs of red runs",
    "failure": "failures that nobody has judged",
    "signal": "news that found no entry",
    "intent": "intents without an outcome",
    "lesson": "lessons to be approved",
    "quarantine": "quarantines that end",
    "floor": "weaker floors that were accepted",
}
MOST_OF_A_KIND = 50
# How long news and failures are shown, when an intent is stale, and how soon the end of a quarantine is told.
_SHOWN_DAYS, _STALE_DAYS, _SOON_DAYS, _WEEK_DAYS = 14, 1, 14, 7
_MOST_OF_TEXT = 300


@dataclass(frozen=True, slots=True)
class InboxItem(Shape):
    """Something that waits: `kind` is one of `KINDS`, `id` that of the entry, signal, lesson or project, `action` a command."""

    kind: str
    id: str
    title: str
    detail: str
    at: datetime | None
    action: str


@dataclass(frozen=True, slots=True)
class Inbox(Shape):
    """What waits, by kind, the newest of each first; at most 50 of a kind."""

    items: tuple[InboxItem, ...]

    @property
    @in_form(first=True)
    def counts(self) -> dict[str, int]:
        """How many of each kind are listed."""
        found = Counter(item.kind for item in self.items)
        return {kind: found[kind] for kind in KINDS if found[kind]}


def open_inbox(store: Store, manifest: Manifest | None, now: datetime, *, by_person: bool) -> Inbox:
    """Find what waits for a person. Without a manifest, outputs and quarantines are left out.

    Only a person sees the words of a lesson that waits.

    Raises:
        StorageError: the store cannot be read.
    """
    found = chain(
        () if manifest is None else _list_outputs(manifest),
        _list_of_journal(store, now),
        _list_lessons(store, by_person=by_person),
        () if manifest is None else _list_quarantines(manifest, now),
        _list_weaker_floors(store, now),
    )
    return Inbox(tuple(found))


def _list_outputs(manifest: Manifest) -> Iterator[InboxItem]:
    try:
        runs = open_waiting(manifest).list_runs()
    except BaselineError as error:
        yield InboxItem("outputs", "", "what red runs kept cannot be read", str(error), None, "golden accept")
        return
    for run in runs[:MOST_OF_A_KIND]:
        told = run.refused or ", ".join(f"{output.path} {output.change}" for output in run.outputs)
        title = f"{run.project}: {count_of(len(run.outputs) + run.omitted, 'output')}"
        yield InboxItem(
            "outputs", run.project, title, _cut(told), run.origin.at, f"golden accept {_quote(run.project)}"
        )


def _list_of_journal(store: Store, now: datetime) -> Iterator[InboxItem]:
    since, before = now - timedelta(days=_SHOWN_DAYS), now - timedelta(days=_STALE_DAYS)
    with store.read() as connection:
        failures = review_store.list_unjudged(
            connection, without_agent=GATE_AGENT, since=to_ms(since), limit=MOST_OF_A_KIND
        )
        orphans = review_store.list_orphans(connection, limit=MOST_OF_A_KIND)
        intents = review_store.list_unfinished(
            connection, without_agent=GATE_AGENT, before=to_ms(before), limit=MOST_OF_A_KIND
        )
    for entry in failures:
        action = f'golden journal assess {entry.id} failure --notes "..."'
        title = f"{entry.agent_id}: {_cut(entry.intent)}"
        yield InboxItem("failure", entry.id, title, _cut(entry.assessment_notes or ""), entry.updated_at, action)
    for signal in orphans:
        if signal.created_at >= since:
            title = f"{signal.signal_type} from {signal.source}: {_cut(signal.summary)}"
            action = f"golden journal attach {signal.id} ENTRY"
            yield InboxItem("signal", signal.id, title, "", signal.created_at, action)
    for entry in intents:
        action = f'golden journal assess {entry.id} partial --notes "..."'
        title = f"{entry.agent_id}: {_cut(entry.intent)}"
        yield InboxItem("intent", entry.id, title, "no outcome was logged", entry.created_at, action)


def _list_lessons(store: Store, *, by_person: bool) -> Iterator[InboxItem]:
    for item in LearnedPages(store).list_lessons(filter="waits", limit=MOST_OF_A_KIND).items:
        skill = item.kept.skill
        who = skill.proposed_by or item.kept.agent
        action = f"golden lessons approve {skill.id}"
        title = _cut(skill.lesson) if by_person else "a lesson for a person to read"
        yield InboxItem("lesson", skill.id, title, f"proposed by {who}", skill.created_at, action)


def _list_quarantines(manifest: Manifest, now: datetime) -> Iterator[InboxItem]:
    for project in manifest.projects:
        limit = project.quarantine
        days = None if limit is None else (limit.until - now.date()).days
        if limit is not None and days is not None and days <= _SOON_DAYS:
            ends = f"ended on {limit.until}" if days < 0 else f"ends on {limit.until}"
            detail = f"its quarantine {ends}: {_cut(limit.reason)}"
            yield InboxItem(
                "quarantine", project.name, project.name, detail, None, f"golden history {_quote(project.name)}"
            )


def _list_weaker_floors(store: Store, now: datetime) -> Iterator[InboxItem]:
    for run in RecordedGates(store).list_runs(MOST_OF_A_KIND).items:
        verdict = run.verdict
        if verdict.weakenings and verdict.floor_accepted and run.started_at >= now - timedelta(days=_WEEK_DAYS):
            commit = f" at {run.commit[:10]}" if run.commit else ""
            title = f"{count_of(verdict.weakenings, 'weakening')} accepted{commit}"
            yield InboxItem("floor", run.entry_id, title, "", run.started_at, f"golden report {run.entry_id}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_TEXT else f"{line[: _MOST_OF_TEXT - 4]} ..."


def _quote(name: str) -> str:
    return shlex.quote(name)
