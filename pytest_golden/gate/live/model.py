"""What a gate that runs tells of itself. Plain values; a gate loads no more than these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class RunningProject:
    """A project that runs, since when, and the step that it was seen at last; None before the first."""

    name: str
    since: datetime
    step: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        return {"project": self.name, "since": iso_utc(self.since), "step": self.step}


@dataclass(frozen=True, slots=True)
class Beat:
    """What a gate run tells of itself at a moment; `machine` is where its pid means a process."""

    run_id: str
    moment: datetime
    pid: int
    machine: str
    total_count: int
    running: tuple[RunningProject, ...] = ()
