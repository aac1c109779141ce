"""One step and one state snapshot as frozen values: checks at the call, deep freezing, dict form.

A value here stands for itself; that its parent exists and that times do not go back is for `Trajectory` to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.freezing import freeze, freeze_mapping
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import (
    Importance,
    Missing,
    StepType,
    check_duration,
    check_text,
    check_time,
    check_word,
    parse_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened.

    `type` and `importance` may be given as plain words. `content` is anything, None included. `duration_ms` is None when
    unknown.

    Raises:
        ValueError: a field has a value that is not allowed; the message names the field and what is.
    """

    id: str
    type: StepType
    content: Any
    timestamp: datetime
    duration_ms: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    context: Any = None
    importance: Importance = Importance.MEDIUM
    parent_step_id: str | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        check_text("id", self.id)
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        if self.parent_step_id is not None:
            check_text("parent_step_id", self.parent_step_id)
        settle_step_fields(self)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def has_error(self) -> bool:
        """Tell whether the step's metadata has a truthy `error` or `failed`."""
        return bool(self.metadata.get("error") or self.metadata.get("failed"))

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, JSON-safe whatever the content."""
        return {
            "id": self.id,
            "type": self.type.value,
            "content": json_form(self.content),
            "timestamp": iso_utc(self.timestamp),
            "duration_ms": self.duration_ms,
            "metadata": json_form(self.metadata),
            "context": json_form(self.context),
            "importance": self.importance.value,
            "parent_step_id": self.parent_step_id,
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Step:
        """Read back what `to_dict` gave; unknown keys are tolerated, `ValueError` names a key that is missing or wrong."""
        return cls(
            id=mapping.get("id", ""),
            type=check_word("type", mapping.get("type"), StepType),
            content=mapping.get("content", Missing.MISSING),
            timestamp=parse_time("timestamp", mapping.get("timestamp")),
            duration_ms=mapping.get("duration_ms"),
            metadata=mapping.get("metadata") or FrozenDict(),
            context=mapping.get("context"),
            importance=mapping.get("importance", Importance.MEDIUM),
            parent_step_id=mapping.get("parent_step_id"),
        )


def settle_step_fields(step: Any) -> None:
    """Check and freeze, in place and once, the fields that a step and a step's draft have in common."""
    settle = object.__setattr__
    settle(step, "type", check_word("type", step.type, StepType))
    if step.content is Missing.MISSING:
        raise ValueError("content is missing: give what happened; None is content too")
    settle(step, "content", freeze("content", step.content))
    settle(step, "duration_ms", check_duration("duration_ms", step.duration_ms))
    settle(step, "metadata", freeze_mapping("metadata", step.metadata))
    settle(step, "context", freeze("context", step.context))
    settle(step, "importance", check_word("importance", step.importance, Importance))


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The state at one moment, as the caller describes it, and the step it belongs to, if any.

    Raises:
        ValueError: a field has a value that is not allowed; the message names the field and what is.
    """

    id: str
    timestamp: datetime
    state: Any
    reason: str = "checkpoint"
    step_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        check_text("id", self.id)
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        if self.state is None or self.state is Missing.MISSING:
            raise ValueError("state is missing: give the state to keep, any value but None")
        settle(self, "state", freeze("state", self.state))
        check_text("reason", self.reason)
        if self.step_id is not None:
            check_text("step_id", self.step_id)
        settle(self, "metadata", freeze_mapping("metadata", self.metadata))

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, JSON-safe whatever the state."""
        return {
            "id": self.id,
            "timestamp": iso_utc(self.timestamp),
            "state": json_form(self.state),
            "reason": self.reason,
            "step_id": self.step_id,
            "metadata": json_form(self.metadata),
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> StateSnapshot:
        """Read back what `to_dict` gave; unknown keys are tolerated, `ValueError` names a key that is missing or wrong."""
        return cls(
            id=mapping.get("id", ""),
            timestamp=parse_time("timestamp", mapping.get("timestamp")),
            state=mapping.get("state"),
            reason=mapping.get("reason", "checkpoint"),
            step_id=mapping.get("step_id"),
            metadata=mapping.get("metadata") or FrozenDict(),
        )
