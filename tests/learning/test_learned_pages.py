from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import new_id
from pytest_golden.errors import GoldenError
from pytest_golden.learning import learned_pages as paging
from pytest_golden.learning.learned_pages import LESSON_FILTERS, LearnedPages
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.lessons.store import find_lessons, put_lesson
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.learning.outcomes import write_outcome, write_plan
from tests.journal.test_review import read_all
from tests.learning.conftest import BOTH, START_MS
from tests.learning.lessons.conftest import ERROR, make_skill

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import Clock, MakeOutcome

STATES: dict[str, dict[str, Any]] = {
    "shown": {},
    "waits": {"approved": False},
    "harmful": {"harm_count": 5},
    "superseded": {"superseded_by": "lesson_x"},
    "rejected": {"approved": False, "rejected": True},
}


@pytest.fixture
def lessons(store: Store, clock: Clock) -> Lessons:
    return Lessons(store, clock=clock)


@pytest.fixture
def pages(store: Store) -> LearnedPages:
    return LearnedPages(store)


def put(store: Store, count: int, agent: str = "etl", state: str = "shown", word: str = "decimal") -> list[str]:
    """Put lessons that stand so into the store, unchecked, and give their ids."""
    ids = sorted(new_id("lesson") for _ in range(count))
    with store.write() as connection:
        for number, lesson_id in enumerate(ids):
            skill = make_skill(f"Mind the {word} {number}", id=lesson_id, **STATES[state])
            put_lesson(connection, skill, agent, START_MS)
    return ids


def ids(pages: LearnedPages, limit: int = 2, **chosen: Any) -> list[str]:
    return [one["id"] for one in read_all(lambda **more: pages.list_lessons(**chosen, **more), limit)]


@BOTH
def test_lessons_come_newest_first(store: Store, pages: LearnedPages) -> None:
    first, others, last = put(store, 3), put(store, 2, "other"), put(store, 2)
    assert ids(pages) == sorted([*first, *others, *last], reverse=True)
    assert ids(pages, agent="other") == others[::-1]
    assert ids(pages, agent="nobody\0") == []


@BOTH
def test_lessons_of_very_many_agents_are_read_together(store: Store, pages: LearnedPages) -> None:
    known = [one for number in range(120) for one in put(store, 1, f"agent-{number}")]
    with store.write() as connection:
        # What another agent has under the id of one that is asked for is not what is asked for.
        put_lesson(connection, make_skill("Mind the gap", id=known[0]), "zz", START_MS)
        asked = [(f"agent-{number}", lesson_id) for number, lesson_id in enumerate(known)][::-1]
        found = find_lessons(connection, [*asked, *asked, ("nobody", known[0])])
    assert [(one.agent, one.skill.id) for one in found] == asked
    assert ids(pages, limit=200, agent="agent-7") == [known[7]]


def test_lessons_are_narrowed_to_how_they_stand(store: Store, pages: LearnedPages) -> None:
    known = {state: put(store, 2, state=state) for state in STATES}
    for state, found in known.items():
        assert ids(pages, 50, filter=state) == found[::-1]
    current = sorted([*known["shown"], *known["waits"], *known["harmful"]], reverse=True)
    assert ids(pages) == current
    assert len(ids(pages, filter="all")) == 10
    assert {one["state"] for one in pages.list_lessons(filter="all").to_dict()["items"]} == set(STATES)
    assert set(LESSON_FILTERS) == {"current", "all", *STATES}


def test_rare_lessons_are_found_page_by_page(
    store: Store, pages: LearnedPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "_AT_ONCE", 2)
    monkeypatch.setattr(paging, "_MOST_READ", 4)
    (rare,) = put(store, 1, state="waits")
    put(store, 9)
    cursor, found, asked = None, [], 0
    while True:
        page = pages.list_lessons(filter="waits", limit=5, cursor=cursor)
        found += [one.kept.skill.id for one in page.items]
        cursor, asked = page.next_cursor, asked + 1
        if cursor is None:
            break
    assert (found, asked) == ([rare], 3)


@BOTH
def test_lessons_are_found_by_words(store: Store, pages: LearnedPages) -> None:
    mine, others = put(store, 5, word="delimiter"), put(store, 1, "other", word="delimiter")
    put(store, 1, state="rejected", word="delimiter")
    put(store, 2, word="timezone")
    assert sorted(ids(pages, q=" delimiter ")) == sorted([*mine, *others])
    assert ids(pages, q="delimiter", agent="other") == others
    assert ids(pages, q="nothing-like-it") == []
    assert len(ids(pages, q="delimiter", filter="rejected")) == 1
    assert len(ids(pages, q=" ")) == 8
    cursor = pages.list_lessons("delimiter", limit=1).next_cursor
    with pytest.raises(ValueError, match="cursor"):
        pages.list_lessons("timezone", cursor=cursor)
    with pytest.raises(ValueError, match="cursor"):
        pages.list_lessons(cursor=cursor)


