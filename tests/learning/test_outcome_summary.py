"""What the outcomes of agents add up to, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning import outcome_summary
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_summary import sum_up_outcomes
from pytest_golden.learning.outcomes import write_outcome
from tests.learning.conftest import BOTH, START

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.learning.conftest import MakeOutcome


@pytest.fixture
def memories(location: str | Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(location, clock=lambda: START) as opened:
        yield opened


@pytest.fixture
def log(memories: MemoryStore, make_outcome: MakeOutcome) -> Any:
    """Keep an outcome of the hour; the hours are counted from the first of March."""

    def keep(hour: float, **fields: Any) -> str:
        outcome = make_outcome(timestamp=START + timedelta(hours=hour), **fields)
        memories.save_memories(write_outcome(outcome))
        return outcome.outcome_id

    return keep


@BOTH
def test_outcomes_are_counted_by_agent_day_and_domain(memories: MemoryStore, log: Any) -> None:
    log(0, execution_time=1.0, context={"domain": "orders"})
    log(1, execution_time=3.0, success=False, error_message="KeyError: 'a'", context={"intent_type": "fix"})
    log(24, agent_name="fixer", context={"domain": 3})
    log(25, agent_name="golden", success=False)
    told = sum_up_outcomes(memories.store)
    assert (told.n, told.success_rate, told.median_seconds, told.is_cut) == (3, 2 / 3, 2.0, False)
    assert [(one.agent, one.rate.n, one.rate.success_rate) for one in told.agents] == [
        ("etl", 2, 0.5),
        ("fixer", 1, 1.0),
    ]
    assert {day: rate.n for day, rate in told.by_time.items()} == {"2026-03-01": 2, "2026-03-02": 1}
    assert {name: rate.success_rate for name, rate in told.by_domain.items()} == {"fix": 0.0, "orders": 1.0}
    assert [one.agent for one in sum_up_outcomes(memories.store, "fixer").agents] == ["fixer"]
    later = sum_up_outcomes(memories.store, since=START + timedelta(hours=2))
    assert [(one.agent, one.rate.n) for one in later.agents] == [("fixer", 1)]
    plain = told.to_dict()
    assert (plain["n"], plain["agents"][0]["n"], plain["by_time"][0]["day"]) == (3, 2, "2026-03-01")


@BOTH
def test_hints_and_waiting_lessons_are_counted_for_their_agent(memories: MemoryStore) -> None:
    lessons = Lessons(memories)
    for number, state in enumerate(("shown", "waits", "rejected")):
        name = ["Kiwi", "Plum", "Pear"][number]
        skill = SkillMemory(
            lesson=f"Wash the {name} before it is cut",
            what_failed=f"{name}Error: no {name} here",
            why="it was dirty",
            evidence={"error": f"{name}Error: no {name} here"},
            approved=state == "shown",
            source="rules" if state == "shown" else "agent",
        )
        kept = lessons.add(skill, "fixer").skill
        if state == "rejected":
            lessons.reject(kept.id, "ann")
    for passed in (True, True, False, None):
        (recalled,) = lessons.recall("KiwiError: no Kiwi here")
        if passed is not None:
            lessons.settle(recalled.recall_id, passed)
    (told,) = sum_up_outcomes(memories.store).agents
    assert (told.agent, told.rate.n, told.rate.success_rate) == ("fixer", 0, None)
    assert (told.shown, told.helped, told.harmed, told.waiting) == (4, 2, 1, 1)
    assert sum_up_outcomes(memories.store, since=START + timedelta(days=9_000)).agents[0].shown == 0


def test_what_failed_twice_is_told_by_its_signature(memories: MemoryStore, log: Any) -> None:
    log(0, success=False, error_message="KeyError: 'customer_17'")
    last = log(
        5,
        success=False,
        agent_name="fixer",
        error_message="Traceback (most recent call last):\n  File \"a\"\nKeyError: 'customer_4'",
    )
    log(3, success=False, error_message="ValueError: once")
    log(4, success=False, error_message="ValueError: once", agent_name="golden")
    (told,) = sum_up_outcomes(memories.store).failures
    assert (told.message, told.count, told.agents) == ("KeyError: 'customer_4'", 2, ("etl", "fixer"))
    assert (told.last_at, told.last_outcome_id) == (START + timedelta(hours=5), last)


@pytest.mark.parametrize(("later", "is_worse"), [(5, False), (4, False), (1, True), (0, True)])
def test_steps_that_became_worse_are_named(memories: MemoryStore, log: Any, later: int, is_worse: bool) -> None:
    for hour in range(10):
        log(hour, success=hour < 5 or hour - 5 < later)
    told = sum_up_outcomes(memories.store).worse
    if not is_worse:
        assert told == ()
        return
    (one,) = told
    assert (one.steps, one.earlier.success_rate, one.later.success_rate) == (("extract", "load"), 1.0, later / 5)
    assert one.p_value < 0.05


def test_only_the_newest_are_read(memories: MemoryStore, log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_summary, "MOST_OUTCOMES", 2)
    for hour in range(3):
        log(hour, success=hour > 0)
    told = sum_up_outcomes(memories.store)
    assert (told.n, told.success_rate, told.is_cut) == (2, 1.0, True)


@pytest.mark.parametrize(
    "value", [{}, {"timestamp": "yesterday"}, {"timestamp": 3}, {"timestamp": "2026-03-01T12:00:00Z"}]
)
def test_another_memory_among_the_outcomes_is_no_error(memories: MemoryStore, value: dict[str, Any]) -> None:
    memories.save_memory(("outcomes", "etl"), "x", value)
    assert sum_up_outcomes(memories.store).n == ("Z" in str(value))
