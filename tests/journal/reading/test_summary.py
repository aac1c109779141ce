from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.journal.model import Assessment
from pytest_golden.journal.review import SuccessRate, summarize
from pytest_golden.journal.review_store import Count
from tests.journal.conftest import BEGIN, Clock

if TYPE_CHECKING:
    from pytest_golden.journal.service import Journal
    from pytest_golden.storage.store import Store


def log(journal: Journal, result: str, kind: str | None = "etl", agent: str = "builder") -> str:
    entry = journal.log_intent("x", kind, agent_id=agent)
    journal.log_outcome(entry.id, result)
    return entry.id


def test_the_rate_is_over_what_is_decided(journal: Journal, clock: Clock) -> None:
    for result in ("success", "success", "failure", "unknown"):
        log(journal, result)
    journal.assess(log(journal, "unknown"), "partial", by="ada")
    entry = journal.log_intent("x", None, agent_id="builder")
    journal.log_outcome(entry.id, "success", expectations=[{"description": "d", "expires_minutes": 1}])
    log(journal, "failure", agent="critic")
    clock.move(minutes=1)
    journal.sweep()
    told = journal.summary("builder")
    assert (told.n, told.success_rate, told.open, told.expired) == (4, 0.5, 1, 1)
    assert dict(told.by_intent_type) == {"": SuccessRate(0, None, 0, 1), "etl": SuccessRate(4, 0.5, 1, 0)}
    assert dict(told.by_time) == {"2026-03-01": SuccessRate(4, 0.5, 1, 1)}
    assert journal.summary().n == 5
    assert journal.summary("nobody").to_dict() == {
        "n": 0,
        "success_rate": None,
        "open": 0,
        "expired": 0,
        "by_intent_type": {},
        "by_time": [],
    }


def test_only_what_began_since_is_counted_to_the_moment(journal: Journal, clock: Clock) -> None:
    for hours in (0, 6, 18, 24):
        clock.now = BEGIN + timedelta(hours=hours)
        log(journal, "success")
        log(journal, "failure", agent="critic")

    def count(since: datetime, agent: str | None = None) -> int:
        return journal.summary(agent, since).n

    assert [count(BEGIN + timedelta(hours=hours)) for hours in (0, 1, 6, 7, 18, 19, 25)] == [8, 6, 6, 4, 4, 2, 0]
    assert count(BEGIN + timedelta(hours=1), "critic") == 3
    assert count(BEGIN.replace(hour=0)) == 8
    assert list(journal.summary(since=BEGIN + timedelta(hours=6)).by_time) == ["2026-03-01", "2026-03-02"]
    with pytest.raises(ValueError, match="since must be an aware datetime"):
        journal.summary(since=datetime(2026, 3, 1))  # noqa: DTZ001 - what is refused


def test_what_changes_later_is_counted_as_it_is_then(journal: Journal, store: Store) -> None:
    entry = log(journal, "success")
    journal.add_signal("ci", "negative", "broke", entry_id=entry)
    told = journal.summary()
    assert (told.n, told.success_rate) == (1, 0.0)
    assert hash(told) == hash(journal.summary())


def test_sums_are_made_of_counts_alone() -> None:
    counts = [
        Count(0, "etl", Assessment.SUCCESS, 2),
        Count(1, "etl", Assessment.FAILURE, 1),
        Count(1, "", Assessment.OPEN, 3),
    ]
    told = summarize(counts, counts).to_dict()
    assert told["by_time"] == [
        {"day": "1970-01-01", "n": 2, "success_rate": 1.0, "open": 0, "expired": 0},
        {"day": "1970-01-02", "n": 1, "success_rate": 0.0, "open": 3, "expired": 0},
    ]


def test_a_review_finds_what_is_rare_and_what_is_common(journal: Journal) -> None:
    common = [log(journal, "success") for _ in range(5)]
    rare = log(journal, "failure", agent="critic")
    assert [one.id for one in journal.review_journal("success", limit=2)] == common[:2:-1]
    assert [one.id for one in journal.review_journal("failure", agent_id="critic")] == [rare]
    assert journal.review_journal("failure", agent_id="builder") == ()
