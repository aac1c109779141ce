"""What waits for a person, each item with its one action: from the store, the manifest, and the outputs that red runs kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError, GoldenError
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.gate.store import CYCLE_TYPE
from pytest_golden.gate.waiting_outputs import open_waiting
from pytest_golden.gateway.git import run_git
from pytest_golden.journal import review_store
from pytest_golden.journal.model import SignalType
from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.learning.learned_pages import LearnedPages
from pytest_golden.regression.wording import count_of
from pytest_golden.storage.columns import to_ms
from pytest_golden.values.shape import Shape, in_form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store

#: What may wait, the most urgent first, and its title.
KINDS: Mapping[str, str] = {
    "outputs": "outputs of red runs",
    "cycle": "branches of improvement cycles",
    "failure": "failures that nobody has judged",
    "words": "words of people that nobody has read",
    "signal": "news that found no entry",
    "intent": "intents without an outcome",
    "lesson": "lessons to be approved",
    "quarantine": "quarantines that end",
    "floor": "weaker floors that were accepted",
}
MOST_OF_A_KIND = 50
# How long news and failures are shown, when an intent is stale, and how long before its end a quarantine is listed.
_SHOWN_DAYS, _STALE_DAYS, _SOON_DAYS, _WEEK_DAYS = 14, 1, 14, 7
_MOST_OF_TEXT = 300
# What a person does with the branch of a cycle, by its verdict.
_ACTIONS = {"verified": "git merge {branch}", "flagged": "git diff HEAD...{branch}"}


@dataclass(frozen=True, slots=True)
class InboxItem(Shape):
    """Something that waits. `kind` is one of `KINDS`, `id` the id of the entry, signal, lesson or project, `action` a command.

    `who` is the agent, source or project that it comes from.
    """

    kind: str
    id: str
    who: str
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
        """Return how many of each kind are listed."""
        found = Counter(item.kind for item in self.items)
        return {kind: found[kind] for kind in KINDS if found[kind]}


def open_inbox(store: Store, manifest: Manifest | None, now: datetime, *, by_person: bool) -> Inbox:
    """Find what waits for a person. Without a manifest, outputs, branches of cycles and quarantines are left out.

    Only a person sees the words of a lesson that waits.

    Raises:
        StorageError: the store cannot be read.
    """
    found = chain(
        () if manifest is None else _list_outputs(manifest),
        () if manifest is None else _list_cycles(store, manifest.workspace_root),
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
        yield InboxItem("outputs", "", "golden", "what red runs kept cannot be read", str(error), None, "golden accept")
        return
    for run in runs[:MOST_OF_A_KIND]:
        told = run.refused or ", ".join(f"{output.path} {output.change}" for output in run.outputs)
        title = count_of(len(run.outputs) + run.omitted, "output")
        action = f"golden accept {quote(run.project)}"
        yield InboxItem("outputs", run.project, run.project, title, _cut(told), run.origin.at, action)


def _list_cycles(store: Store, folder: Path) -> Iterator[InboxItem]:
    """Yield the newest cycles with a verdict whose branch exists and is not merged into what is checked out."""
    with store.read() as connection:
        rows = review_store.list_numbered_entries(connection, MOST_OF_A_KIND, intent_type=CYCLE_TYPE)
    noted = [
        (entry, entry.actions[0]) for _, entry, _ in rows if entry.actions and isinstance(entry.actions[0], Mapping)
    ]
    open_branches = _list_open_branches(folder) if noted else frozenset()
    for entry, note in noted:
        branch, verdict = str(note.get("branch")), note.get("verdict")
        if verdict in _ACTIONS and branch in open_branches:
            action = _ACTIONS[verdict].format(branch=quote(branch))
            yield InboxItem(
                "cycle", entry.id, str(verdict), _cut(entry.intent), branch, entry.closed_at or entry.updated_at, action
            )


def _list_open_branches(folder: Path) -> frozenset[str]:
    try:
        done = run_git(folder, "for-each-ref", "--no-merged=HEAD", "--format=%(refname:short)", "refs/heads/golden/")
    except GoldenError:
        # Without git there is no branch to merge.
        return frozenset()
    return frozenset(done.stdout.split())


def _list_of_journal(store: Store, now: datetime) -> Iterator[InboxItem]:
    since, before = now - timedelta(days=_SHOWN_DAYS), now - timedelta(days=_STALE_DAYS)
    with store.read() as connection:
        failures = review_store.list_unjudged(
            connection, without_agent=GATE_AGENT, since=to_ms(since), limit=MOST_OF_A_KIND
        )
        words = review_store.list_unread_words(connection, since=to_ms(since), limit=MOST_OF_A_KIND)
        orphans = review_store.list_orphans(connection, limit=MOST_OF_A_KIND)
        intents = review_store.list_unfinished(
            connection, without_agent=GATE_AGENT, before=to_ms(before), limit=MOST_OF_A_KIND
        )
    for entry in failures:
        action = f'golden journal assess {entry.id} failure --notes "..."'
        detail = _cut(entry.assessment_notes or "")
        yield InboxItem("failure", entry.id, entry.agent_id, _cut(entry.intent), detail, entry.updated_at, action)
    for signal in words:
        action = f"golden journal show {signal.entry_id}"
        who = str(signal.data.get("author") or signal.source)
        yield InboxItem("words", signal.id, who, _cut(signal.summary), "", signal.created_at, action)
    for signal in orphans:
        # A signal that decides nothing needs no entry.
        if signal.created_at >= since and signal.signal_type is not SignalType.NEUTRAL:
            action, detail = f"golden journal attach {signal.id} ENTRY", signal.signal_type.value
            yield InboxItem("signal", signal.id, signal.source, _cut(signal.summary), detail, signal.created_at, action)
    for entry in intents:
        action = f'golden journal assess {entry.id} partial --notes "..."'
        told = "no outcome was logged"
        yield InboxItem("intent", entry.id, entry.agent_id, _cut(entry.intent), told, entry.created_at, action)


def _list_lessons(store: Store, *, by_person: bool) -> Iterator[InboxItem]:
    for item in LearnedPages(store).list_lessons(filter="waits", limit=MOST_OF_A_KIND).items:
        skill = item.kept.skill
        who = skill.proposed_by or item.kept.agent
        action = f"golden lessons approve {skill.id}"
        title = _cut(skill.lesson) if by_person else "a lesson for a person to read"
        yield InboxItem("lesson", skill.id, who, title, "", skill.created_at, action)


def _list_quarantines(manifest: Manifest, now: datetime) -> Iterator[InboxItem]:
    for project in manifest.projects:
        limit = project.quarantine
        days = None if limit is None else (limit.until - now.date()).days
        if limit is not None and days is not None and days <= _SOON_DAYS:
            ends = f"ended on {limit.until}" if days < 0 else f"ends on {limit.until}"
            action = f"golden history {quote(project.name)}"
            yield InboxItem("quarantine", project.name, project.name, ends, _cut(limit.reason), None, action)


def _list_weaker_floors(store: Store, now: datetime) -> Iterator[InboxItem]:
    for run in RecordedGates(store).list_runs(MOST_OF_A_KIND).items:
        verdict = run.verdict
        if verdict.weakenings and verdict.floor_accepted and run.started_at >= now - timedelta(days=_WEEK_DAYS):
            title = f"{count_of(verdict.weakenings, 'weakening')} accepted"
            who = run.commit[:10] if run.commit else "no commit"
            yield InboxItem("floor", run.entry_id, who, title, "", run.started_at, f"golden report {run.entry_id}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_TEXT else f"{line[: _MOST_OF_TEXT - 4]} ..."
