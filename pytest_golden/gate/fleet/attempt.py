"""What runs on a worker: one attempt of one project, and the calls that send a workspace there and end a session.

An attempt ends its pipeline when nobody waits for it any more. It judges nothing.
"""

from __future__ import annotations

import asyncio
import pickle
import platform
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Status, get_worker
from distributed.utils import sync

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError
from pytest_golden.gate.fleet import shipping
from pytest_golden.gate.fleet.model import FleetAnswer, Versions
from pytest_golden.gate.fleet.room import ROOMS, find_workspace
from pytest_golden.gate.fleet.versions import find_versions
from pytest_golden.gateway.model import AgentRole, Permissions, Problem
from pytest_golden.gateway.outcome import outcome_not_started
from pytest_golden.redaction import Redactor
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distributed import Worker

    from pytest_golden.gate.baselines import Examination
    from pytest_golden.gate.fleet.model import FleetTask
    from pytest_golden.gate.fleet.room import Room, Seat
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig

#: Where the scheduler keeps which workers have begun an attempt: it outlives them.
METADATA = "pytest-golden"
#: On so many workers an attempt may begin.
MOST_WORKERS = 2
_LOOK_SECONDS = 0.2
_WORKSPACE_SECONDS = 30.0
# Or it would be idle at once, and be given all that waits for busier ones.
_REFUSED_SECONDS = 5.0
_ALIVE = frozenset({Status.running, Status.paused, Status.closing_gracefully})


def run_attempt(python: str, packages: Mapping[str, str | None], task: bytes) -> bytes | dict[str, str]:
    """Run one attempt and give its pickled answer; plain words where nothing ran, which any version can read.

    These name the `worker`, and say in what it is `unlike` the gate, or that it `lacks` the workspace.
    """
    worker = get_worker()
    place = _Place(worker, str(worker.get_current_task()))
    unlike = Versions(python, dict(packages)).describe_difference(find_versions())
    if unlike:
        return {"worker": place.name, "unlike": unlike}
    answer = _answer(place, pickle.loads(task))
    return {"worker": place.worker.address, "lacks": "the workspace"} if answer is None else pickle.dumps(answer)


async def receive_workspace(session_id: str, digest: str, archive: bytes) -> str | None:
    """Unpack a workspace on this host, beside what the worker does; gives why it cannot be, if so."""
    try:
        await asyncio.to_thread(shipping.unpack, session_id, digest, archive)
    except OSError as error:
        return str(error)
    return None


def refuse_session(session_id: str) -> None:
    """Have this worker give attempts of a session back: it cannot have the workspace."""
    ROOMS.refuse(session_id)


async def end_session(session_id: str) -> None:
    """End a session on this worker, beside what it does."""
    await asyncio.to_thread(ROOMS.leave, session_id)


def describe_host(pickled: bytes) -> tuple[str, bool | None]:
    """Say which host this is, and whether it sees the gate's own workspace (True), a copy (False), or none."""
    workspace = find_workspace(pickle.loads(pickled))
    return platform.node(), None if workspace is None else workspace.is_shared


@dataclass(frozen=True, slots=True)
class _Place:
    """The worker, and the task that it runs."""

    worker: Worker
    key: str

    @property
    def name(self) -> str:
        return f"{self.worker.address} ({platform.node()})"

    def is_wanted(self) -> bool:
        """Tell whether anybody waits for the task: the gate gives up what it no longer wants, and so does its end."""
        task = self.worker.state.tasks.get(self.key)
        return self.worker.status in _ALIVE and task is not None and task.state != "cancelled"

    def begin(self, session_id: str, attempt: str) -> tuple[str, ...]:
        """Note that an attempt begins here; gives the workers that were lost with it, where there may be no further one."""
        scheduler, keys = self.worker.scheduler, [METADATA, session_id, attempt]
        loop = self.worker.loop
        begun = tuple(sync(loop, scheduler.get_metadata, keys=keys, default=[], callback_timeout=_WORKSPACE_SECONDS))
        if len(begun) >= MOST_WORKERS:
            return begun
        now = [*begun, self.name]
        sync(loop, scheduler.set_metadata, keys=keys, value=now, callback_timeout=_WORKSPACE_SECONDS)
        return ()


def _answer(place: _Place, task: FleetTask) -> FleetAnswer | None:
    room = _enter(place, task)
    if room is None:
        return None
    lost_on = place.begin(task.session.id, task.name)
    if lost_on:
        return FleetAnswer(lost_on=lost_on)
    project = task.project if room.workspace.is_shared else task.shipped_project
    with room.seat() as seat:
        seat.take(task, project)
        outcome, was_examined = _run(place, room, seat, project)
    if task.session.keep != "none" and not room.workspace.is_shared:
        told = f"what it wrote is not kept: worker {place.name} has a copy of the workspace"
        outcome = replace(outcome, warnings=(*outcome.warnings, told))
    log = _take_log(outcome)
    return FleetAnswer(_say_where(outcome, place), log, was_examined=was_examined)


def _enter(place: _Place, task: FleetTask) -> Room | None:
    """Give the session's room; a worker that has just joined gets the workspace sent meanwhile."""
    began, pause = monotonic_seconds(), threading.Event()
    while True:
        room = ROOMS.enter(task.session)
        longest = _REFUSED_SECONDS if ROOMS.is_refused(task.session.id) else _WORKSPACE_SECONDS
        if room is not None or not place.is_wanted() or monotonic_seconds() - began > longest:
            return room
        pause.wait(_LOOK_SECONDS)


def _run(place: _Place, room: Room, seat: Seat, project: GoldenProjectConfig) -> tuple[PipelineOutcome, bool]:
    request: dict[str, Any] = {
        "role": AgentRole.REGRESSION_GUARD,
        "permissions": Permissions(can_edit_source=False),
    }
    try:
        examination = room.keeper.begin(project)
        with _ended_when_unwanted(place, room, seat):
            outcome = seat.gateway.run_pipeline(project, **request, examine=examination if project.outputs else None)
    except GoldenError as error:
        told = seat.gateway.redact(project, str(error))
        return outcome_not_started(Problem.HARNESS, told, Redactor()), False
    return replace(outcome, warnings=(*outcome.warnings, *_take_warnings(examination, project))), examination.was_asked


def _take_warnings(examination: Examination, project: GoldenProjectConfig) -> tuple[str, ...]:
    """Give what an examination has to say beside its findings, which the gate's own cannot know."""
    result = GoldenProjectResult(name=project.name, path=project.path, status=ResultStatus.PASSED)
    return examination.settle(result).warnings


@contextmanager
def _ended_when_unwanted(place: _Place, room: Room, seat: Seat) -> Iterator[None]:
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            if room.is_closed or not place.is_wanted():
                seat.gateway.interrupt()

    watcher = threading.Thread(target=watch, name="golden-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _take_log(outcome: PipelineOutcome) -> bytes:
    if outcome.log_path is None:
        return b""
    file = Path(outcome.log_path)
    log = zlib.compress(file.read_bytes(), 1)
    file.unlink()
    return log


def _say_where(outcome: PipelineOutcome, place: _Place) -> PipelineOutcome:
    """Say where it ran, and leave out a path that means nothing elsewhere."""
    trajectory = outcome.trajectory
    if trajectory is not None:
        where = {"address": place.worker.address, "host": platform.node()}
        trajectory = replace(trajectory, metadata={**trajectory.metadata, "worker": where})
    message = outcome.message
    if outcome.problem is not None:
        message = f"{message} (on worker {place.name})"
    return replace(outcome, trajectory=trajectory, message=message, log_path=None)
