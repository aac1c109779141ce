"""A recorded result as the learner reads it, and the outcome that is made of it, cut to size. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.columns import from_ms

GATE_AGENT = "golden"
_MOST_STEPS = 100
_MOST_OF_STEP, _MOST_OF_MESSAGE, _MOST_REASONS, _MOST_ERRORS = 120, 1_000, 5, 10
# Their messages tell of the person at the keyboard, or of another project.
_NOT_TELLING = frozenset({ReasonKind.INTERRUPTED, ReasonKind.NEED_NOT_PASSED, ReasonKind.WORKER_CRASHED})


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """A row of the gate's results with the run's commit. `result` is JSON text, so that one broken row harms no other."""

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
    # The word of `--golden-learning` that the run was given; None where none was kept.
    learning: str | None


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """How a project ended before, and on which branch."""

    status: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and where a project failed or passed. `at` is milliseconds since the epoch."""

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


def read_result(recorded: RecordedResult) -> Mapping[str, Any]:
    """Read a result's JSON.

    Raises:
        ValueError: it is none, or no object.
    """
    result = json.loads(recorded.result)
    if not isinstance(result, dict):
        raise ValueError(f"the result of {recorded.project} is no object")  # noqa: TRY004 - one kind of refusal
    return result


def read_steps(trajectory: str | None) -> tuple[Mapping[str, Any], ...]:
    """Read the steps out of a trajectory's JSON; none when there is no text."""
    body = json.loads(trajectory) if trajectory else {}
    return tuple(step for step in body.get("steps") or () if isinstance(step, dict))


def make_outcome(
    recorded: RecordedResult, result: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> ProductionOutcome:
    """Return the outcome of a result. Its id follows from the result's entry, so that learning twice is learning once."""
    # Nothing ran: the 0.0 was not measured.
    never_ran = recorded.exit_code is None and not recorded.execution_time_seconds
    named = [step for step in steps if not _is_of_harness(step)]
    occasion = recorded.occasion
    return ProductionOutcome(
        outcome_id=f"outcome_{occasion.entry.removeprefix('entry_')}",
        task_description=f"Run golden project {recorded.project}",
        agent_name=GATE_AGENT,
        execution_path=_ends(tuple(_cut(str(step.get("content")), _MOST_OF_STEP) for step in named)),
        result={
            "status": recorded.status,
            "exit_code": recorded.exit_code,
            "written": _count_written(result.get("write_set")),
        },
        success=recorded.status == ResultStatus.PASSED,
        error_message=_optional_cut(result.get("error_message")),
        execution_time=None if never_ran else recorded.execution_time_seconds,
        timestamp=from_ms(occasion.at),
        context={
            "project": recorded.project,
            "run": occasion.run,
            "entry": occasion.entry,
            "commit": occasion.commit,
            "branch": recorded.branch,
            "dirty": occasion.dirty,
            "attempts": recorded.attempts,
            "is_flaky": recorded.is_flaky,
            "reasons": _reasons(result),
            "steps_total": result.get("steps_total", len(named)),
        },
    )


def make_provenance(recorded: RecordedResult, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tell where the outcome comes from; `steps` are the ids of the steps with an error."""
    failed = [str(step.get("id")) for step in steps if (step.get("metadata") or {}).get("error")]
    return {
        "run": recorded.occasion.run,
        "commit": recorded.occasion.commit,
        "steps": failed[-_MOST_ERRORS:],
        "trajectory": recorded.trajectory_id,
    }


def find_telling_message(recorded: RecordedResult, result: Mapping[str, Any]) -> str | None:
    """Return the reason by which the same failure is known again; None for a pass, and where it tells nothing of the project."""
    return find_reason(recorded.status, result)


def find_reason(status: str, result: Mapping[str, Any]) -> str | None:
    """Return the same by `reasons` and `error_message` of a result, and its status."""
    if status not in {ResultStatus.FAILED, ResultStatus.ERROR}:
        return None
    reasons = result.get("reasons") or ()
    first = reasons[0] if reasons else {"message": result.get("error_message") or ""}
    message = str(first.get("message") or "")
    return None if first.get("kind") in _NOT_TELLING or not message.strip() else message


def _is_of_harness(step: Mapping[str, Any]) -> bool:
    """Tell the one observation that stands for a run without steps: it repeats the reason."""
    return step.get("type") == "observation" and step.get("content") == (step.get("metadata") or {}).get("error")


def _ends(path: tuple[str, ...]) -> tuple[str, ...]:
    """Keep head and tail: a failure is at the end."""
    half = _MOST_STEPS // 2
    return path if len(path) <= _MOST_STEPS else path[:half] + path[-half:]


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def _optional_cut(text: object) -> str | None:
    return None if text is None else _cut(str(text), _MOST_OF_MESSAGE)


def _count_written(write_set: object) -> dict[str, int]:
    written = write_set if isinstance(write_set, Mapping) else {}
    return {name: len(written.get(name) or ()) for name in ("created", "changed", "removed")}


def _reasons(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    reasons = (result.get("reasons") or ())[:_MOST_REASONS]
    return [{"kind": reason["kind"], "message": _cut(str(reason["message"]), _MOST_OF_MESSAGE)} for reason in reasons]
