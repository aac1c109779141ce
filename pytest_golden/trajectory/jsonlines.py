"""Write and read trajectories as JSON Lines, as streams: a header, steps, snapshots, and a completion.

The key `record` says what a line is. If a step's end was recorded later, its line holds `end_offset`, the file offset of a `step_end` line, so that a
reader that goes step by step gets the whole step. A torn file gives its whole records and an open trajectory.
"""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.storage.folder import replace_file
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import StateSnapshot, Step
from pytest_golden.values.json_form import FrozenDict, FrozenList, json_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from os import PathLike

    from pytest_golden.trajectory.vocabulary import Importance, StepType

_LOG = logging.getLogger(__name__)
_HEADER, _STEP, _SNAPSHOT, _COMPLETION, _STEP_END = "trajectory", "step", "snapshot", "completion", "step_end"
_HEADER_START = b'{"record": "trajectory"'
_STEP_START = b'{"record": "step", '
# No record is longer, so other files need not fit into memory.
_LONGEST_LINE = 64 << 20
_TOO_LONG = b"too long\n"
END_DIGITS = 16
#: Where the number of `end_offset` begins, counted back from the end of the line.
END_PLACE = END_DIGITS + 2
_ROOM_FOR_END = f', "end_offset": {0:{END_DIGITS}}'
_CONTAINERS = frozenset({dict, list, FrozenDict, FrozenList})
_TEXT = frozenset({str})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_ENCODE = json.JSONEncoder(allow_nan=False).encode


def write_trajectory(path: str | PathLike[str], trajectory: Trajectory) -> None:
    """Write a trajectory; the file is replaced atomically, so that a reader never sees half of it."""
    with replace_file(Path(path)) as file:
        file.writelines(line.decode("ascii") for line in dump_lines(trajectory))


def read_trajectory(path: str | PathLike[str]) -> Trajectory:
    """Read a trajectory; torn or invalid records are left out, and a warning is logged.

    Raises:
        OSError: the file cannot be read.
        GoldenError: it is not a trajectory, or a newer program wrote it.
    """
    reading = _Reading(Path(path))
    for record in _read_records(Path(path)):
        reading.add(record)
    return reading.finish()


def read_outline(path: str | PathLike[str]) -> tuple[Trajectory, int, int]:
    """Return a trajectory without its steps and snapshots, and how many of each the file has; in constant memory.

    Raises:
        OSError: the file cannot be read.
        GoldenError: it is not a trajectory, or a newer program wrote it.
    """
    reading = _Reading(Path(path))
    counts = dict.fromkeys((_STEP, _SNAPSHOT), 0)
    for record in _read_records(Path(path), outline=True):
        if record is not None and record["record"] in counts:
            counts[record["record"]] += 1
            reading.forget_completion()
        else:
            reading.add(record)
    return reading.finish(), counts[_STEP], counts[_SNAPSHOT]


def iter_steps(path: str | PathLike[str]) -> Iterator[Step]:
    """Yield the steps one by one without holding the others; the file is opened when the first one is requested.

    Raises:
        OSError: the file cannot be read.
        GoldenError: it is not a trajectory.
    """
    for record in _read_records(Path(path)):
        if record is not None and record["record"] == _STEP:
            step = _parse_step(record)
            if step is not None:
                yield step


def iter_snapshots(path: str | PathLike[str]) -> Iterator[StateSnapshot]:
    """Yield the snapshots in the same way, and raise the same errors."""
    for record in _read_records(Path(path)):
        if record is not None and record["record"] == _SNAPSHOT:
            with suppress(ValueError):
                yield StateSnapshot.from_dict(record)


def dump_lines(trajectory: Trajectory) -> Iterator[bytes]:
    """Yield the lines that `write_trajectory` writes, in ASCII, each with its line end."""
    yield header_line(trajectory)
    for step in trajectory.steps:
        yield _line(_STEP, step.to_dict())
    yield from map(snapshot_line, trajectory.state_snapshots)
    if trajectory.completed_at is not None:
        yield completion_line(trajectory)


def header_line(trajectory: Trajectory) -> bytes:
    """Return the first line of a file."""
    return _line(_HEADER, _pick(trajectory, "schema_version", "id", "started_at", "metadata", "filtered"))


