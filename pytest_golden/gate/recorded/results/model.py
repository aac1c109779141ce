"""A recorded result, what of it differs from its baselines, and why it failed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.history import FAILURES
from pytest_golden.gateway.output import last_lines
from pytest_golden.regression.failing_step import find_failing_step
from pytest_golden.regression.model import OUTPUT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus

#: What a failure's text begins with of what is known: the changes since the project's last pass.
CHANGED = "changed_since_pass"
_LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """What speaks against one output: a sentence, and a readable difference below it, empty where there is none."""

    path: str | None
    kind: str
    message: str
    difference: str

    def to_dict(self) -> dict[str, Any]:
        """Give all fields."""
        return {"path": self.path, "kind": self.kind, "message": self.message, "difference": self.difference}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult:
    """One project's result in a gate run. `result` has its steps, trajectory and what was known of its failure then.

    `gate` are the facts of its run's report. `environment` is what it ran in: interpreter, platform, processor, view, seal;
    `distributions` the installed ones with their versions. `declaration` is the manifest's then. `previous_entry_id` and
    `next_entry_id` are the project's results in people's own runs around it. `has_log` tells that the full log, whose place
    is in the result, still lies on this machine. `output_summary` of the result has head and tail of its output.
    """

    entry_id: str
    run_id: str
    created_at: datetime
    pass_streak: int
    is_own: bool
    result: GoldenProjectResult
    gate: Mapping[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    declaration: Mapping[str, Any] = field(default_factory=dict)
    previous_entry_id: str | None = None
    next_entry_id: str | None = None
    has_log: bool = False

    @property
    def differences(self) -> tuple[OutputDifference, ...]:
        """What speaks against its outputs."""
        return tuple(read_differences(self.result.reasons))

    @property
    def failing_step(self) -> Mapping[str, Any] | None:
        """The last step that says that it failed."""
        return find_failing_step(self.result.steps)

    def to_dict(self) -> dict[str, Any]:
        """Give the fields of the result as in the gate report, and those of this value beside them, JSON-safe."""
        return {
            **self.result.to_dict(),
            "entry_id": self.entry_id,
            "run_id": self.run_id,
            "created_at": iso_utc(self.created_at),
            "pass_streak": self.pass_streak,
            "is_own": self.is_own,
            "failing_step": self.failing_step,
            "differences": [one.to_dict() for one in self.differences],
            "gate": dict(self.gate),
            "environment": dict(self.environment),
            "distributions": dict(self.distributions),
            "declaration": dict(self.declaration),
            "previous_entry_id": self.previous_entry_id,
            "next_entry_id": self.next_entry_id,
            "has_log": self.has_log,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureExplanation:
    """Why a project's last result is what it is. `status` is None where it has none; of a pass there is nothing to explain.

    `changed_since_last_pass` is what the gate found when it failed: `lines` for people, and what they were made of. `known`
    has alike what earlier runs and lessons say of it.
    """

    project: str
    status: ResultStatus | None = None
    entry_id: str | None = None
    run_id: str | None = None
    created_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()
    failing_step: Mapping[str, Any] | None = None
    output_tail: str = ""
    changed_since_last_pass: Mapping[str, Any] | None = None
    known: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, recorded: RecordedResult, more: Iterable[Mapping[str, Any]] = ()) -> FailureExplanation:
        """Explain a result; `more` is what is known of it besides what is recorded with it."""
        result = recorded.result
        known = [one for one in result.known if one.get("kind") != CHANGED]
        changed = next((one for one in result.known if one.get("kind") == CHANGED), None)
        told = {_name_lesson(one) for one in known}
        return cls(
            project=result.name,
            status=result.status,
            entry_id=recorded.entry_id,
            run_id=recorded.run_id,
            created_at=recorded.created_at,
            reasons=result.reasons,
            failing_step=recorded.failing_step if result.status in FAILURES else None,
            output_tail=last_lines(result.output_summary, _LAST_LINES),
            changed_since_last_pass=changed,
            known=(*known, *(one for one in more if _name_lesson(one) not in told)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, JSON-safe."""
        return {
            "project": self.project,
            "status": None if self.status is None else self.status.value,
            "entry_id": self.entry_id,
            "run_id": self.run_id,
            "created_at": None if self.created_at is None else iso_utc(self.created_at),
            "reasons": [reason.to_dict() for reason in self.reasons],
            "failing_step": None if self.failing_step is None else dict(self.failing_step),
            "output_tail": self.output_tail,
            "changed_since_last_pass": None
            if self.changed_since_last_pass is None
            else dict(self.changed_since_last_pass),
            "known": [dict(one) for one in self.known],
        }


def read_differences(reasons: Iterable[Reason]) -> Iterator[OutputDifference]:
    """Give what speaks against outputs, among the reasons of a result."""
    for reason in reasons:
        if reason.kind in OUTPUT_KINDS:
            difference = reason.message[len(reason.headline) :].strip("\n")
            yield OutputDifference(reason.path, str(reason.kind), reason.headline, difference)


def _name_lesson(known: Mapping[str, Any]) -> Any:
    lesson = known.get("lesson")
    return lesson.get("id") if isinstance(lesson, dict) else id(known)
