"""A gate run and a result of one as a line of a list. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.regression.model import ResultStatus


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """How many results of a run have each status. What fails the gate is in the run's `final_status`."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """How many results there are."""
        return self.passed + self.failed + self.error + self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A gate run. Without `finished_at` it still runs, or was killed and no other run has found it since.

    `selected_count` counts the projects that were to run. `is_own` is False for one in a worktree that was made for it, as
    the base of a verification: no turn in what people ran before and after.
    """

    entry_id: str
    started_at: datetime
    finished_at: datetime | None
    final_status: str | None
    commit: str | None
    branch: str | None
    dirty: bool | None
    manifest: str
    host: str
    counts: StatusCounts
    selected_count: int
    is_interrupted: bool
    is_own: bool

    @property
    def is_running(self) -> bool:
        """Tell whether it has no end yet; `ListedRun` says what that may mean."""
        return self.finished_at is None and not self.is_interrupted

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, `id` (the entry's), `is_running` and `counts` by status, JSON-safe."""
        moments = {
            "started_at": iso_utc(self.started_at),
            "finished_at": None if self.finished_at is None else iso_utc(self.finished_at),
        }
        return {"id": self.entry_id, **asdict(self), **moments, "is_running": self.is_running}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResult:
    """One project's result in a gate run. `message` is the first reason, None for a pass; `number` counts as they came in."""

    number: int
    entry_id: str
    name: str
    status: ResultStatus
    is_regression: bool
    exit_code: int | None
    execution_time_seconds: float
    attempts: int
    is_flaky: bool
    regression_kind: str | None
    quarantined: str | None
    message: str | None
    pass_streak: int
    created_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Give all fields but `number`, which is the store's own, under their own names, JSON-safe."""
        told = asdict(self) | {"status": self.status.value, "created_at": iso_utc(self.created_at)}
        del told["number"]
        return told
