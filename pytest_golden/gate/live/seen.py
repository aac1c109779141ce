"""What is seen of gates that run, and of those that have just ended. Plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.gate.live.model import RunningProject


@dataclass(frozen=True, slots=True)
class FinishedProject:
    """A project's result in a gate; `number` is its place in the order of recording."""

    number: int
    entry_id: str
    name: str
    status: ResultStatus
    execution_time_seconds: float
    finished_at: datetime

    @property
    def began_at(self) -> datetime:
        """The moment at which it began, as far as its duration tells."""
        return self.finished_at - timedelta(seconds=self.execution_time_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        return {
            "project": self.name,
            "entry_id": self.entry_id,
            "status": self.status.value,
            "execution_time_seconds": self.execution_time_seconds,
            "finished_at": iso_utc(self.finished_at),
        }


@dataclass(frozen=True, slots=True)
class LiveGate:
    """A gate run. `finished` is in the order of recording, `running` without what is among those.

    `total_count` is how many projects it has in all. `is_own` is false for one that ran in a worktree made for it. One that
    was killed `is_interrupted`, and has no `final_status` until the next gate finds that out.
    """

    number: int
    run_id: str
    manifest: str
    workspace_root: str
    commit: str | None
    branch: str | None
    host: str
    pid: int
    is_own: bool
    started_at: datetime
    finished_at: datetime | None = None
    final_status: str | None = None
    is_interrupted: bool = False
    total_count: int = 0
    running: tuple[RunningProject, ...] = ()
    finished: tuple[FinishedProject, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Tell how many projects ended so far with each status."""
        counted = Counter(one.status for one in self.finished)
        return {status.value: counted[status] for status in ResultStatus}

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values: with what runs and the counts, without the results."""
        return {
            "run_id": self.run_id,
            "manifest": self.manifest,
            "workspace_root": self.workspace_root,
            "commit": self.commit,
            "branch": self.branch,
            "host": self.host,
            "is_own": self.is_own,
            "started_at": iso_utc(self.started_at),
            "finished_at": None if self.finished_at is None else iso_utc(self.finished_at),
            "final_status": self.final_status,
            "interrupted": self.is_interrupted,
            "total_count": self.total_count,
            "counts": self.counts,
            "running": [one.to_dict() for one in self.running],
        }


@dataclass(frozen=True, slots=True)
class LiveLook:
    """All gates that run at one moment, oldest first, and those that were seen to end shortly before it.

    `newest` is the number of the newest run of all; None in the look of somebody who has seen nothing yet.
    """

    gates: tuple[LiveGate, ...] = ()
    ended: tuple[LiveGate, ...] = ()
    newest: int | None = None
