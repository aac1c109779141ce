"""A recorded result as the learner reads it. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and where a project failed or passed. `at` is milliseconds since the epoch."""

    at: int
    run: str
    entry: str
    commit: str | None = None
    dirty: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the fields under their own names."""
        return {"at": self.at, "run": self.run, "entry": self.entry, "commit": self.commit, "dirty": self.dirty}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Occasion:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        return cls(mapping["at"], mapping["run"], mapping["entry"], mapping.get("commit"), mapping.get("dirty"))


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
