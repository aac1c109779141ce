"""Outcomes, plans and training examples as the memories that they are kept as. Pure: nothing is stored here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.learning.limits import MOST_BYTES
from pytest_golden.learning.logger.cutting import cut_json, measure
from pytest_golden.learning.model import training_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome

OUTCOMES, PLANS, TRAINING, EVERYBODY = "outcomes", "plans", "training", "global"
_MOST_OF_TASK = 2_000


def write_outcome(outcome: ProductionOutcome) -> tuple[Mapping[str, Any], ...]:
    """Give the arguments of `MemoryStore.save_memories` for an outcome."""
    tags = ("production", "outcome", "success" if outcome.success else "failure")
    return (_memory((OUTCOMES, outcome.agent_name), outcome.outcome_id, outcome.to_dict(), tags),)


def write_plan(plan: ExtractedPlan, outcome: ProductionOutcome) -> tuple[Mapping[str, Any], ...]:
    """Give those for a plan, which is the agent's and everybody's.

    A plan names no task, and is looked for by the task's words: it is also found by these.
    """
    value = plan.to_dict()
    words = outcome.task_description[:_MOST_OF_TASK]
    return tuple(
        {**_memory((PLANS, place), plan.plan_id, value, ("production", "plan")), "words": words}
        for place in dict.fromkeys((outcome.agent_name, EVERYBODY))
    )


def write_training_example(outcome: ProductionOutcome, plan: ExtractedPlan) -> tuple[Mapping[str, Any], ...]:
    """Give those for a training example; an outcome too large to be stored beside its plan is cut."""
    value = training_value(outcome, plan)
    told = value["outcome"]
    for name in ("result", "context"):
        excess = measure(value) - MOST_BYTES
        if excess > 0:
            told[name] = cut_json(told[name], measure(told[name]) - excess).kept
    tags = ("se_darwin", "training", "production_learning")
    return (_memory((TRAINING, outcome.agent_name), value["training_id"], value, tags),)


def _memory(namespace: tuple[str, ...], key: str, value: Mapping[str, Any], tags: tuple[str, ...]) -> Mapping[str, Any]:
    return {"namespace": namespace, "key": key, "value": value, "tags": tags}
