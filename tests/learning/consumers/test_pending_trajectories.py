from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_logger import log_agent_outcome
from pytest_golden.learning.training import trajectories_for

if TYPE_CHECKING:
    from pytest_golden.learning.model import ProductionOutcome
    from pytest_golden.storage.store import Store


def log(store: Store, task: str, path: list[str], agent: str = "etl") -> ProductionOutcome:
    return asyncio.run(log_agent_outcome(store, task, {"status": "success"}, True, path, agent, 1.0))


def test_plan_for_a_task_alike_is_a_trajectory_to_begin_with(store: Store) -> None:
    outcome = log(store, "reconcile the invoices of March", ["read_ledger", "match", "post"])
    log(store, "send a newsletter", ["render", "mail"])
    (found,) = trajectories_for("invoices of April do not match", "etl", store=store)
    assert not found.is_completed
    assert [step.content for step in found.steps] == ["read_ledger", "match", "post"]
    assert found.metadata["operator"] == "production_learned"
    assert found.metadata["plan_id"] == f"plan_{outcome.outcome_id}"
    assert found.metadata["outcome_id"] == outcome.outcome_id
    assert found.metadata["reasoning_pattern"] == "iterative_refinement"
    assert found.metadata["problem"] == "invoices of April do not match"
    assert found.complete().is_completed


def test_plans_are_found_by_their_steps_too(store: Store) -> None:
    log(store, "task", ["read_ledger"])
    assert len(trajectories_for("read_ledger", "etl", store=MemoryStore(store))) == 1


def test_own_plans_come_first_and_then_those_of_others(store: Store) -> None:
    others = [log(store, "load invoices invoices", ["a"], "other") for _ in range(3)]
    own = log(store, "load some invoices and orders", ["b"])
    found = trajectories_for("invoices", "etl", limit=3, store=store)
    ids = [one.metadata["outcome_id"] for one in found]
    assert ids[0] == own.outcome_id
    assert len(set(ids)) == 3
    assert set(ids[1:]) < {one.outcome_id for one in others}


def test_nothing_alike_gives_nothing(store: Store) -> None:
    log(store, "load invoices", ["a"])
    assert trajectories_for("zebra", "etl", store=store) == ()
    assert trajectories_for("", "etl", store=store) == ()


def test_what_is_no_plan_is_left_out(store: Store) -> None:
    memories = MemoryStore(store)
    memories.save_memory(("plans", "etl"), "odd", {"about": "invoices"})
    memories.save_memory(
        ("plans", "etl"),
        "newer",
        {"schema_version": 99, "outcome_id": "o", "strategy_description": "invoices", "reasoning_pattern": "p"},
    )
    assert trajectories_for("invoices", "etl", store=store) == ()


def test_wrong_arguments_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="limit"):
        trajectories_for("invoices", "etl", limit=0, store=store)
    with pytest.raises(ValueError, match="agent"):
        trajectories_for("invoices", " ", store=store)
    for foreign in (None, 5, ["invoices"]):
        with pytest.raises(ValueError, match="problem must be text"):
            trajectories_for(foreign, "etl", store=store)  # type: ignore[arg-type]
