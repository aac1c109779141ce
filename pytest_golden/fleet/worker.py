"""What runs on a worker: one attempt of one project, and the calls that send a workspace there and end a session.

A worker keeps a session's workspace and gateways between attempts. It judges nothing, and ends a pipeline that nobody waits for.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import platform
import threading
import zlib
from base64 import b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Status, get_worker
from distributed.utils import sync

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.compare.baselines import WAITING_FOLDER
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.compare.waiting import RunOrigin, WaitingFolder
from pytest_golden.errors import GoldenError
from pytest_golden.fleet import shipping
from pytest_golden.fleet.cluster import describe_difference, find_versions
from pytest_golden.gate.service import choose_keeping
from pytest_golden.gateway import git
from pytest_golden.gateway.model import AgentRole, Permissions, Problem
from pytest_golden.gateway.outcome import outcome_not_started
from pytest_golden.gateway.scratch import remove_tree
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.slowdown import SlowdownJudge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distributed import Worker

    from pytest_golden.compare.examination import Examination
    from pytest_golden.gateway.model import PipelineOutcome, RunnerCommand
    from pytest_golden.manifest.model import GoldenProjectConfig

_IDLE_SECONDS = 60.0
_LONGEST_END_SECONDS = 15.0
#: The key under which the scheduler, which outlives workers, keeps which of them have begun an attempt.
METADATA = "pytest-golden"
#: The number of workers that may begin an attempt.
MOST_WORKERS = 2
_LOOK_SECONDS = 0.2
_WORKSPACE_SECONDS = 30.0
# A refused worker waits so long: an idle one would be given all that waits for busy ones.
_REFUSED_SECONDS = 5.0
_ALIVE = frozenset({Status.running, Status.paused, Status.closing_gracefully})


def run_attempt(versions: Mapping[str, str | None], task: bytes) -> bytes:
    """Run one attempt and return its answer as JSON, which a gate of any version can read."""
    worker = get_worker()
    place = _Place(worker, str(worker.get_current_task()))
    unlike = describe_difference(versions, find_versions())
    answer = shipping.FleetAnswer(place.name, unlike=unlike) if unlike else _answer(place, pickle.loads(task))
    return shipping.write_answer(answer)


async def receive_workspace(session_id: str, digest: str, archive: bytes) -> str | None:
    """Unpack a workspace on this host while the worker runs tasks; return why that fails, None if it does not."""
    try:
        await asyncio.to_thread(shipping.unpack, session_id, digest, archive)
    except OSError as error:
        return str(error)
    return None


def refuse_session(session_id: str) -> None:
    """Make this worker return attempts of a session, since it cannot have the workspace."""
    ROOMS.refused.add(session_id)


async def end_session(session_id: str) -> None:
    """End a session on this worker while it runs tasks."""
    await asyncio.to_thread(ROOMS.leave, session_id)


def describe_host(pickled: bytes) -> tuple[str, bool | None]:
    """Return this host's name, and whether it sees the gate's own workspace (True), a copy (False), or none (None)."""
    workspace = find_workspace(pickle.loads(pickled))
    return platform.node(), None if workspace is None else workspace.is_shared


def find_workspace(session: shipping.FleetSession) -> Workspace | None:
    """Return the workspace on this host: the gate's own if this host sees it, else the unpacked copy, if any."""
    with suppress(OSError, ValueError):
        if session.baselines_inside is not None and Path(session.token_file).read_text("ascii") == session.token:
            return Workspace(Path(session.root), Path(session.baselines), is_shared=True)
    folder = shipping.find_shipped(session.id)
    if folder is None:
        return None
    root = folder / shipping.WORKSPACE
    baselines = folder / shipping.BASELINES if session.baselines_inside is None else root / session.baselines_inside
    return Workspace(root, baselines, is_shared=False)


def _answer(place: _Place, task: shipping.FleetTask) -> shipping.FleetAnswer:
    address = place.worker.address
    room = _enter(place, task)
    if room is None:
        return shipping.FleetAnswer(address, lacks_workspace=True)
    lost_on = place.begin(task.session.id, task.name)
    if lost_on:
        return shipping.FleetAnswer(address, lost_on=lost_on)
    project = task.project if room.workspace.is_shared else task.shipped_project
    with room.seat() as seat:
        seat.take(task, project)
        outcome, kept, was_examined = _run(place, room, seat, project)
    if task.session.keep != "none" and not room.workspace.is_shared:
        told = f"what it wrote is not kept: worker {place.name} has a copy of the workspace"
        outcome = replace(outcome, warnings=(*outcome.warnings, told))
    log = _take_log(outcome)
    return shipping.FleetAnswer(address, _say_where(outcome, place), log, kept, was_examined)


