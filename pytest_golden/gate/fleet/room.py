"""What a worker keeps of a session between its attempts: where the workspace is, and gateways that are set up already.

It goes when the gate says so. What costs anything goes by itself when no attempt has come for a while: a gate may be killed.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.baselines import BaselineKeeper
from pytest_golden.gate.fleet.shipping import BASELINES, WORKSPACE, find_shipped, make_folder, remove_shipped
from pytest_golden.gate.keep import choose_keeping
from pytest_golden.gate.trends import SlowdownJudge
from pytest_golden.gateway import ExecutionGateway
from pytest_golden.gateway.scratch import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.fleet.model import FleetSession, FleetTask
    from pytest_golden.gateway.model import RunnerCommand
    from pytest_golden.manifest.model import GoldenProjectConfig

_IDLE_SECONDS = 60.0
_LONGEST_END_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a worker has a session's workspace and baselines; `is_shared`: they are the gate's own."""

    root: Path
    baselines: Path
    is_shared: bool


class Seat:
    """A gateway, with what it takes from the attempt at hand. `logs` is where it writes the log."""

    def __init__(self, session: FleetSession, workspace: Workspace) -> None:
        self.logs = make_folder("logs")
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
            # Nobody finds what is kept in a copy of the workspace.
            keep_if=choose_keeping(session.keep if workspace.is_shared else "none", lambda: self._slowdowns),
        )

    def take(self, task: FleetTask, project: GoldenProjectConfig) -> None:
        """Make everything ready for an attempt: of this machine's environment nothing passes but where programs are found."""
        passed = {name: value for name, value in os.environ.items() if name not in project.pass_env}
        self._environ.clear()
        self._environ.update(passed, **task.environment)
        self._command = task.command
        self._slowdowns = task.slowdowns or SlowdownJudge()
        if project.name not in self._known:
            self._known.add(project.name)
            self.gateway.freeze([project])

    def close(self) -> None:
        """End what the gateway holds."""
        self.gateway.close()
        remove_tree(self.logs)


class Room:
    """A session's room on this worker."""

    def __init__(self, session: FleetSession, workspace: Workspace) -> None:
        self.workspace = workspace
        self.is_closed = False
        self.keeper = BaselineKeeper(workspace.baselines, accept_command=session.accept_command)
        self.keeper.pin()
        self._session = session
        self._changed = threading.Condition()
        self._idle: list[Seat] = []
        self._taken = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def seat(self) -> Iterator[Seat]:
        """Give a seat that nobody else has for the time of a with-block."""
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
        """Have all attempts end, and close the seats: those that are taken when they are left."""
        self.is_closed = True
        with self._changed:
            self._changed.wait_for(lambda: not self._taken, timeout=_LONGEST_END_SECONDS)
        self._clear()

    def _clear(self) -> None:
        with self._changed:
            seats, self._idle = self._idle, []
        for seat in seats:
            seat.close()


class Rooms:
    """The rooms of this process, one a session."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def enter(self, session: FleetSession) -> Room | None:
        """Give the room of a session, opened with the first attempt; None where this host has no workspace for it."""
        with self._lock:
            room = self._rooms.get(session.id)
            if room is None and (workspace := find_workspace(session)) is not None:
                room = self._rooms[session.id] = Room(session, workspace)
            return room

    def refuse(self, session_id: str) -> None:
        """Note that a session has no workspace here, and gets none."""
        self._refused.add(session_id)

    def is_refused(self, session_id: str) -> bool:
        """Tell whether a session gets no workspace here."""
        return session_id in self._refused

    def leave(self, session_id: str) -> None:
        """End a session here: its attempts, its gateways and what was unpacked for it."""
        with self._lock:
            self._refused.discard(session_id)
            room = self._rooms.pop(session_id, None)
        if room is not None:
            room.close()
        remove_shipped(session_id)

    def close(self) -> None:
        """End what all sessions hold."""
        for room in self._rooms.values():
            room.close()


#: Of the worker's process, which calls functions by their names and hands them no object of ours.
ROOMS = Rooms()
atexit.register(ROOMS.close)


def find_workspace(session: FleetSession) -> Workspace | None:
    """Give the workspace as this host has it: the gate's own where it is seen here, else what was unpacked, if anything."""
    with suppress(OSError, ValueError):
        if session.baselines_inside is not None and Path(session.token_file).read_text("ascii") == session.token:
            return Workspace(Path(session.root), Path(session.baselines), is_shared=True)
    folder = find_shipped(session.id)
    if folder is None:
        return None
    root = folder / WORKSPACE
    baselines = folder / BASELINES if session.baselines_inside is None else root / session.baselines_inside
    return Workspace(root, baselines, is_shared=False)
