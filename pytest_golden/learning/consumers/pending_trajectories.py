"""Plans that once worked, as trajectories to begin with: what a search for a solution is seeded with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.learning.logger.memory_form import EVERYBODY, PLANS
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.redaction import redact
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import StepType, check_text

if TYPE_CHECKING:
    from pytest_golden.learning.model import Memory
    from pytest_golden.storage.store import Store

OPERATOR = "production_learned"


def trajectories_for(problem: str, agent: str, limit: int = 5, *, store: MemoryStore | Store) -> tuple[Trajectory, ...]:
    """Give the plans that bear on a problem as trajectories that are not completed, one step for each of a plan's tools.

    The agent's own plans come first, then everybody's, each best first. `metadata` has `operator` (`production_learned`),
    `plan_id`, `outcome_id`, `problem`, `strategy_description`, `reasoning_pattern` and `confidence`.

    Args:
        problem: words; a plan with any of them, or for a task with any of them, is found.
        agent: whose plans come first.
        limit: how many at most.
        store: where the plans are kept.

    Raises:
        StorageError: the store cannot be read.
        ValueError: the limit is below 1, the agent's name is blank, or the problem is no text.
    """
    check_text("agent", agent)
    if not isinstance(problem, str):
        raise ValueError(f"problem must be text, not {problem!r:.100}")  # noqa: TRY004 - one kind of refusal
    memories = store if isinstance(store, MemoryStore) else MemoryStore(store)
    found: dict[str, Memory] = {}
    for place in dict.fromkeys((agent, EVERYBODY)):
        for hit in memories.search_memories((PLANS, place), problem, limit):
            found.setdefault(hit.memory.key, hit.memory)
    plans = filter(None, map(_read_plan, found.values()))
    return tuple(_begin(plan, problem) for plan in plans)[:limit]


def _read_plan(memory: Memory) -> ExtractedPlan | None:
    """Read a plan; None for what somebody else has put there, and for what a newer program wrote."""
    try:
        return ExtractedPlan.from_dict(memory.value)
    except ValueError:
        return None


def _begin(plan: ExtractedPlan, problem: str) -> Trajectory:
    trajectory = Trajectory.new(
        {
            "operator": OPERATOR,
            "plan_id": plan.plan_id,
            "outcome_id": plan.outcome_id,
            "problem": redact(problem),
            "strategy_description": plan.strategy_description,
            "reasoning_pattern": plan.reasoning_pattern,
            "confidence": plan.confidence,
        }
    )
    for tool in plan.tools_sequence:
        trajectory = trajectory.add_step(StepType.ACTION, tool, metadata={"planned": True})
    return trajectory
