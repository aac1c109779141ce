from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.learning.learned_pages import PlanPages
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.learning.outcomes import write_outcome, write_plan
from tests.journal.test_review import read_all

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import MakeOutcome


@pytest.fixture
def pages(store: Store) -> PlanPages:
    return PlanPages(store)


def put(
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


def ids(pages: PlanPages, **chosen: Any) -> list[str]:
    return [one["id"] for one in read_all(lambda **more: pages.list_plans(**chosen, **more))]


def test_plans_come_newest_first_each_once(store: Store, pages: PlanPages, make_outcome: MakeOutcome) -> None:
    mine, others = put(store, make_outcome, 3), put(store, make_outcome, 2, "other")
    assert ids(pages) == sorted([*mine, *others], reverse=True)
    assert ids(pages, agent="other") == others[::-1]
    assert ids(pages, agent="nobody") == []
    first = pages.list_plans().items[0].to_dict()
    assert (first["plan_id"], first["strategy_description"]) == (first["id"], "step by step")


def test_plans_are_found_by_the_words_of_their_task(store: Store, pages: PlanPages, make_outcome: MakeOutcome) -> None:
    wanted = put(store, make_outcome, 3, task="repair the invoices")
    put(store, make_outcome, 2)
    assert sorted(ids(pages, q="invoices")) == wanted
    assert ids(pages, q="invoices", agent="other") == []


def test_plan_is_got_with_its_outcome(store: Store, pages: PlanPages, make_outcome: MakeOutcome) -> None:
    put(store, make_outcome, 1, "other")
    (plan_id,) = put(store, make_outcome, 1)
    found = pages.get_plan(plan_id)
    told = found.to_dict()
    assert found.agents == ("etl",)
    assert (told["id"], told["outcome"]["outcome_id"]) == (plan_id, told["outcome_id"])
    assert told["outcome"]["task_description"] == "load orders"
    MemoryStore(store).delete(("outcomes", "etl"), told["outcome_id"])
    assert pages.get_plan(plan_id).to_dict()["outcome"] is None
    with pytest.raises(GoldenError, match="there is no plan 'plan_no'"):
        pages.get_plan("plan_no")


def test_what_is_not_allowed_is_refused(pages: PlanPages) -> None:
    with pytest.raises(ValueError, match="limit"):
        pages.list_plans(limit=0)
    with pytest.raises(ValueError, match="cursor"):
        pages.list_plans(cursor="x")