def snapshot_line(snapshot: StateSnapshot) -> bytes:
    """Return the line of a state snapshot."""
    return _line(_SNAPSHOT, snapshot.to_dict())


def completion_line(trajectory: Trajectory, *, lost_steps: int = 0) -> bytes:
    """Return the last line of a completed trajectory; it says how many steps were lost, if any."""
    ending = _pick(trajectory, "completed_at", "duration_ms", "outcome", "error")
    return _line(_COMPLETION, {**ending, "lost_steps": lost_steps} if lost_steps else ending)


def _pick(trajectory: Trajectory, *keys: str) -> dict[str, Any]:
    form = trajectory.without_steps().to_dict()
    return {key: form[key] for key in keys}


def _line(kind: str, fields: Mapping[str, Any]) -> bytes:
    return f"{json.dumps({'record': kind, **fields}, allow_nan=False)}\n".encode("ascii")


class StepFields(NamedTuple):
    """The fields of a step, checked and frozen, without its timestamp."""

    id: str
    type: StepType
    content: Any
    duration_ms: float | None
    metadata: FrozenDict
    context: Any
    importance: Importance
    parent_step_id: str | None


def step_line(fields: StepFields, moment: datetime, *, has_end: bool = False) -> bytes:
    """Return a step's line, the same JSON as `Step.to_dict` but faster; `has_end` reserves space for the offset of its end."""
    step_id, kind, content, duration_ms, metadata, context, importance, parent = fields
    # The same as `iso_utc`, without its check of the time zone.
    when = moment.isoformat(timespec="microseconds")[:-6]
    took = "null" if duration_ms is None else repr(duration_ms)
    above = "null" if parent is None else f'"{parent}"'
    return (
        f'{{"record": "step", "id": "{step_id}", "type": "{kind}", "content": {json_text(content)}, "timestamp": "{when}Z", '
        f'"duration_ms": {took}, "metadata": {json_text(metadata) if metadata else "{}"}, "context": {"null" if context is None else json_text(context)}, '
        f'"importance": "{importance}", "parent_step_id": {above}{_ROOM_FOR_END if has_end else ""}}}\n'
    ).encode("ascii")


def end_line(step_id: str, duration_ms: float, metadata: FrozenDict, importance: Importance | None) -> bytes:
    """Return the line with what is known only at a step's end; None leaves the importance as it is."""
    weight = "null" if importance is None else f'"{importance}"'
    return (
        f'{{"record": "step_end", "id": "{step_id}", "duration_ms": {duration_ms!r}, '
        f'"metadata": {json_text(metadata)}, "importance": {weight}}}\n'
    ).encode("ascii")


def json_text(value: Any) -> str:
    """Return a value as ASCII JSON text, the same as `json.dumps(json_form(value))` but faster."""
    try:
        return _ENCODE(value if _is_flat(value) else json_form(value))
    except ValueError:  # a number that JSON does not have
        return _ENCODE(json_form(value))


def _is_flat(value: Any) -> bool:
    """Tell whether a value is a scalar, or a container of scalars."""
    if type(value) not in _CONTAINERS:
        return type(value) in _SCALARS
    if isinstance(value, dict):
        return _TEXT.issuperset(map(type, value)) and _SCALARS.issuperset(map(type, value.values()))
    return _SCALARS.issuperset(map(type, value))


def _read_records(path: Path, *, outline: bool = False) -> Iterator[dict[str, Any] | None]:
    """Yield the record of each line, None for a line that is not a record; the first must be the header unless it is torn.

    With `outline`, a step's record holds only its kind.
    """
    with path.open("rb") as file, ExitStack() as ends:
        ends_file: IO[bytes] | None = None
        for number, line in enumerate(_read_lines(file)):
            record = {"record": _STEP} if outline and line.startswith(_STEP_START) else _parse_record(line)
            if record is not None and record.get("end_offset"):
                ends_file = ends_file or ends.enter_context(path.open("rb"))
                record |= _read_end(ends_file, record)
            if number == 0 and not _is_header(record, line):
                message = f"{path} is not a trajectory: its first line must be a JSON object that starts {_HEADER_START.decode()}"
                raise GoldenError(message)
            yield record


