"""The values of this room: outcomes, plans, memories, answers of searches, and recorded results. All are frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pytest_golden.clock import new_id, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.learning import memories
from pytest_golden.values import checking
from pytest_golden.values.checking import Checked, check_text, check_time, checked
from pytest_golden.values.json_form import FrozenDict
from pytest_golden.values.shape import Shape, VersionedShape

#: Returns a vector for each text. Its attribute `model`, if there is one, names the model.
Embedder = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionOutcome(Checked, VersionedShape):
    """The work of an agent or a pipeline.

    `execution_path` names the steps in order. `result` is any JSON content. `execution_time` is in seconds, None when
    unknown. Values are copied and frozen.

    Raises:
        ValueError: a field has an invalid value or exceeds its limit: a task of 10,000 characters, a path of 1,000 steps, a
            result or context of 1 MiB. The message names the field.
    """

    task_description: str = field(metadata=checked(memories.check_task))
    agent_name: str = field(metadata=checked(check_text))
    execution_path: tuple[str, ...] = field(metadata=checked(memories.check_steps))
    result: Any = field(metadata=checked(memories.freeze_json))
    success: bool = field(metadata=checked(checking.check_flag))
    error_message: str | None = field(default=None, metadata=checked(checking.check_optional_text))
    execution_time: float | None = field(default=None, metadata=checked(checking.check_seconds))
    timestamp: datetime = field(default_factory=utc_now, metadata=checked(check_time))
    context: Mapping[str, Any] = field(default_factory=FrozenDict, metadata=checked(memories.freeze_json_mapping))
    outcome_id: str = field(default_factory=lambda: new_id("outcome"), metadata=checked(check_text))

    def __hash__(self) -> int:
        return hash(self.outcome_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPlan(Checked, VersionedShape):
    """The strategy that was read from an outcome. `confidence` is 0 to 1.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """

    outcome_id: str = field(metadata=checked(check_text))
    strategy_description: str = field(metadata=checked(check_text))
    reasoning_pattern: str = field(metadata=checked(check_text))
    tools_sequence: tuple[str, ...] = field(default=(), metadata=checked(memories.check_steps))
    key_decisions: tuple[str, ...] = field(default=(), metadata=checked(memories.check_steps))
    success_factors: tuple[str, ...] = field(default=(), metadata=checked(memories.check_steps))
    failure_factors: tuple[str, ...] = field(default=(), metadata=checked(memories.check_steps))
    confidence: float = field(default=0.5, metadata=checked(memories.check_confidence))
    timestamp: datetime = field(default_factory=utc_now, metadata=checked(check_time))
    plan_id: str = field(default="", metadata=checked(check_text))

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan_id", self.plan_id or f"plan_{self.outcome_id}")
        Checked.__post_init__(self)


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


class RecordedResult(NamedTuple):
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
class Occasion(Shape):
    """The time and the run of a failure or a pass. `at` is milliseconds since the epoch."""

    at: int
    run: str
    entry: str
    commit: str | None = None
    dirty: bool | None = None