def _enter(place: _Place, task: shipping.FleetTask) -> Room | None:
    """Return the session's room, and wait for the workspace if the worker has just joined; None if it does not come."""
    began, pause = monotonic_seconds(), threading.Event()
    while True:
        room = ROOMS.enter(task.session)
        longest = _REFUSED_SECONDS if task.session.id in ROOMS.refused else _WORKSPACE_SECONDS
        if room is not None or not place.is_wanted() or monotonic_seconds() - began > longest:
            return room
        pause.wait(_LOOK_SECONDS)


def _run(place: _Place, room: Room, seat: Seat, project: GoldenProjectConfig) -> tuple[PipelineOutcome, str, bool]:
    """Return the outcome, the outputs that could become baselines, and whether the outputs were examined."""
    request: dict[str, Any] = {"role": AgentRole.REGRESSION_GUARD, "permissions": Permissions(can_edit_source=False)}
    try:
        examination = room.keeper.begin(project)
        with _ended_when_unwanted(place, room, seat):
            outcome = seat.gateway.run_pipeline(project, **request, examine=examination if project.outputs else None)
    except GoldenError as error:
        told = seat.gateway.redact(project, str(error))
        return outcome_not_started(Problem.HARNESS, told, Redactor()), "", False
    warnings, kept = _settle(room, examination, project)
    return replace(outcome, warnings=(*outcome.warnings, *warnings)), kept, examination.was_asked


def _settle(room: Room, examination: Examination, project: GoldenProjectConfig) -> tuple[tuple[str, ...], str]:
    """Return what the gate's own examination cannot know: warnings, and the outputs that could become baselines.

    The gate judges, and forgets the outputs if the run is not red for them.
    """
    result = GoldenProjectResult(name=project.name, path=project.path, status=ResultStatus.FAILED)
    warnings = examination.settle(result).warnings
    try:
        kept = shipping.pack_kept(room.kept, project.name)
        room.kept.clear(project.name)
    except (GoldenError, OSError) as error:
        return (*warnings, f"the outputs are not kept for `golden accept`: {error}"), ""
    return warnings, kept


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


def _take_log(outcome: PipelineOutcome) -> str:
    if outcome.log_path is None:
        return ""
    file = Path(outcome.log_path)
    log = b64encode(zlib.compress(file.read_bytes(), 1))
    file.unlink()
    return log.decode("ascii")


def _say_where(outcome: PipelineOutcome, place: _Place) -> PipelineOutcome:
    """Return the outcome with the worker that it ran on, and without the log's path on that worker."""
    trajectory = outcome.trajectory
    if trajectory is not None:
        where = {"address": place.worker.address, "host": platform.node()}
        trajectory = replace(trajectory, metadata={**trajectory.metadata, "worker": where})
    message = outcome.message
    if outcome.problem is not None:
        message = f"{message} (on worker {place.name})"
    return replace(outcome, trajectory=trajectory, message=message, log_path=None)


@dataclass(frozen=True, slots=True)
class _Place:
    """The worker, and the task that it runs."""

    worker: Worker
    key: str

    @property
    def name(self) -> str:
        return f"{self.worker.address} ({platform.node()})"

    def is_wanted(self) -> bool:
        """Tell whether the gate still waits for the task: it cancels what it no longer needs, also when it ends."""
        task = self.worker.state.tasks.get(self.key)
        return self.worker.status in _ALIVE and task is not None and task.state != "cancelled"

    def begin(self, session_id: str, attempt: str) -> tuple[str, ...]:
        """Note that an attempt begins here. If it may not, return the workers that were lost with it, else nothing."""
        scheduler, keys = self.worker.scheduler, [METADATA, session_id, attempt]
        loop = self.worker.loop
        begun = tuple(sync(loop, scheduler.get_metadata, keys=keys, default=[], callback_timeout=_WORKSPACE_SECONDS))
        if len(begun) >= MOST_WORKERS:
            return begun
        now = [*begun, self.name]
        sync(loop, scheduler.set_metadata, keys=keys, value=now, callback_timeout=_WORKSPACE_SECONDS)
        return ()


