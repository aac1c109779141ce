"""The journal on bad days: writers that are killed, and callers that give it what nobody should."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from pytest_golden.errors import JournalError
from pytest_golden.journal.service import Journal
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KILLS = Path(__file__).parents[2] / "benchmarks" / "journal_kills.py"
DEEP = 100_000
HOSTILE_TEXTS = (
    "'; DROP TABLE entries; --",
    "<script>alert(1)</script>",
    "${HOME}",
    "%s %(a)s {0}",
    "\x1b[2J",
    "\u202e",
)


def make_deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(depth):
        value = {"a": value}
    return value


def make_loop() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["itself"] = value
    return value


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as store:
        yield store


def count_rows(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }


def test_no_acknowledged_write_is_lost_when_writers_are_killed(
    location: str | Path, tmp_path: Path, warm_starts: Path
) -> None:
    ended = subprocess.run(
        [warm_starts / "python", KILLS, "--store", str(location), "--writers", "3", "--writes", "24", "--kills", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert Counter(line.partition(": ")[2][:11] for line in ended.stdout.splitlines())["no problems"] == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda journal, _: journal.log_intent("child", agent_id="a", parent_id="entry_none"),
        lambda journal, _: journal.log_outcome("entry_none", "success"),
        lambda journal, entry: journal.log_outcome(entry, "success", agent_id="b", expectations=[{"description": "d"}]),
        lambda journal, entry: journal.log_outcome(entry, "good", expectations=[{"description": "d"}]),
        lambda journal, entry: journal.log_outcome(entry, "success", actions=["x" * (20 << 20)]),
        lambda journal, entry: journal.log_outcome(
            entry, "success", expectations=[{"description": "d"}, {"description": "d", "match_hint": make_deep(50)}]
        ),
        lambda journal, entry: journal.log_outcome(
            entry, "success", expectations=[{"description": "d"}, {"description": "d", "match_hint": make_loop()}]
        ),
        lambda journal, entry: journal.log_outcome(
            entry, "success", expectations=[{"description": "d"}, {"description": "d", "expires_minutes": -1}]
        ),
        lambda journal, entry: journal.add_signal("ci", "positive", "x" * (20 << 20), entry_id=entry),
        lambda journal, entry: journal.add_signal("ci", "positive", "x", data={"a": "x" * (20 << 20)}, entry_id=entry),
        lambda journal, entry: journal.add_signal("ci", "good", "x", entry_id=entry),
        lambda journal, entry: journal.add_signal("ci", "positive", "x\0", entry_id=entry),
        lambda journal, entry: journal.add_signal("ci", "positive", "x", entry_id=entry, agent_id="b"),
        lambda journal, entry: journal.assess(entry, "open", by="ada"),
    ],
)
def test_what_is_refused_leaves_nothing_half_written(store: Store, call: Callable[[Journal, str], object]) -> None:
    journal = Journal(store)
    entry = journal.log_intent("load", agent_id="a")
    before = count_rows(store)
    with pytest.raises((ValueError, JournalError)) as refusal:
        call(journal, entry.id)
    assert len(str(refusal.value)) < 1_000
    assert count_rows(store) == before
    assert journal.get(entry.id) == entry


@pytest.mark.parametrize(
    "make", [lambda: make_deep(50), lambda: make_deep(DEEP), make_loop], ids=["50", "deep", "loop"]
)
def test_what_is_nested_deeply_is_kept_or_cut_but_never_breaks(store: Store, make: Callable[[], Any]) -> None:
    journal = Journal(store)
    entry = journal.log_intent("load", agent_id="a")
    journal.log_outcome(
        entry.id, "success", actions=[make()], expectations=[{"description": "d", "expires_minutes": 5}]
    )
    signal = journal.add_signal("ci", "positive", "green", data=make(), entry_id=entry.id)
    kept = journal.get(entry.id)
    assert (kept.assessment, kept.signals) == ("success", (signal,))
    assert journal.explain_routing(signal.id).candidates[0].taken


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "half \udc80"])
def test_texts_for_other_programs_are_kept_as_they_are(store: Store, text: str) -> None:
    journal = Journal(store)
    name = text.replace("\udc80", "")
    entry = journal.log_intent(text, name, agent_id=name, session_key=name)
    asked = {"description": text, "match_hint": {name: text}, "expires_minutes": 5}
    journal.log_outcome(entry.id, "success", text, actions=[{name: text}], expectations=[asked])
    journal.add_signal(name, "positive", text, data={name: text}, external_id=name, agent_id=name)
    [kept] = journal.review_journal("success", name, agent_id=name)
    seen = text.replace("\udc80", "\\udc80")
    assert (kept.id, kept.intent, kept.immediate_notes, kept.expectations[0].description) == (entry.id, *[seen] * 3)
    assert journal.get(entry.id).signals[0].summary == seen
