"""A recorder for hot paths: it writes down what happens, in memory or line by line in a file, and gives a `Trajectory`.

With a file nothing is held but counts, so that a million steps need no more memory than one, and what was recorded
is with the kernel: a crash of the process costs nothing. What belongs around a piece of work is in `current.py`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.trajectory.cutting import cut_content, cut_mapping
from pytest_golden.trajectory.jsonlines import StepFields
from pytest_golden.trajectory.keeping import KeptInFile, KeptInMemory, StepIds
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Span, find_present_step
from pytest_golden.trajectory.vocabulary import (
    Importance,
    StepType,
    TrajectoryOutcome,
    check_duration,
    freeze,
    freeze_mapping,
)
from pytest_golden.values.checking import Missing, check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.trajectory.jsonlines import LineParts
    from pytest_golden.trajectory.step import StateSnapshot

_LOG = logging.getLogger(__name__)
_MISSING = Missing.MISSING
_SHORT = 10_000
# Asked for at each step; `check_word` tells what is wrong with the others.
_TYPES = {word.value: word for word in StepType}
_IMPORTANCES = {word.value: word for word in Importance}


class _Forks:
    """How many forks lie between the first process and this one."""

    count = 0

    @classmethod
    def add(cls) -> None:
        cls.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forks.add)


class TrajectoryRecorder:
    """Records steps, snapshots and an outcome; safe from several threads.

    With a path each step is a line of that file before `step` returns. The file replaces what was there; in a folder
    it gets a name of its own, `<id>.jsonl`. What cannot be written is lost with a warning, and `lost_count` counts it.
    A process forked from the one that made the recorder writes nothing into its file.

    Content, metadata, context and states over 1 MiB are cut, and `metadata["truncated_bytes"]` says by how much.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - the public name
    ) -> None:
        self._start = Trajectory.new(metadata, id)
        self._ids = StepIds()
        # A signal's handler may record in the middle of a step.
        self._lock = threading.RLock()
        self._forks = _Forks.count
        self._is_forked = self._is_busy = self._has_steps = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._last_step_at = self._last_snapshot_at = self._start.started_at
        self._ended: Trajectory | None = None
        self._kept = KeptInMemory() if path is None else KeptInFile(path, self._start)

    @property
    def id(self) -> str:
        """Return the trajectory's id."""
        return self._start.id

    @property
    def path(self) -> Path | None:
        """Return the file that is streamed to, None in memory."""
        return self._kept.path

    @property
    def lost_count(self) -> int:
        """Return how many steps and snapshots could not be written."""
        return self._kept.lost_count

    @property
    def is_completed(self) -> bool:
        """Tell whether `complete` was called."""
        return self._ended is not None

    @property
    def is_forked(self) -> bool:
        """Tell whether this process was forked from the one that made the recorder."""
        self._see_forks()
        return self._is_forked

    @property
    def trajectory(self) -> Trajectory:
        """Return what was recorded so far; with a path it is read from the file, whole.

        Raises:
            OSError: the file cannot be read.
            GoldenError: another recorder has replaced it.
        """
        self._see_forks()
        with self._lock:
            return self._kept.read(self._start, self._ended)

    def step(
        self,
        type: StepType | str | Missing = _MISSING,  # noqa: A002 - the public name
        content: Any = _MISSING,
        *,
        importance: Importance | str = Importance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        context: Any = None,
        duration_ms: float | None = None,
        parent_step_id: str | None = None,
        timestamp: datetime | None = None,
    ) -> str:
        """Record a step and give its id; without a parent given, the present span is its parent.

        Raises:
            ValueError: a field has a value that is not allowed, the parent is no step of this recorder, the time is
                before the last step's, or the trajectory is completed.
        """
        fields = _settle(type, content, importance, metadata, context, duration_ms)
        return self._keep(fields, parent_step_id, timestamp)

    def span(
        self,
        type: StepType | str | Missing = _MISSING,  # noqa: A002 - the public name
        content: Any = _MISSING,
        *,
        importance: Importance | str = Importance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        context: Any = None,
        parent_step_id: str | None = None,
    ) -> Span:
        """Return a with-block whose step begins with it; its end adds the duration, and the error when it raised.

        What is recorded inside, in the same thread or in tasks begun there, is its child. A failed span is critical.

        Raises:
            ValueError: as `step`.
        """
        fields = _settle(type, content, importance, metadata, context, None)
        return Span(self, lambda: self._keep(fields, parent_step_id, None, has_end=True), self._end_span)

    def snapshot(
        self,
        state: Any = _MISSING,
        *,
        reason: str = "checkpoint",
        step_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Record the state at this moment and give the snapshot's id.

        Raises:
            ValueError: the state is missing or None, the step is none of this recorder, or the trajectory is completed.
        """
        made = _cut_snapshot(self._start.add_snapshot(state, reason=reason, metadata=metadata).state_snapshots[0])
        self._see_forks()
        with self._lock:
            self._refuse_when_completed("add a snapshot")
            if step_id is not None:
                self._refuse_unknown("step_id", step_id)
            self._do(lambda: self._add_snapshot(replace(made, step_id=step_id)))
        return made.id

    def complete(self, outcome: TrajectoryOutcome | str = TrajectoryOutcome.SUCCESS, error: object = None) -> None:
        """End the trajectory now; nothing can be recorded afterwards. `error` is kept as by `Trajectory.complete`.

        Raises:
            ValueError: already completed, or an unknown outcome.
        """
        self._see_forks()
        with self._lock:
            self._refuse_when_completed("complete it")
            ended = self._start.complete(outcome, error)
            self._do(lambda: self._end(ended))

    def _keep(
        self,
        fields: StepFields,
        parent_step_id: str | None,
        timestamp: datetime | None,
        *,
        has_end: bool = False,
    ) -> str:
        # What is asked here is asked in full only where the answer is not the usual one: this is done for each step.
        parent = find_present_step(self) if parent_step_id is None else parent_step_id
        prepared = self._kept.prepare(fields)
        if self._forks != _Forks.count:
            self._see_forks()
        with self._lock:
            if self._ended is not None:
                self._refuse_when_completed("add a step")
            if parent_step_id is not None:
                self._refuse_unknown("parent_step_id", parent_step_id)
            step_id = self._ids.make()
            _, kind, content, took, told, about, weight, _ = fields
            whole = StepFields(step_id, kind, content, took, told, about, weight, parent)
            if self._is_busy or self._waiting:
                self._do(lambda: self._add_step(whole, prepared, timestamp, has_end=has_end))
                return step_id
            self._is_busy = True
            try:
                self._add_step(whole, prepared, timestamp, has_end=has_end)
            finally:
                self._is_busy = False
            if self._waiting:
                self._do(_do_nothing)
        return step_id

    def _do(self, action: Callable[[], None]) -> None:
        """Do it, or let it wait: a signal's handler may come here in the middle of another action of its own thread."""
        if self._is_busy:
            self._waiting.append(action)
            return
        self._is_busy = True
        try:
            action()
            while self._waiting:
                with suppress(ValueError):  # its caller is gone
                    self._waiting.popleft()()
        finally:
            self._is_busy = False

    def _add_step(
        self, fields: StepFields, prepared: LineParts | None, timestamp: datetime | None, *, has_end: bool
    ) -> None:
        moment = max(utc_now(), self._last_step_at) if timestamp is None else self._check_moment(timestamp)
        self._last_step_at = moment
        self._has_steps = True
        self._kept.add_step(fields, moment, prepared, has_end=has_end)

    def _add_snapshot(self, snapshot: StateSnapshot) -> None:
        moment = self._last_snapshot_at = max(utc_now(), self._last_snapshot_at)
        self._kept.add_snapshot(replace(snapshot, timestamp=moment))

    def _end(self, ended: Trajectory) -> None:
        if ended.completed_at is not None and ended.completed_at < self._last_step_at:
            late = self._last_step_at
            ended = ended.reopen().complete(ended.outcome or TrajectoryOutcome.SUCCESS, ended.error, late)
        self._ended = ended
        self._kept.end(ended)
        if self.lost_count:
            _LOG.warning("%d steps of trajectory %s could not be written and are lost", self.lost_count, self.id)

    def _check_moment(self, timestamp: datetime) -> datetime:
        moment = check_time("timestamp", timestamp)
        if self._has_steps and moment < self._last_step_at:
            last = iso_utc(self._last_step_at)
            raise ValueError(f"timestamp {iso_utc(moment)} is before the last step's, {last}: times never go back")
        return moment

    def _end_span(self, step_id: str, duration_ms: float, metadata: dict[str, Any], *, failed: bool) -> None:
        told = freeze_mapping("metadata", metadata)
        self._see_forks()
        weight = Importance.CRITICAL if failed else None
        with self._lock:
            if self._ended is None:
                self._do(lambda: self._kept.end_step(step_id, duration_ms, told, weight))

    def _refuse_when_completed(self, wish: str) -> None:
        if self._ended is not None:
            raise ValueError(f"trajectory {self.id} is completed: a recorder that is completed cannot {wish}")

    def _refuse_unknown(self, field: str, step_id: str) -> None:
        if not self._ids.knows(step_id):
            raise ValueError(f"{field} {step_id!r} is no step of this trajectory: give an id that `step` gave")

    def _see_forks(self) -> None:
        if self._forks == _Forks.count:
            return
        # Another thread of the parent may have held the lock at the fork, and nobody here would ever release it.
        self._lock = threading.RLock()
        self._forks = _Forks.count
        self._is_busy = False
        self._is_forked = True
        self._ids.renew()
        self._kept.leave_to_parent()


def _do_nothing() -> None:
    """Let only what waits be done."""


def _settle(type_: Any, content: Any, importance: Any, metadata: Any, context: Any, duration_ms: Any) -> StepFields:
    """Check, cut and freeze what a step is made of; its id, time and parent come later."""
    kind = (_TYPES.get(type_) if isinstance(type_, str) else None) or check_word("type", type_, StepType)
    weight = _IMPORTANCES.get(importance) if isinstance(importance, str) else None
    if content is _MISSING:
        raise ValueError("content is missing: give what happened; None is content too")
    told = freeze_mapping("metadata", metadata)
    kept, left_out = cut_mapping(told) if told else (told, 0)
    # Most content is a short text, which needs neither.
    if type(content) is not str or len(content) > _SHORT:
        content, cut = cut_content(content)
        content = freeze("content", content)
        left_out += cut
    if context is not None:
        context, cut = cut_content(context)
        context = freeze("context", context)
        left_out += cut
    if left_out:
        told = freeze_mapping("metadata", {**kept, "truncated_bytes": left_out})
    return StepFields(
        "",
        kind,
        content,
        None if duration_ms is None else check_duration("duration_ms", duration_ms),
        told,
        context,
        weight or check_word("importance", importance, Importance),
        None,
    )


def _cut_snapshot(made: StateSnapshot) -> StateSnapshot:
    state, left_out = cut_content(made.state)
    told, cut = cut_mapping(made.metadata)
    if not left_out + cut:
        return made
    return replace(made, state=state, metadata={**told, "truncated_bytes": left_out + cut})
