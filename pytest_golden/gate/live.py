"""Watch the gates that run on a store: what runs now, what happened between two looks, and events that can be resumed."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, monotonic_seconds, utc_now
from pytest_golden.gate.live_model import LiveLook, describe_machine, has_process
from pytest_golden.gate.live_store import find_newest, find_run, list_ended, list_finished, list_unfinished
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.columns import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.gate.live_model import FinishedProject, LiveGate
    from pytest_golden.gate.live_store import SeenRun
    from pytest_golden.storage.store import Store

_MOST_RUNS = 20
_LONGEST_ID = 2_000
_RUN_FORM = r"[A-Za-z0-9_]{1,64}\.\d{1,18}"
_ID_FORM = re.compile(rf"(\d{{1,18}})((?:-{_RUN_FORM})*)", re.ASCII)
# A gate without a sign of life for so long does not run.
LONGEST_SILENCE_SECONDS = 30.0
# Watchers look again well before that.
_ENDED_KEPT_SECONDS = 60.0
# What was imported as history is no news.
_LONGEST_NEWS = timedelta(hours=1)
_MOST_ENDED = 20
GATE_STARTED = "gate_started"
PROJECT_STARTED = "project_started"
STEP = "step"
PROJECT_FINISHED = "project_finished"
GATE_FINISHED = "gate_finished"


class LiveGates:
    """Watches all gates that record into a store, on any machine. Threads may share it.

    A look that is younger than `least_seconds` is returned again, so that many watchers do not ask the store more often.
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
        """Return the look of a watcher that received everything up to an event.

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

        The age of the first sign of life is known by its machine's clock, that of later ones by ours.
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
        since = to_ms(self._clock() - _LONGEST_NEWS)
        return tuple(self._end(connection, gate) for gate in list_ended(connection, after, since, _MOST_ENDED))

    def _end(self, connection: Connection, gate: LiveGate) -> LiveGate:
        gate = self._complete(connection, gate)
        return replace(gate, running=(), is_interrupted=gate.is_interrupted or gate.finished_at is None)

    def _rewind(self, connection: Connection, gate: LiveGate, told: Told) -> LiveGate:
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
        """Read an event's id; None for what is none of ours."""
        found = _ID_FORM.fullmatch(text) if text is not None and len(text) <= _LONGEST_ID else None
        if found is None:
            return None
        parts = [part.split(".") for part in found[2].split("-")[1:]]
        return cls(int(found[1]), {run: int(number) for run, number in parts}) if len(parts) <= _MOST_RUNS else None


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One piece of news; its data are JSON-safe. A watcher that received `id` knows everything up to it."""

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
        self._told = {gate.run_id: _last_number(gate) for gate in before.gates}

    def tell(self) -> Iterator[LiveEvent]:
        ended = {gate.run_id: gate for gate in self._after.ended}
        present = {gate.run_id for gate in self._after.gates}
        for gate in self._before.gates:
            if gate.run_id not in present and gate.run_id not in ended:
                # Nobody knows any more how it ended.
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


def _last_number(gate: LiveGate) -> int:
    return max((one.number for one in gate.finished), default=0)
