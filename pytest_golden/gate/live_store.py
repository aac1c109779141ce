"""Watch the gates that record into a store: which run now, and which ended since the last look."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, func, select

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.gate import live
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.schema import expectations, gate_live, gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.storage.store import Store

# After this long without a sign of life, a gate is not running.
LONGEST_SILENCE_SECONDS = 30.0
# Watchers look again well before that.
_ENDED_KEPT_SECONDS = 60.0
# Runs that were imported as history are not reported.
_LONGEST_NEWS = timedelta(hours=1)
_MOST_ENDED = 20
# If more gates run at once, only the newest are reported.
_MOST_GATES = 100
# Columns with the same name in a gate and in its row.
_ALIKE = ("number", "manifest", "workspace_root", "commit", "branch", "host", "pid", "final_status")
_RUNS: Select[Any] = select(
    *(gate_runs.c[name] for name in (*_ALIKE, "entry_id", "started_at", "finished_at")),
    *(gate_live.c[name] for name in ("beat_at", "machine", "total_count", "running")),
    gate_live.c.pid.label("beating_pid"),
).join_from(gate_runs, gate_live, gate_live.c.run_id == gate_runs.c.entry_id, isouter=True)
_UNFINISHED = _RUNS.where(gate_runs.c.finished_at.is_(None)).order_by(gate_runs.c.number.desc()).limit(_MOST_GATES)
_NEWEST = select(func.max(gate_runs.c.number))
_OF_RESULT = ("number", "entry_id", "project", "status", "execution_time_seconds", "created_at")
_FINISHED = (
    select(*(gate_results.c[name] for name in _OF_RESULT))
    .where(
        gate_results.c.run_id == bindparam("the_run", type_=gate_results.c.run_id.type),
        gate_results.c.number > bindparam("after", type_=gate_results.c.number.type),
    )
    .order_by(gate_results.c.number)
)


_DECLARED = (
    select(expectations.c.match_hint)
    .where(expectations.c.entry_id == bindparam("the_run", type_=expectations.c.entry_id.type))
    .order_by(expectations.c.number)
)


class SeenRun(NamedTuple):
    """A run with its row. `beat` is the moment of its last sign of life, by its own clock."""

    gate: live.LiveGate
    beat: int
    pid: int | None
    machine: str | None


@dataclass(eq=False)
class LiveGates:
    """Watches all gates that record into a store, on any machine. Threads may share it.

    A look that is younger than `least_seconds` is returned again, so that many watchers do not ask the store more often.
    """

    store: Store
    clock: Callable[[], datetime] = field(default=utc_now, kw_only=True)
    monotonic: Callable[[], float] = field(default=monotonic_seconds, kw_only=True)
    least_seconds: float = field(default=0.5, kw_only=True)

    def __post_init__(self) -> None:
        self._machine = live.describe_machine()
        self._lock = threading.Lock()
        self._last: live.LiveLook | None = None
        self._looked_at: float | None = None
        # Of each run its last sign of life, and when that was seen first by this process's own clock.
        self._beats: dict[str, tuple[int, float]] = {}
        self._finished: dict[str, tuple[live.FinishedProject, ...]] = {}
        # With the time at which their end was seen.
        self._ended: dict[str, tuple[live.LiveGate, float]] = {}
        self._awaited: set[str] = set()

    def look(self) -> live.LiveLook:
        """Look at what runs now.

        Raises:
            StorageError: the store cannot be read.
        """
        with self._lock:
            now = self.monotonic()
            if self._last is None or self._looked_at is None or now - self._looked_at >= self.least_seconds:
                with self.store.read() as connection:
                    self._last = self._look(connection, now)
                self._looked_at = now
            return self._last

    def list_waiting(self, gate: live.LiveGate) -> tuple[str, ...]:
        """Return the projects of a running gate that neither run nor have ended, in the order of their declaration.

        Raises:
            StorageError: the store cannot be read.
        """
        begun = {one.name for one in gate.running} | {one.name for one in gate.finished}
        with self.store.read() as connection:
            hints = [row.match_hint for row in connection.execute(_DECLARED, {"the_run": gate.run_id})]
        names = (str(hint["project"]) for hint in hints if isinstance(hint, Mapping) and "project" in hint)
        return tuple(name for name in names if name not in begun)

    def resume(self, last_event_id: str | None) -> live.LiveLook:
        """Return the look of a watcher that received everything up to an event.

        An id that is None or none of this store's gives the look of somebody who knows nothing.

        Raises:
            StorageError: the store cannot be read.
        """
        told = live.Told.parse(last_event_id)
        if told is None:
            return live.LiveLook()
        with self._lock, self.store.read() as connection:
            if told.newest > find_newest(connection):
                return live.LiveLook()
            runs = (find_run(connection, run_id) for run_id in told.results)
            gates = tuple(self._rewind(connection, gate, told) for gate in runs if gate is not None)
            for gate in self._list_news(connection, told.newest):
                self._ended.setdefault(gate.run_id, (gate, self.monotonic()))
            self._awaited.update(gate.run_id for gate in gates)
            self._looked_at = None
        return live.LiveLook(gates, (), told.newest)

    def _look(self, connection: Connection, now: float) -> live.LiveLook:
        unfinished = list_unfinished(connection)
        alive = [seen for seen in unfinished if self._is_alive(seen, now)]
        gates = tuple(self._complete(connection, seen.gate) for seen in alive)
        running = {gate.run_id for gate in gates}
        newest = find_newest(connection)
        self._note_ended(connection, running, newest, now)
        ended = tuple(sorted((gate for gate, _ in self._ended.values()), key=lambda gate: gate.number))
        self._forget(self._ended.keys() | {seen.gate.run_id for seen in unfinished})
        return live.LiveLook(gates, ended, newest)

    def _is_alive(self, seen: SeenRun, now: float) -> bool:
        """Tell whether a run without an end still runs.

        The age of the first sign of life is known by its machine's clock, that of later ones by ours.
        """
        run_id = seen.gate.run_id
        known = self._beats.get(run_id)
        if known is None:
            age = max(0.0, (to_ms(self.clock()) - seen.beat) / 1000)
            self._beats[run_id] = seen.beat, now - age
        elif known[0] != seen.beat:
            self._beats[run_id] = seen.beat, now
        if seen.machine == self._machine and seen.pid is not None and not live.has_process(seen.pid):
            return False
        return now - self._beats[run_id][1] <= LONGEST_SILENCE_SECONDS

    def _complete(self, connection: Connection, gate: live.LiveGate) -> live.LiveGate:
        """Add the results so far; only those are read that are not known."""
        known = self._finished.get(gate.run_id, ())
        ids = {one.entry_id for one in known}
        # Merging stores gives them other numbers.
        new = list_finished(connection, gate.run_id, known[-1].number if known else 0)
        finished = (*known, *(one for one in new if one.entry_id not in ids)) if new else known
        self._finished[gate.run_id] = finished
        names = {one.name for one in finished}
        return replace(gate, finished=finished, running=tuple(one for one in gate.running if one.name not in names))

    def _note_ended(self, connection: Connection, running: set[str], newest: int, now: float) -> None:
        """Note which runs have ended since the last look, and forget those that ended a while ago."""
        for run_id in running:
            self._ended.pop(run_id, None)
        before = self._last
        candidates = {gate.run_id for gate in before.gates} if before is not None else set()
        for run_id in (candidates | self._awaited) - running - self._ended.keys():
            gate = find_run(connection, run_id)
            if gate is not None:
                self._ended[run_id] = self._end(connection, gate), now
        self._awaited.clear()
        if before is not None and before.newest is not None and before.newest < newest:
            for gate in self._list_news(connection, before.newest):
                self._ended.setdefault(gate.run_id, (gate, now))
        kept = {run_id: (gate, at) for run_id, (gate, at) in self._ended.items() if now - at < _ENDED_KEPT_SECONDS}
        self._ended = kept

    def _list_news(self, connection: Connection, after: int) -> Iterable[live.LiveGate]:
        since = to_ms(self.clock() - _LONGEST_NEWS)
        return tuple(self._end(connection, gate) for gate in list_ended(connection, after, since, _MOST_ENDED))

    def _end(self, connection: Connection, gate: live.LiveGate) -> live.LiveGate:
        gate = self._complete(connection, gate)
        return replace(gate, running=(), is_interrupted=gate.is_interrupted or gate.finished_at is None)

    def _rewind(self, connection: Connection, gate: live.LiveGate, told: live.Told) -> live.LiveGate:
        """Return a run as a watcher last saw it."""
        last = told.results[gate.run_id]
        finished = self._complete(connection, gate).finished
        return replace(
            gate,
            running=(),
            finished=tuple(one for one in finished if one.number <= last),
            finished_at=None,
            final_status=None,
        )

    def _forget(self, needed: set[str]) -> None:
        for known in (self._beats, self._finished):
            for run_id in known.keys() - needed:
                del known[run_id]


def find_newest(connection: Connection) -> int:
    """Return the number of the newest run, 0 where there is none."""
    return connection.scalar(_NEWEST) or 0


def list_unfinished(connection: Connection) -> tuple[SeenRun, ...]:
    """Return the runs without an end, oldest first: those that run, and those that were killed."""
    rows = connection.execute(_UNFINISHED).all()
    return tuple(
        SeenRun(
            _read_gate(connection, row),
            row.started_at if row.beat_at is None else row.beat_at,
            row.beating_pid,
            row.machine,
        )
        for row in reversed(rows)
    )


def list_ended(connection: Connection, after: int, since: int, most: int) -> tuple[live.LiveGate, ...]:
    """Return the newest runs that are newer than a number and ended since a moment, oldest first."""
    query = _RUNS.where(gate_runs.c.number > after, gate_runs.c.finished_at >= since)
    rows = connection.execute(query.order_by(gate_runs.c.number.desc()).limit(most)).all()
    return tuple(_read_ended(connection, row) for row in reversed(rows))


def find_run(connection: Connection, run_id: str) -> live.LiveGate | None:
    """Return a run without its results, whether or not it has ended; None if it does not exist."""
    row = connection.execute(_RUNS.where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_ended(connection, row)


def list_finished(connection: Connection, run_id: str, after: int) -> tuple[live.FinishedProject, ...]:
    """Return the results of a run that were recorded after the one of a number, in that order."""
    rows = connection.execute(_FINISHED, {"the_run": run_id, "after": after})
    return tuple(
        live.FinishedProject(number, entry_id, project, ResultStatus(status), seconds, from_ms(created_at))
        for number, entry_id, project, status, seconds, created_at in rows
    )


def _read_ended(connection: Connection, row: Row[Any]) -> live.LiveGate:
    return _read_gate(connection, row, is_interrupted=row.final_status == RunStatus.INTERRUPTED)


def _read_gate(connection: Connection, row: Row[Any], *, is_interrupted: bool = False) -> live.LiveGate:
    total = row.total_count
    if total is None:
        # Its row does not exist yet, or not any more; each project is an expectation.
        expected = select(func.count()).select_from(expectations).where(expectations.c.entry_id == row.entry_id)
        total = connection.scalar(expected)
    return live.LiveGate(
        **{name: getattr(row, name) for name in _ALIKE},
        run_id=row.entry_id,
        is_own=is_own_place(row.workspace_root),
        started_at=from_ms(row.started_at),
        finished_at=None if row.finished_at is None else from_ms(row.finished_at),
        is_interrupted=is_interrupted,
        total_count=total or 0,
        running=tuple(_read_running(row.running)),
    )


def _read_running(told: Any) -> Iterator[live.RunningProject]:
    for one in told if isinstance(told, list) else ():
        # Another version may have written it.
        with suppress(ValueError):
            yield live.RunningProject.from_dict(one)