def _read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; an invalid line stands in place of each one that is too long."""
    while line := file.readline(_LONGEST_LINE):
        is_whole = len(line) < _LONGEST_LINE or line.endswith(b"\n")
        yield line if is_whole else _TOO_LONG
        while not is_whole:
            line = file.readline(_LONGEST_LINE)
            is_whole = len(line) < _LONGEST_LINE or line.endswith(b"\n")


def _read_end(file: IO[bytes], step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a step's end changes; empty if the offset does not lead to its end."""
    try:
        file.seek(step["end_offset"])
        end = _parse_record(file.readline(_LONGEST_LINE)) or {}
    except (TypeError, ValueError, OverflowError, OSError):  # some other program wrote the offset
        return {}
    if end.get("record") != _STEP_END or end.get("id") != step.get("id"):
        return {}
    own, added = step.get("metadata"), end.get("metadata")
    told = {**own, **added} if isinstance(own, dict) and isinstance(added, dict) else own
    changed = {"duration_ms": end.get("duration_ms"), "metadata": told}
    return {**changed, "importance": end["importance"]} if end.get("importance") else changed


def _parse_record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("record"), str) else None


def _is_header(record: Mapping[str, Any] | None, line: bytes) -> bool:
    if record is None:
        return _HEADER_START.startswith(line[: len(_HEADER_START)]) and not line.endswith(b"\n")
    return bool(record["record"] == _HEADER)


def _parse_step(record: Mapping[str, Any]) -> Step | None:
    try:
        return Step.from_dict(record)
    except ValueError:
        return None


class _Reading:
    """Builds a trajectory record by record."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trajectory: Trajectory | None = None
        self._header: Mapping[str, Any] = {}
        self._completion: Mapping[str, Any] = {}
        self._lost = 0

    def add(self, record: Mapping[str, Any] | None) -> None:
        kind = None if record is None else record["record"]
        if record is None:
            self._lost += 1
        elif kind == _HEADER:
            self._start(record)
        elif kind == _COMPLETION:
            self._completion = record
        elif kind == _STEP:
            self._keep(self._with_step(record))
        elif kind == _SNAPSHOT:
            self._keep(self._with_snapshot(record))

    def finish(self) -> Trajectory:
        if self._lost:
            _LOG.warning(
                "a trajectory file has torn or wrong lines", extra={"path": str(self._path), "lost": self._lost}
            )
        if self._trajectory is None:
            return Trajectory.new()
        try:
            return self._completed(self._trajectory)
        except ValueError as error:
            raise GoldenError(f"{self._path}: {error}") from None

    def _start(self, record: Mapping[str, Any]) -> None:
        self._header = record
        try:
            self._trajectory = Trajectory.from_dict({**record, "steps": (), "state_snapshots": ()})
        except ValueError as error:
            raise GoldenError(f"{self._path}: {error}") from None

    def _completed(self, trajectory: Trajectory) -> Trajectory:
        parts = {**self._header, **self._completion}
        if self._completion.get("lost_steps"):
            parts["metadata"] = {**trajectory.metadata, "lost_steps": self._completion["lost_steps"]}
        return Trajectory.from_parts(parts, trajectory.steps, trajectory.state_snapshots)

    def forget_completion(self) -> None:
        """Reopen the trajectory, because another record follows its completion."""
        self._completion = {}

    def _keep(self, longer: Trajectory | None) -> None:
        self.forget_completion()
        self._lost += longer is None
        self._trajectory = longer or self._trajectory

    def _with_step(self, record: Mapping[str, Any]) -> Trajectory | None:
        """Add a step; if its parent was lost, it becomes a root."""
        step, trajectory = _parse_step(record), self._trajectory
        if step is None or trajectory is None:
            return None
        if step.parent_step_id is not None and not trajectory.steps.has(step.parent_step_id):
            step = replace(step, parent_step_id=None)
        try:
            return trajectory.with_step(step)
        except ValueError:
            return None

    def _with_snapshot(self, record: Mapping[str, Any]) -> Trajectory | None:
        try:
            snapshot = StateSnapshot.from_dict(record)
            return self._trajectory and self._trajectory.with_snapshot(snapshot)
        except ValueError:
            return None
