"""The values of this room: outcomes, plans, memories, answers of searches, and recorded results. All are frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, new_id, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.learning.memories import (
    MOST_STEPS,
    MOST_TASK_CHARACTERS,
    SCHEMA_VERSION,
    check_any_text,
    check_confidence,
    check_flag,
    check_known_version,
    check_seconds,
    check_texts,
    freeze_json,
    freeze_json_mapping,
    thaw,
)
from pytest_golden.values.checking import check_text, check_time, parse_time
from pytest_golden.values.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping


_TIMESTAMP_FIELDS = frozenset({"timestamp", "created_at", "updated_at", "last_used", "judged_at"})
#: Returns a vector for each text. Its attribute `model`, if there is one, names the model.
Embedder = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionOutcome:
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
        check_any_text("task_description", self.task_description)
        if len(self.task_description) > MOST_TASK_CHARACTERS:
            told = f"task_description has {len(self.task_description):,} characters"
            raise ValueError(f"{told}; at most {MOST_TASK_CHARACTERS:,} are kept")
        check_text("agent_name", self.agent_name)
        check_text("outcome_id", self.outcome_id)
        settle(self, "execution_path", check_texts("execution_path", self.execution_path, MOST_STEPS))
        settle(self, "result", freeze_json("result", self.result))
        check_flag("success", self.success)
        check_any_text("error_message", self.error_message, is_optional=True)
        settle(self, "execution_time", check_seconds("execution_time", self.execution_time))
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        settle(self, "context", freeze_json_mapping("context", self.context))

    def __hash__(self) -> int:
        return hash(self.outcome_id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names and `schema_version`, JSON-safe."""
        return write_fields(self, with_version=True)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> ProductionOutcome:
        """Read back what `to_dict` gave; unknown keys are tolerated, `ValueError` names a key that is missing or wrong."""
        return cls(**read_fields(cls, mapping, required=_REQUIRED[cls]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPlan:
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
        settle(self, "tools_sequence", check_texts("tools_sequence", self.tools_sequence, MOST_STEPS))
        for name in ("key_decisions", "success_factors", "failure_factors"):
            settle(self, name, check_texts(name, getattr(self, name), MOST_STEPS))
        settle(self, "confidence", check_confidence(self.confidence))
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        settle(self, "plan_id", self.plan_id or f"plan_{self.outcome_id}")
        check_text("plan_id", self.plan_id)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names and `schema_version`, JSON-safe."""
        return write_fields(self, with_version=True)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> ExtractedPlan:
        """Read back what `to_dict` gave; unknown keys are tolerated, `ValueError` names a key that is missing or wrong."""
        return cls(**read_fields(cls, mapping, required=_REQUIRED[cls]))


@dataclass(frozen=True, slots=True)
class Memory:
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

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return write_fields(self)


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that a search found; a higher score fits better, and scores of two searches cannot be compared."""

    memory: Memory
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Return memory and score, JSON-safe."""
        return {"memory": self.memory.to_dict(), "score": self.score}


class SearchMethod(StrEnum):
    """The method of a search."""

    HYBRID = "hybrid"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class HybridAnswer:
    """The hits of a search, best first, and its method. `notice` says why it was by words alone, or what was not searched."""

    hits: tuple[MemoryHit, ...]
    method: SearchMethod
    notice: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, JSON-safe."""
        return {"hits": [hit.to_dict() for hit in self.hits], "method": self.method.value, "notice": self.notice}


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
class Occasion:
    """The time and the run of a failure or a pass. `at` is milliseconds since the epoch."""

    at: int
    run: str
    entry: str
    commit: str | None = None
    dirty: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields under their own names."""
        return {"at": self.at, "run": self.run, "entry": self.entry, "commit": self.commit, "dirty": self.dirty}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Occasion:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        return cls(mapping["at"], mapping["run"], mapping["entry"], mapping.get("commit"), mapping.get("dirty"))


def training_value(outcome: ProductionOutcome, plan: ExtractedPlan) -> dict[str, Any]:
    """Return the value of a training example: an outcome with the plan that was read from it."""
    return {
        "training_id": f"training_{plan.plan_id}",
        "outcome": outcome.to_dict(),
        "plan": plan.to_dict(),
        "created_at": iso_utc(outcome.timestamp),
    }


def write_fields(value: Any, *, with_version: bool = False) -> dict[str, Any]:
    """Return all fields of a frozen value, JSON-safe, and `schema_version` where that is wanted."""
    plain: dict[str, Any] = {"schema_version": SCHEMA_VERSION} if with_version else {}
    for name in (one.name for one in fields(value)):
        held = getattr(value, name)
        plain[name] = iso_utc(held) if isinstance(held, datetime) else thaw(held)
    return plain


def read_fields(kind: type[Any], mapping: Mapping[str, Any], *, required: Sequence[str]) -> dict[str, Any]:
    """Return the arguments for a value of this kind; unknown keys are left out, timestamps are read.

    Raises:
        ValueError: a required key is missing, a timestamp is invalid, or a newer program wrote the dict.
    """
    check_known_version(mapping)
    known = {one.name: mapping[one.name] for one in fields(kind) if one.name in mapping}
    for name in _TIMESTAMP_FIELDS & known.keys():
        if known[name] is not None:
            known[name] = parse_time(name, known[name])
    missing = [name for name in required if name not in known]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return known


_REQUIRED: Mapping[type[Any], tuple[str, ...]] = {
    ProductionOutcome: ("task_description", "agent_name", "execution_path", "result", "success"),
    ExtractedPlan: ("outcome_id", "strategy_description", "reasoning_pattern"),
}