class Rooms:
    """The rooms of this process, one per session. `refused` are the sessions that get no workspace here."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self.refused: set[str] = set()
        self._lock = threading.Lock()

    def enter(self, session: shipping.FleetSession) -> Room | None:
        """Return a session's room, which its first attempt opens; None if this host has no workspace for it."""
        with self._lock:
            room = self._rooms.get(session.id)
            if room is None and (workspace := find_workspace(session)) is not None:
                room = self._rooms[session.id] = Room(session, workspace)
            return room

    def leave(self, session_id: str) -> None:
        """End a session here: its attempts, its gateways and what was unpacked for it."""
        with self._lock:
            self.refused.discard(session_id)
            room = self._rooms.pop(session_id, None)
        if room is not None:
            room.close()
        shipping.remove_shipped(session_id)

    def close(self) -> None:
        """Close all rooms."""
        for room in self._rooms.values():
            room.close()


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a worker has a session's workspace and baselines; with `is_shared` they are the gate's own."""

    root: Path
    baselines: Path
    is_shared: bool


class Seat:
    """A gateway that is set up for one attempt after another. `logs` is the folder for its logs."""

    def __init__(self, session: shipping.FleetSession, workspace: Workspace) -> None:
        self.logs = shipping.make_folder("logs")
        self._environ: dict[str, str] = {}
        self._command: RunnerCommand | None = None
        self._slowdowns = SlowdownJudge()
        self._known: set[str] = set()
        self.gateway = ExecutionGateway(
            workspace.root,
            view=session.view,
            roots=tuple(Path(root) for root in session.roots if workspace.is_shared and Path(root).is_dir()),
            environ=self._environ,
            find_command=lambda _: self._command,
            log_folder=self.logs,
            hidden=map(Path, session.hidden),
            list_tracked=git.list_tracked
            if workspace.is_shared
            else partial(shipping.list_shipped_tracked, session.id),
            # A view that is kept in a copy of the workspace would not be found.
            keep_if=choose_keeping(session.keep if workspace.is_shared else "none", lambda: self._slowdowns),
        )

    def take(self, task: shipping.FleetTask, project: GoldenProjectConfig) -> None:
        """Prepare an attempt: variables named by `pass_env` come from the gate, never from this machine."""
        passed = {name: value for name, value in os.environ.items() if name not in project.pass_env}
        self._environ.clear()
        self._environ.update(passed, **task.environment)
        self._command = task.command
        self._slowdowns = task.slowdowns or SlowdownJudge()
        if project.name not in self._known:
            self._known.add(project.name)
            self.gateway.freeze([project])

    def close(self) -> None:
        """Close the gateway and remove its logs."""
        self.gateway.close()
        remove_tree(self.logs)


class Room:
    """What this worker keeps of a session: its workspace, its baselines, outputs of red runs, and seats that are not in use.

    Idle seats are closed after a minute without attempts, since a gate may be killed and never end its session.
    """

    def __init__(self, session: shipping.FleetSession, workspace: Workspace) -> None:
        self.workspace = workspace
        self.is_closed = False
        self._folder = shipping.make_folder("kept")
        self.kept = WaitingFolder(self._folder / WAITING_FOLDER)
        self.keeper = BaselineKeeper(
            workspace.baselines,
            accept_command=session.accept_command,
            state_folder=self._folder,
            describe_run=lambda: RunOrigin(utc_now()),
        )
        self.keeper.pin()
        self._session = session
        self._changed = threading.Condition()
        self._idle: list[Seat] = []
        self._taken = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def seat(self) -> Iterator[Seat]:
        """Yield a seat that nobody else uses during the with-block."""
        with self._changed:
            self._taken += 1
            if self._timer is not None:
                self._timer.cancel()
            seat = self._idle.pop() if self._idle else None
        try:
            seat = seat or Seat(self._session, self.workspace)
            yield seat
        finally:
            with self._changed:
                self._taken -= 1
                self._idle += [] if seat is None else [seat]
                self._changed.notify_all()
                if not self._taken:
                    self._timer = threading.Timer(0 if self.is_closed else _IDLE_SECONDS, self._clear)
                    self._timer.daemon = True
                    self._timer.start()

    def close(self) -> None:
        """End all attempts and close the seats; a seat in use is closed when its attempt ends."""
        self.is_closed = True
        with self._changed:
            self._changed.wait_for(lambda: not self._taken, timeout=_LONGEST_END_SECONDS)
        self._clear()
        remove_tree(self._folder)

    def _clear(self) -> None:
        with self._changed:
            seats, self._idle = self._idle, []
        for seat in seats:
            seat.close()


#: One per worker process: Dask calls our functions by name and cannot pass them an object of ours.
ROOMS = Rooms()
atexit.register(ROOMS.close)