@BOTH
def test_lesson_is_got_with_its_evidence_versions_and_recalls(lessons: Lessons, pages: LearnedPages) -> None:
    skill = lessons.add(make_skill(), "etl").skill
    (recalled,) = lessons.recall(ERROR, project="sales")
    lessons.settle(recalled.recall_id, passed=True)
    lessons.approve(skill.id, "ann")
    found = pages.get_lesson(skill.id)
    assert (found.kept.agent, found.state, len(found.history)) == ("etl", "shown", 3)
    told = found.to_dict()
    assert told["evidence"]["error"] == ERROR
    assert [one["why"] for one in told["history"]] == ["learned", "helped", "approved"]
    (shown,) = told["recalls"]
    assert (shown["id"], shown["project"], shown["passed"]) == (recalled.recall_id, "sales", True)
    assert shown["created_at"] == "2026-03-01T12:00:00.000000Z"
    with pytest.raises(GoldenError, match="there is no lesson"):
        pages.get_lesson("lesson_no")


def test_what_is_not_allowed_is_refused(pages: LearnedPages) -> None:
    with pytest.raises(ValueError, match="filter 'good' is unknown: give one of current, all, shown"):
        pages.list_lessons(filter="good")
    with pytest.raises(ValueError, match="limit"):
        pages.list_lessons(limit=0)


def put_plan(
    store: Store, make_outcome: MakeOutcome, count: int, agent: str = "etl", task: str = "load orders"
) -> list[str]:
    ids = []
    for _ in range(count):
        outcome = make_outcome(agent_name=agent, task_description=task)
        plan = ExtractedPlan(
            outcome_id=outcome.outcome_id, strategy_description="step by step", reasoning_pattern="sequential"
        )
        MemoryStore(store).save_memories([*write_outcome(outcome), *write_plan(plan, outcome)])
        ids.append(plan.plan_id)
    return sorted(ids)


def plan_ids(pages: LearnedPages, **chosen: Any) -> list[str]:
    return [one["id"] for one in read_all(lambda **more: pages.list_plans(**chosen, **more))]


@BOTH
def test_plans_come_newest_first_each_once(store: Store, pages: LearnedPages, make_outcome: MakeOutcome) -> None:
    mine, others = put_plan(store, make_outcome, 3), put_plan(store, make_outcome, 2, "other")
    assert plan_ids(pages) == sorted([*mine, *others], reverse=True)
    assert plan_ids(pages, agent="other") == others[::-1]
    assert plan_ids(pages, agent="nobody") == []
    first = pages.list_plans().items[0].to_dict()
    assert (first["plan_id"], first["strategy_description"]) == (first["id"], "step by step")


@BOTH
def test_plans_are_found_by_the_words_of_their_task(
    store: Store, pages: LearnedPages, make_outcome: MakeOutcome
) -> None:
    wanted = put_plan(store, make_outcome, 3, task="repair the invoices")
    put_plan(store, make_outcome, 2)
    assert sorted(plan_ids(pages, q="invoices")) == wanted
    assert plan_ids(pages, q="invoices", agent="other") == []


@BOTH
def test_plan_is_got_with_its_outcome(store: Store, pages: LearnedPages, make_outcome: MakeOutcome) -> None:
    put_plan(store, make_outcome, 1, "other")
    (plan_id,) = put_plan(store, make_outcome, 1)
    found = pages.get_plan(plan_id)
    told = found.to_dict()
    assert found.agents == ("etl",)
    assert (told["id"], told["outcome"]["outcome_id"]) == (plan_id, told["outcome_id"])
    assert told["outcome"]["task_description"] == "load orders"
    MemoryStore(store).delete(("outcomes", "etl"), told["outcome_id"])
    assert pages.get_plan(plan_id).to_dict()["outcome"] is None
    with pytest.raises(GoldenError, match="there is no plan 'plan_no'"):
        pages.get_plan("plan_no")


def test_plans_refuse_what_is_not_allowed(pages: LearnedPages) -> None:
    with pytest.raises(ValueError, match="limit"):
        pages.list_plans(limit=0)
    with pytest.raises(ValueError, match="cursor"):
        pages.list_plans(cursor="x")
