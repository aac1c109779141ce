"""Running gates as plain values, and the events that a watcher receives: what happened between two looks.

An event's id says what its watcher has received, so that it can resume after a lost connection.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.regression.model import ResultStatus
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_RUNS = 20
_LONGEST_ID = 2_000
_RUN_FORM = r"[A-Za-z0-9_]{1,64}\.\d{1,18}"
_ID_FORM = re.compile(rf"(\d{{1,18}})((?:-{_RUN_FORM})*)", re.ASCII)
GATE_STARTED = "gate_started"
PROJECT_STARTED = "project_started"
STEP = "step"
PROJECT_FINISHED = "project_finished"
GATE_FINISHED = "gate_finished"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_OWN_PIDS = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class RunningProject(Shape):
    """A running project, its start, and the last step that was seen; None before the first."""

    name: str = field(metadata=form(key="project"))
    since: datetime
    step: str | None = None


def describe_machine() -> str:
    """Name the host, and on Linux its present boot and this process's space of pids: containers share the first two."""
    told = [platform.node()]
    with suppress(OSError):
        told += [_BOOT.read_text(encoding="ascii").strip(), str(_OWN_PIDS.stat().st_ino)]
    return " ".join(told)


def has_process(pid: int) -> bool:
    """Tell whether this machine has a process with this pid; True if that is not known."""
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
class FinishedProject(Shape):
    """A project's result in a gate; `number` is its place in the order of recording."""

    number: int = field(metadata=form(hidden=True))
    entry_id: str
    name: str = field(metadata=form(key="project"))
    status: ResultStatus
    execution_time_seconds: float
    finished_at: datetime

    @property
    def began_at(self) -> datetime:
        """When it began, computed from its duration."""
        return self.finished_at - timedelta(seconds=self.execution_time_seconds)


@dataclass(frozen=True, slots=True)
class LiveGate(Shape):
    """A gate run. `finished` is in the order of recording, `running` without what is among those.

    `total_count` is how many projects it has in all. `is_own` is false for one that ran in a worktree made for it. One that
    was killed `is_interrupted`, and has no `final_status` until the next gate finds that out.
    """

    number: int = field(metadata=form(hidden=True))
    run_id: str
    manifest: str
    workspace_root: str
    commit: str | None
    branch: str | None
    host: str
    pid: int = field(metadata=form(hidden=True))
    is_own: bool
    started_at: datetime
    finished_at: datetime | None = None
    final_status: str | None = None
    is_interrupted: bool = field(default=False, metadata=form(key="interrupted"))
    total_count: int = 0
    running: tuple[RunningProject, ...] = ()
    finished: tuple[FinishedProject, ...] = field(default=(), metadata=form(hidden=True))

    @property
    @in_form()
    def counts(self) -> dict[str, int]:
        """Count the projects that ended so far by status."""
        counted = Counter(one.status for one in self.finished)
        return {status.value: counted[status] for status in ResultStatus}


@dataclass(frozen=True, slots=True)
class LiveLook:
    """All gates that run at one moment, oldest first, and those that were seen to end shortly before it.

    `newest` is the number of the newest run of all; None in the look of somebody who has seen nothing yet.
    """

    gates: tuple[LiveGate, ...] = ()
    ended: tuple[LiveGate, ...] = ()
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """How far a watcher was told: the newest run, and the last result of each run that was running.

    It is the id of an event, which a watcher sends again after a lost connection, also to a restarted server.
    """

    newest: int
    results: Mapping[str, int] = field(default_factory=dict)

    def to_id(self) -> str:
        """Write it as an event's id."""
        return "-".join([str(self.newest), *(f"{run}.{number}" for run, number in self.results.items())])

    @classmethod
    def parse(cls, text: str | None) -> Told | None:
        """Read an event's id; None if it is not one of ours."""
        found = _ID_FORM.fullmatch(text) if text is not None and len(text) <= _LONGEST_ID else None
        if found is None:
            return None
        parts = [part.split(".") for part in found[2].split("-")[1:]]
        return cls(int(found[1]), {run: int(number) for run, number in parts}) if len(parts) <= _MOST_RUNS else None


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One event; its data are JSON-safe. A watcher that received `id` knows everything up to it."""

    kind: str
    data: dict[str, Any]
    id: str


def find_events(before: LiveLook, after: LiveLook) -> tuple[LiveEvent, ...]:
    """Return what happened between two looks, in a possible order.

    After an empty look that is a picture of all that runs.
    """
    return tuple(_Telling(before, after).tell())


class _Telling:
    """One walk from a look to the next. What was told on the way goes into the events' ids."""

    def __init__(self, before: LiveLook, after: LiveLook) -> None:
        self._before = before
        self._after = after
        self._known = {gate.run_id: gate for gate in before.gates}
        self._newest = after.newest or 0 if before.newest is None else before.newest
        self._told = {gate.run_id: max((one.number for one in gate.finished), default=0) for gate in before.gates}

    def tell(self) -> Iterator[LiveEvent]:
        ended = {gate.run_id: gate for gate in self._after.ended}
        present = {gate.run_id for gate in self._after.gates}
        for gate in self._before.gates:
            if gate.run_id not in present and gate.run_id not in ended:
                # It is no longer known how it ended.
                yield from self._end(replace(gate, is_interrupted=True))
        for gate in self._after.ended:
            if gate.run_id in self._known or (self._before.newest is not None and gate.number > self._before.newest):
                yield from self._tell_gate(gate)
                yield from self._end(gate)
        for gate in self._after.gates:
            yield from self._tell_gate(gate)

    def _tell_gate(self, gate: LiveGate) -> Iterator[LiveEvent]:
        known = self._known.get(gate.run_id)
        if known is None:
            self._told[gate.run_id] = 0
            yield self._event(GATE_STARTED, gate, **gate.to_dict())
        yield from self._tell_finished(gate, known)
        before = {one.name: one for one in known.running} if known is not None else {}
        for one in gate.running:
            was = before.get(one.name)
            is_new = was is None or was.since != one.since
            if is_new:
                yield self._event(PROJECT_STARTED, gate, project=one.name, since=iso_utc(one.since))
            if one.step is not None and (is_new or was is None or was.step != one.step):
                yield self._event(STEP, gate, **one.to_dict())

    def _tell_finished(self, gate: LiveGate, known: LiveGate | None) -> Iterator[LiveEvent]:
        told = {one.entry_id for one in known.finished} if known is not None else set()
        running = {one.name for one in known.running} if known is not None else set()
        counts = {status.value: 0 for status in ResultStatus}
        for one in gate.finished:
            counts[one.status.value] += 1
            if one.entry_id in told:
                continue
            if one.name not in running:
                yield self._event(PROJECT_STARTED, gate, project=one.name, since=iso_utc(one.began_at))
            self._told[gate.run_id] = one.number
            so_far = {"counts": dict(counts), "total_count": gate.total_count}
            yield self._event(PROJECT_FINISHED, gate, **one.to_dict(), **so_far)

    def _end(self, gate: LiveGate) -> Iterator[LiveEvent]:
        self._told.pop(gate.run_id, None)
        self._newest = max(self._newest, gate.number)
        yield self._event(GATE_FINISHED, gate, **replace(gate, running=()).to_dict())

    def _event(self, kind: str, gate: LiveGate, **data: Any) -> LiveEvent:
        return LiveEvent(kind, {**data, "run_id": gate.run_id}, Told(self._newest, self._told).to_id())
