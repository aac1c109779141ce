"""Running gates as plain values: what a gate reports about itself, its machine and process, and what watchers see."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from datetime import datetime

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_OWN_PIDS = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class RunningProject:
    """A project that runs, since when, and the step that it was seen at last; None before the first."""

    name: str
    since: datetime
    step: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
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


def describe_machine() -> str:
    """Name the host, and on Linux its present boot and this process's space of pids: containers share the first two."""
    told = [platform.node()]
    with suppress(OSError):
        told += [_BOOT.read_text(encoding="ascii").strip(), str(_OWN_PIDS.stat().st_ino)]
    return " ".join(told)


def has_process(pid: int) -> bool:
    """Tell whether this machine has a process with this pid; True if that cannot be told."""
    if sys.platform == "win32" or pid <= 0:
        # On Windows, `os.kill` would end the process.
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


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
        """Return JSON-safe values."""
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
        """Return JSON-safe values: with what runs and the counts, without the results."""
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
