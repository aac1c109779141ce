"""What waits for a person, on both databases; outputs that wait are in tests/cli/test_inbox.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.inbox_items import KINDS, MOST_OF_A_KIND, open_inbox
from pytest_golden.journal.service import Journal
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
BOTH = pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


def journal_at(store: Store, **ago: float) -> Journal:
    return Journal(store, clock=lambda: NOW - timedelta(**ago))


@BOTH
def test_what_agents_left_waits_for_a_person(store: Store) -> None:
    old, new, fresh = journal_at(store, days=30), journal_at(store, days=2), journal_at(store, hours=1)
    stale = new.log_intent("rebuild the orders", agent_id="builder")
    fresh.log_intent("deploy", agent_id="builder")
    new.log_intent("check 3 golden projects", "regression_check", agent_id="golden")
    watched = new.log_intent("migrate", agent_id="builder")
    new.log_outcome(watched.id, "unknown", expectations=[{"description": "CI green", "match_hint": {"source": "ci"}}])
    for journal, name in ((old, "long ago"), (new, "lately")):
        failed = journal.log_intent(f"fix {name}", agent_id="fixer")
        journal.log_outcome(failed.id, "failure", "it broke again")
    judged = new.log_intent("write the report", agent_id="fixer")
    new.log_outcome(judged.id, "failure")
    fresh.assess(judged.id, "failure", "as known", by="ann")
    old.add_signal("mars", "negative", "long ago")
    orphan = new.add_signal("mars", "negative", "unheard of")
    Lessons(store).add(
        SkillMemory(
            lesson="Wash the fruit before it is cut",
            what_failed="KiwiError: dirty",
            why="it was dirty",
            source="agent",
            proposed_by="fixer",
        ),
        "fixer",
    )
    found = open_inbox(store, None, NOW, by_person=True)
    assert found.counts == {"failure": 1, "signal": 1, "intent": 1, "lesson": 1}
    failure, signal, intent, lesson = found.items
    assert (failure.who, failure.title, failure.detail) == (
        "fixer",
        "fix lately",
        "the agent reported failure: it broke again",
    )
    assert failure.action == f'golden journal assess {failure.id} failure --notes "..."'
    assert (signal.id, signal.who, signal.title, signal.detail) == (orphan.id, "mars", "unheard of", "negative")
    assert signal.action == f"golden journal attach {orphan.id} ENTRY"
    assert (intent.id, intent.who, intent.title, intent.detail) == (
        stale.id,
        "builder",
        "rebuild the orders",
        "no outcome was logged",
    )
    assert (lesson.who, lesson.title) == ("fixer", "Wash the fruit before it is cut")
    assert lesson.action == f"golden lessons approve {lesson.id}"
    (hidden,) = (one for one in open_inbox(store, None, NOW, by_person=False).items if one.kind == "lesson")
    assert (hidden.id, hidden.title) == (lesson.id, "a lesson for a person to read")
    # What a person has done does not wait any more.
    fresh.assess(failure.id, "failure", "known", by="ann")
    fresh.attach(orphan.id, judged.id)
    fresh.assess(stale.id, "partial", "given up", by="ann")
    Lessons(store).approve(lesson.id, "ann")
    assert open_inbox(store, None, NOW, by_person=True).to_dict() == {"counts": {}, "items": []}


@BOTH
def test_words_of_people_that_nobody_has_read_wait(store: Store) -> None:
    journal, old = journal_at(store, hours=1), journal_at(store, days=30)
    entries = [journal.log_intent(f"open #{number}", agent_id="builder") for number in range(4)]
    for number, entry in enumerate(entries):
        hint = {"source": "github", "pr": number}
        journal.log_outcome(entry.id, "success", expectations=[{"description": "merged", "match_hint": hint}])
    said = {"event": "issue_comment", "author": "ann"}
    asked = journal.add_signal("github", "neutral", "what about nulls?", data={**said, "pr": 0})
    journal.add_signal("github", "neutral", "check lint: skipped", data={"event": "check_run", "pr": 1})
    old.add_signal("github", "neutral", "long ago", data={**said, "pr": 2})
    journal.add_signal("github", "neutral", "about what no agent did", data={**said, "pr": 99})
    (item,) = open_inbox(store, None, NOW, by_person=True).items
    assert (item.kind, item.id, item.who, item.title) == ("words", asked.id, "ann", "what about nulls?")
    assert item.action == f"golden journal show {entries[0].id}"
    journal.assess(entries[0].id, "success", "they are dropped before", by="ann")
    assert open_inbox(store, None, NOW, by_person=True).items == ()


def test_quarantines_that_end_soon_are_told(tmp_path: Path) -> None:
    lines = ["version: 1", "golden_projects:"]
    for name, until in (("over", "2026-03-19"), ("soon", "2026-04-03"), ("later", "2026-04-04")):
        lines.append(
            f"  - {{name: {name}, path: ., command: 'true', quarantine: {{until: {until}, reason: flaky upstream}}}}"
        )
    (tmp_path / "golden_projects.yaml").write_text("\n".join(lines))
    with Store.open(tmp_path / "golden.db") as store:
        found = open_inbox(store, load_manifest(tmp_path / "golden_projects.yaml"), NOW, by_person=True)
    assert [(one.id, one.title, one.detail) for one in found.items] == [
        ("over", "ended on 2026-03-19", "flaky upstream"),
        ("soon", "ends on 2026-04-03", "flaky upstream"),
    ]
    assert {one.kind for one in found.items} <= set(KINDS)


def test_very_many_are_cut(tmp_path: Path) -> None:
    with Store.open(tmp_path / "golden.db") as store:
        journal = journal_at(store, days=3)
        for number in range(MOST_OF_A_KIND + 5):
            journal.log_intent(f"work {number} {'x' * 500}", agent_id="builder")
        found = open_inbox(store, None, NOW, by_person=True)
    assert found.counts == {"intent": MOST_OF_A_KIND}
    assert found.items[0].title.startswith("work 54 x")
    assert len(found.items[0].title) <= 300
