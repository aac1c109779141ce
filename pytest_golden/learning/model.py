"""The values of this room: outcomes, plans, memories, answers of searches, and recorded results. All are frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pytest_golden.clock import iso_utc, new_id, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.learning import memories
from pytest_golden.values.checking import check_text, check_time
from pytest_golden.values.frozen import FrozenDict
from pytest_golden.values.shape import Shape, VersionedShape

#: Returns a vector for each text. Its attribute `model`, if there is one, names the model.
Embedder = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionOutcome(VersionedShape):
    """The work of an agent or a pipeline.

    `execution_path` names the steps in order. `result` is any JSON content. `execution_time` is in seconds, None when
    unknown. Values are copied and frozen.

    Raises:
        ValueError: a field has an invalid value or exceeds its limit: a task of 10,000 characters, a path of 1,000 steps, a
            result or context of 1 MiB. The message names the field.
    """

    task_description: str
    agent_name: str
    execution_path: tuple[str, ...]
    result: Any
    success: bool
    error_message: str | None = None
    execution_time: float | None = None
    timestamp: datetime = field(default_factory=utc_now)
    context: Mapping[str, Any] = field(default_factory=FrozenDict)
    outcome_id: str = field(default_factory=lambda: new_id("outcome"))

    def __post_init__(self) -> None:
        settle = object.__setattr__
        memories.check_any_text("task_description", self.task_description)
        if len(self.task_description) > memories.MOST_TASK_CHARACTERS:
            excess = f"task_description has {len(self.task_description):,} characters"
            raise ValueError(f"{excess}; at most {memories.MOST_TASK_CHARACTERS:,} are kept")
        check_text("agent_name", self.agent_name)
        check_text("outcome_id", self.outcome_id)
        settle(self, "execution_path", memories.check_texts("execution_path", self.execution_path, memories.MOST_STEPS))
        settle(self, "result", memories.freeze_json("result", self.result))
        memories.check_flag("success", self.success)
        memories.check_any_text("error_message", self.error_message, is_optional=True)
        settle(self, "execution_time", memories.check_seconds("execution_time", self.execution_time))
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        settle(self, "context", memories.freeze_json_mapping("context", self.context))

    def __hash__(self) -> int:
        return hash(self.outcome_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPlan(VersionedShape):
    """The strategy that was read from an outcome. `confidence` is 0 to 1.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    outcome_id: str
    strategy_description: str
    reasoning_pattern: str
    tools_sequence: tuple[str, ...] = ()
    key_decisions: tuple[str, ...] = ()
    success_factors: tuple[str, ...] = ()
    failure_factors: tuple[str, ...] = ()
    confidence: float = 0.5
    timestamp: datetime = field(default_factory=utc_now)
    plan_id: str = ""

    def __post_init__(self) -> None:
        settle = object.__setattr__
        for name in ("outcome_id", "strategy_description", "reasoning_pattern"):
            check_text(name, getattr(self, name))
        settle(self, "tools_sequence", memories.check_texts("tools_sequence", self.tools_sequence, memories.MOST_STEPS))
        for name in ("key_decisions", "success_factors", "failure_factors"):
            settle(self, name, memories.check_texts(name, getattr(self, name), memories.MOST_STEPS))
        settle(self, "confidence", memories.check_confidence(self.confidence))
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        settle(self, "plan_id", self.plan_id or f"plan_{self.outcome_id}")
        check_text("plan_id", self.plan_id)


@dataclass(frozen=True, slots=True)
class Memory(Shape):
    """A stored value under a namespace and a key.

    `created_at` is when the key was first saved, `updated_at` when this version was. `provenance` is the origin of the value:
    `{run, commit, steps}`.
    """

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    version: int
    tags: tuple[str, ...]
    provenance: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime

    def __hash__(self) -> int:
        return hash((self.namespace, self.key, self.version))


@dataclass(frozen=True, slots=True)
class MemoryHit(Shape):
    """A memory that a search found; a higher score fits better, and scores of two searches cannot be compared."""

    memory: Memory
    score: float


class SearchMethod(StrEnum):
    """The method of a search."""

    HYBRID = "hybrid"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class HybridAnswer(Shape):
    """The hits of a search, best first, and its method. `notice` says why it was by words alone, or what was not searched."""

    hits: tuple[MemoryHit, ...]
    method: SearchMethod
    notice: str | None = None


class VectorsError(GoldenError):
    """There are no vectors to search by or to store. The message is a clause that says why."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """A row of the gate's results with the run's commit. `result` is JSON text, so that a damaged row does not stop others."""

    number: int
    project: str
    status: str
    exit_code: int | None
    execution_time_seconds: float
    attempts: int
    is_flaky: bool
    trajectory_id: str | None
    occasion: Occasion
    branch: str | None
    result: str
    # The run's word for `--golden-learning`; None when it is unknown.
    learning: str | None


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """An earlier result of a project: its status and its branch."""

    status: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class Occasion(Shape):
    """The time and the run of a failure or a pass. `at` is milliseconds since the epoch."""

    at: int
    run: str
    entry: str
    commit: str | None = None
    dirty: bool | None = None


def training_value(outcome: ProductionOutcome, plan: ExtractedPlan) -> dict[str, Any]:
    """Return the value of a training example: an outcome with the plan that was read from it."""
    return {
        "training_id": f"training_{plan.plan_id}",
        "outcome": outcome.to_dict(),
        "plan": plan.to_dict(),
        "created_at": iso_utc(outcome.timestamp),
    }
