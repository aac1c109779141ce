"""What has happened between two looks at the gates that run. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.live.told import Told
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.live.seen import LiveGate, LiveLook

GATE_STARTED = "gate_started"
PROJECT_STARTED = "project_started"
STEP = "step"
PROJECT_FINISHED = "project_finished"
GATE_FINISHED = "gate_finished"


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One piece of news; its data are JSON-safe. `id` tells how far whoever hears it knows everything."""

    kind: str
    data: dict[str, Any]
    id: str


def find_events(before: LiveLook, after: LiveLook) -> tuple[LiveEvent, ...]:
    """Tell what has happened between two looks, in an order in which it can have happened.

    After an empty look that is a picture of all that runs.
    """
    return tuple(_Telling(before, after).tell())


class _Telling:
    """One walk from a look to the next; what was told meanwhile goes into the ids."""

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
