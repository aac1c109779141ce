"""The two places where a recorder keeps what it is told: memory, or a file of JSON Lines. The recorder holds the lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.jsonlines import completion_line, header_line, read_trajectory, snapshot_line
from pytest_golden.trajectory.sequence import FrozenSequence
from pytest_golden.trajectory.step_line import END_PLACE, LineParts, StepFields, end_line, make_step, step_line
from pytest_golden.trajectory.step_stream import StepStream

if TYPE_CHECKING:
    import os
    from datetime import datetime

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import StateSnapshot
    from pytest_golden.trajectory.vocabulary import Importance


class KeptInMemory:
    """Steps as plain fields; they become `Step` values when somebody asks for them."""

    path: Path | None = None
    lost_count = 0

    def __init__(self) -> None:
        self._steps: list[tuple[StepFields, datetime]] = []
        self._snapshots: list[StateSnapshot] = []
        self._open: dict[str, int] = {}

    def prepare(self, fields: StepFields) -> LineParts | None:  # noqa: ARG002 - the file has something to prepare
        """Give nothing: memory takes the values as they are."""
        return None

    def add_step(self, fields: StepFields, moment: datetime, _: LineParts | None, *, has_end: bool) -> None:
        """Keep a step, at that moment."""
        if has_end:
            self._open[fields.id] = len(self._steps)
        self._steps.append((fields, moment))

    def end_step(self, step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> None:
        """Add to a step what its end tells."""
        position = self._open.pop(step_id, None)
        if position is not None:
            fields, moment = self._steps[position]
            changed = fields._replace(
                duration_ms=duration_ms,
                metadata=FrozenDict({**fields.metadata, **metadata}) if metadata else fields.metadata,
                importance=importance or fields.importance,
            )
            self._steps[position] = (changed, moment)

    def add_snapshot(self, snapshot: StateSnapshot) -> None:
        """Keep a snapshot."""
        self._snapshots.append(snapshot)

    def end(self, ended: Trajectory) -> None:
        """Do nothing: the recorder keeps how it ended."""

    def leave_to_parent(self) -> None:
        """Do nothing: a fork has a memory of its own."""

    def read(self, start: Trajectory, ended: Trajectory | None) -> Trajectory:
        """Give the trajectory."""
        steps = FrozenSequence(make_step(fields, moment) for fields, moment in self._steps)
        return replace(ended or start, steps=steps, state_snapshots=FrozenSequence(self._snapshots))


class KeptInFile:
    """Lines of a file, and in memory only where the lines of open spans are."""

    def __init__(self, path: str | os.PathLike[str], start: Trajectory) -> None:
        place = Path(path).absolute()
        self.path: Path | None = place / f"{start.id}.jsonl" if place.is_dir() else place
        self._stream = StepStream(self.path, header_line(start))
        self._open: dict[str, int] = {}

    @property
    def lost_count(self) -> int:
        """Give how many lines were lost."""
        return self._stream.lost_count

    def prepare(self, fields: StepFields) -> LineParts | None:
        """Write what takes time before the lock is taken."""
        return LineParts.of(fields.content, fields.metadata, fields.context)

    def add_step(self, fields: StepFields, moment: datetime, parts: LineParts | None, *, has_end: bool) -> None:
        """Write a step's line, as of that moment."""
        line = step_line(
            fields, moment, parts or LineParts.of(fields.content, fields.metadata, fields.context), has_end=has_end
        )
        start = self._stream.write(line)
        if has_end and start is not None:
            self._open[fields.id] = start + len(line) - END_PLACE

    def end_step(self, step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> None:
        """Write a line of what a step's end tells, and in the step's own line where that is."""
        room = self._open.pop(step_id, None)
        if room is None:
            return
        start = self._stream.write(end_line(step_id, duration_ms, metadata, importance), counts=False)
        if start is not None:
            self._stream.note_place(room, start)

    def add_snapshot(self, snapshot: StateSnapshot) -> None:
        """Write a snapshot's line."""
        self._stream.write(snapshot_line(snapshot))

    def end(self, ended: Trajectory) -> None:
        """Write how it ended, and close the file."""
        self._stream.write(completion_line(ended, lost_steps=self.lost_count), counts=False)
        self._stream.close()
        self._open.clear()

    def leave_to_parent(self) -> None:
        """Write no more: the lines of this file are the parent's."""
        self._stream.abandon()

    def read(self, start: Trajectory, ended: Trajectory | None) -> Trajectory:
        """Read the file back; what is no file, or never was one, gives a trajectory without steps.

        Raises:
            OSError: it cannot be read.
            GoldenError: it is another trajectory's by now.
        """
        if self.path is None or not self._stream.is_file:
            return ended or start
        found = read_trajectory(self.path)
        if found.id != start.id:
            raise GoldenError(f"{self.path} is trajectory {found.id} by now, {start.id} is no longer there")
        return found
