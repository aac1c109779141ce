"""Looks at the gates that run on a store: at one moment, and for whoever was away since an event."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.gate.live.machine import describe_machine, has_process
from pytest_golden.gate.live.seen import LiveLook
from pytest_golden.gate.live.store import find_newest, find_run, list_ended, list_finished, list_unfinished
from pytest_golden.gate.live.told import Told
from pytest_golden.storage.moments import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.gate.live.seen import FinishedProject, LiveGate
    from pytest_golden.gate.live.store import SeenRun
    from pytest_golden.storage.store import Store

# A gate without a sign of life for so long does not run.
LONGEST_SILENCE_SECONDS = 30.0
# Watchers look again well within that.
_ENDED_KEPT_SECONDS = 60.0
# What was imported as history is no news.
_NEWS = timedelta(hours=1)
_MOST_ENDED = 20


class LiveGates:
    """Looks at all gates that record into a store, on whatever machine they run. Threads may share it.

    A look that is younger than `least_seconds` is given again: however many watch, the store is asked so often.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = monotonic_seconds,
        least_seconds: float = 0.5,
    ) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._least_seconds = least_seconds
        self._machine = describe_machine()
        self._lock = threading.Lock()
        self._last: LiveLook | None = None
        self._looked_at: float | None = None
        # Of each run its last sign of life, and when that was seen first by this process's own clock.
        self._beats: dict[str, tuple[int, float]] = {}
        self._finished: dict[str, tuple[FinishedProject, ...]] = {}
        # With the moment at which their end was seen.
        self._ended: dict[str, tuple[LiveGate, float]] = {}
        self._awaited: set[str] = set()

    def look(self) -> LiveLook:
        """Look at what runs now.

        Raises:
            StorageError: the store cannot be read.
        """
        with self._lock:
            now = self._monotonic()
            if self._last is None or self._looked_at is None or now - self._looked_at >= self._least_seconds:
                with self._store.read() as connection:
                    self._last = self._look(connection, now)
                self._looked_at = now
            return self._last

    def resume(self, last_event_id: str | None) -> LiveLook:
        """Give the look that somebody has who has heard of everything up to an event.

        An id that is None or none of this store's gives the look of somebody who knows nothing.

        Raises:
            StorageError: the store cannot be read.
        """
        told = Told.parse(last_event_id)
        if told is None:
            return LiveLook()
        with self._lock, self._store.read() as connection:
            if told.newest > find_newest(connection):
                return LiveLook()
            runs = (find_run(connection, run_id) for run_id in told.results)
            gates = tuple(self._rewind(connection, gate, told) for gate in runs if gate is not None)
            for gate in self._list_news(connection, told.newest):
                self._ended.setdefault(gate.run_id, (gate, self._monotonic()))
            self._awaited.update(gate.run_id for gate in gates)
            self._looked_at = None
        return LiveLook(gates, (), told.newest)

    def _look(self, connection: Connection, now: float) -> LiveLook:
        unfinished = list_unfinished(connection)
        alive = [seen for seen in unfinished if self._is_alive(seen, now)]
        gates = tuple(self._complete(connection, seen.gate) for seen in alive)
        running = {gate.run_id for gate in gates}
        newest = find_newest(connection)
        self._note_ended(connection, running, newest, now)
        ended = tuple(sorted((gate for gate, _ in self._ended.values()), key=lambda gate: gate.number))
        self._forget(self._ended.keys() | {seen.gate.run_id for seen in unfinished})
        return LiveLook(gates, ended, newest)

    def _is_alive(self, seen: SeenRun, now: float) -> bool:
        """Tell whether a run without an end still runs.

        How old a sign of life is, the clock of its machine tells at first; once another was seen, ours does.
        """
        run_id = seen.gate.run_id
        known = self._beats.get(run_id)
        if known is None:
            age = max(0.0, (to_ms(self._clock()) - seen.beat) / 1000)
            self._beats[run_id] = seen.beat, now - age
        elif known[0] != seen.beat:
            self._beats[run_id] = seen.beat, now
        if seen.machine == self._machine and seen.pid is not None and not has_process(seen.pid):
            return False
        return now - self._beats[run_id][1] <= LONGEST_SILENCE_SECONDS

    def _complete(self, connection: Connection, gate: LiveGate) -> LiveGate:
        """Add the results so far; only those are read that are not known."""
        known = self._finished.get(gate.run_id, ())
        ids = {one.entry_id for one in known}
        # Stores that were merged have given them other numbers.
        new = list_finished(connection, gate.run_id, known[-1].number if known else 0)
        finished = (*known, *(one for one in new if one.entry_id not in ids)) if new else known
        self._finished[gate.run_id] = finished
        names = {one.name for one in finished}
        return replace(gate, finished=finished, running=tuple(one for one in gate.running if one.name not in names))

    def _note_ended(self, connection: Connection, running: set[str], newest: int, now: float) -> None:
        """Note which runs have ended since the last look, and let go of those that ended a while ago."""
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

    def _list_news(self, connection: Connection, after: int) -> Iterable[LiveGate]:
        since = to_ms(self._clock() - _NEWS)
        return tuple(self._end(connection, gate) for gate in list_ended(connection, after, since, _MOST_ENDED))

    def _end(self, connection: Connection, gate: LiveGate) -> LiveGate:
        gate = self._complete(connection, gate)
        return replace(gate, running=(), is_interrupted=gate.is_interrupted or gate.finished_at is None)

    def _rewind(self, connection: Connection, gate: LiveGate, told: Told) -> LiveGate:
        """Give a run as it was known to somebody."""
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
