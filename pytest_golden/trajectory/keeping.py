"""Where a recorder keeps steps: in memory, or in a file of JSON Lines; and the ids of its steps.

The recorder holds the lock. A full disk or a deleted file loses lines, with one warning and a count, but raises nothing.
"""

from __future__ import annotations

import itertools
import logging
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.clock import CROCKFORD, millisecond_digits, random_digits
from pytest_golden.errors import GoldenError
from pytest_golden.trajectory import jsonlines
from pytest_golden.trajectory.jsonlines import read_trajectory
from pytest_golden.trajectory.step import FrozenSequence, Step
from pytest_golden.values.json_form import FrozenDict

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.trajectory.jsonlines import StepFields
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import StateSnapshot
    from pytest_golden.trajectory.vocabulary import Importance

_LOG = logging.getLogger(__name__)
# Non-blocking: a pipe that nobody reads must not block the caller.
_FLAGS = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_PAIRS = tuple(map("".join, itertools.product(CROCKFORD, repeat=2)))
_ID_PREFIX = "step_"
_RANDOM_PART = slice(15, 25)
_ID_LENGTH = 31


class KeptInMemory:
    """Keeps steps as plain fields; `read` turns them into `Step` values."""

    path: Path | None = None
    lost_count = 0

    def __init__(self) -> None:
        self._steps: list[tuple[StepFields, datetime]] = []
        self._snapshots: list[StateSnapshot] = []
        self._open: dict[str, int] = {}

    def add_step(self, fields: StepFields, moment: datetime, *, has_end: bool) -> None:
        """Keep a step with that timestamp."""
        if has_end:
            self._open[fields.id] = len(self._steps)
        self._steps.append((fields, moment))

    def end_step(self, step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> None:
        """Add to a step what is known only at its end."""
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
        """Do nothing: the recorder itself keeps the completed trajectory."""

    def leave_to_parent(self) -> None:
        """Do nothing: a forked process has its own memory."""

    def read(self, start: Trajectory, ended: Trajectory | None) -> Trajectory:
        """Return the trajectory recorded so far."""
        steps = FrozenSequence(Step(**fields._asdict(), timestamp=moment) for fields, moment in self._steps)
        return replace(ended or start, steps=steps, state_snapshots=FrozenSequence(self._snapshots))


class KeptInFile:
    """Writes steps to a file of JSON Lines; memory holds only the file offsets of open spans.

    A line is with the kernel when a method returns, and no line stays half written. The file replaces the previous one
    atomically, with its header already in it; devices and pipes are written to directly. Not thread-safe.
    """

    def __init__(self, path: str | os.PathLike[str], start: Trajectory) -> None:
        place = Path(path).absolute()
        self.path: Path = place / f"{start.id}.jsonl" if place.is_dir() else place
        #: How many lines were lost.
        self.lost_count = 0
        self._open_spans: dict[str, int] = {}
        self._is_file = False
        self._descriptor: int | None = None
        self._size = 0
        # Written before the next line: the header, or a line end after a partial line that could not be removed.
        self._pending = jsonlines.header_line(start)
        self._was_told = False
        try:
            self._open()
        except OSError as error:
            self._tell(error)

    def add_step(self, fields: StepFields, moment: datetime, *, has_end: bool) -> None:
        """Write a step's line with that timestamp."""
        line = jsonlines.step_line(fields, moment, has_end=has_end)
        start = self._write(line)
        if has_end and start is not None:
            self._open_spans[fields.id] = start + len(line) - jsonlines.END_PLACE

    def end_step(self, step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> None:
        """Write a line for the end of a step, and its offset into the step's own line."""
        room = self._open_spans.pop(step_id, None)
        if room is None:
            return
        start = self._write(jsonlines.end_line(step_id, duration_ms, metadata, importance), counts=False)
        if start is None or self._descriptor is None or not self._is_file:
            return
        with suppress(OSError):
            try:
                os.lseek(self._descriptor, room, os.SEEK_SET)
                os.write(self._descriptor, b"%*d" % (jsonlines.END_DIGITS, start))
            finally:
                os.lseek(self._descriptor, self._size, os.SEEK_SET)

    def add_snapshot(self, snapshot: StateSnapshot) -> None:
        """Write a snapshot's line."""
        self._write(jsonlines.snapshot_line(snapshot))

    def end(self, ended: Trajectory) -> None:
        """Write the completion, and close the file."""
        self._write(jsonlines.completion_line(ended, lost_steps=self.lost_count), counts=False)
        self._close()
        self._open_spans.clear()

    def leave_to_parent(self) -> None:
        """Stop writing in a forked child: the file belongs to the parent process."""
        self._was_told = False
        self._tell(OSError("the recorder belongs to the process that made it, and this one was forked from it"))
        self._close()

    def read(self, start: Trajectory, ended: Trajectory | None) -> Trajectory:
        """Read the file back; if the target is not a regular file, return a trajectory without steps.

        Raises:
            OSError: the file cannot be read.
            GoldenError: the file now holds another trajectory.
        """
        if not self._is_file:
            return ended or start
        found = read_trajectory(self.path)
        if found.id != start.id:
            raise GoldenError(f"{self.path} is trajectory {found.id} by now, {start.id} is no longer there")
        return found

    def _write(self, line: bytes, *, counts: bool = True) -> int | None:
        """Write one whole line and return the offset where it begins, or None if it is lost."""
        start = self._size + len(self._pending)
        if self._push(self._pending + line):
            self._pending = b""
            return start
        self.lost_count += counts
        return None

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _open(self) -> None:
        with suppress(FileNotFoundError):
            mode = self.path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                self._descriptor = os.open(self.path, _FLAGS)
                self._write(b"", counts=False)
                return
        self._descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".trajectory-")
        self._is_file = True
        try:
            self._write(b"", counts=False)
            Path(name).replace(self.path)
        except OSError:
            self._close()
            Path(name).unlink(missing_ok=True)
            raise

    def _push(self, data: bytes) -> bool:
        descriptor = self._descriptor
        if descriptor is None:
            return False
        done = 0
        try:
            while done < len(data):
                done += os.write(descriptor, data[done:] if done else data)
        except OSError as error:
            self._take_back(done)
            self._tell(error)
            return False
        except BaseException:  # a signal's handler may raise anything
            self._take_back(1)
            raise
        self._size += done
        return True

    def _take_back(self, done: int) -> None:
        """Remove a partial line; if that fails, make the next line begin on its own line."""
        if not done or self._descriptor is None:
            return
        try:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
        except OSError:
            self._pending = b"\n" + self._pending.lstrip(b"\n")

    def _tell(self, error: OSError) -> None:
        if not self._was_told:
            self._was_told = True
            told = error.strerror or str(error)
            _LOG.warning("steps cannot be written and are lost: %s: %s", self.path, told)


class StepIds:
    """Makes step ids and recognizes them again without storing them. Not thread-safe.

    An id is a ULID. Its random part is ten random digits of the recorder and six digits that count its steps.
    """

    __slots__ = ("_made_with", "_numbers", "_random")

    def __init__(self) -> None:
        self._made_with: set[str] = set()
        self.renew()

    def make(self) -> str:
        """Make the next id."""
        # `next` is atomic, so a signal handler that interrupts here gets another number.
        number = next(self._numbers)
        digits = f"{_PAIRS[number >> 20]}{_PAIRS[number >> 10 & 1023]}{_PAIRS[number & 1023]}"
        return f"{_ID_PREFIX}{millisecond_digits()}{self._random}{digits}"

    def knows(self, step_id: object) -> bool:
        """Tell whether this object made the id."""
        is_id = isinstance(step_id, str) and len(step_id) == _ID_LENGTH and step_id.startswith(_ID_PREFIX)
        return is_id and step_id[_RANDOM_PART] in self._made_with  # type: ignore[index]  # it is text

    def renew(self) -> None:
        """Continue with another random part, so that a forked process and its parent never make the same id."""
        self._random = random_digits(10)
        self._made_with.add(self._random)
        self._numbers = itertools.count()
