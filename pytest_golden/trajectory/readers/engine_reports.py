"""What the step readers of engines share: reading the reports that an engine leaves, or what it prints. A reader that fails costs its steps and a warning."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.storage.folder import open_regular
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from pytest_golden.trajectory.vocabulary import Importance, check_duration
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import StepReader, ViewFiles

_LOG = logging.getLogger(__name__)
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_MOST_WORDS = 40


def read_all(readers: Iterable[StepReader], view: ViewFiles, outcome: Any) -> tuple[StepReading, ...]:
    """Return one reading for each reader, in their order; never raises for what a reader does."""
    return tuple(_read_one(reader, view, outcome) for reader in readers)


def _read_one(reader: StepReader, view: ViewFiles, outcome: Any) -> StepReading:
    name = getattr(reader, "name", type(reader).__name__)
    try:
        reading: object = reader.read(view, outcome)
    except Exception as error:  # a plugged-in reader may raise anything
        # Without its traceback, which may quote unredacted output of the pipeline.
        _LOG.warning("a step reader failed", extra={"reader": name, "error": type(error).__name__})
        return StepReading(
            warnings=(f"step reader {name} failed, its steps are lost: {type(error).__name__}: {error}",)
        )
    if isinstance(reading, StepReading):
        return reading
    return StepReading(warnings=(f"step reader {name} returned {type(reading).__name__} instead of a StepReading",))


class ReportReader(NamedTuple):
    """Reads each report of one engine that this run wrote; an old one that it left unchanged is not this run's.

    `load` reads a file, as JSON if it is None; `parse` gives None for each part of a report that is not usable; `title` and `unusable` are for warnings.
    """

    name: str
    path: re.Pattern[str]
    parse: Callable[[Any], list[StepDraft | None]]
    title: str
    unusable: str
    load: Callable[[Path], Any] | None = None

    def read(self, view: ViewFiles, outcome: Any) -> StepReading:
        """Return the steps of all reports, by the paths of these."""
        drafts: list[StepDraft | None] = []
        warnings = []
        for relative in filter(self.path.search, sorted({*outcome.write_set.created, *outcome.write_set.changed})):
            path = view.find_file(relative)
            try:
                drafts += [] if path is None else self.parse((self.load or _read_json)(path))
            except (OSError, ValueError) as error:
                warnings.append(f"{self.title} {relative} cannot be read: {error}")
        if lost := drafts.count(None):
            warnings.append(f"{lost} {self.unusable}")
        return StepReading(tuple(draft for draft in drafts if draft is not None), lost, tuple(warnings))


def read_text(path: Path) -> str:
    """Read a file of at most 64 MiB. The pipeline that wrote it is not trusted.

    Raises:
        OSError: it cannot be read.
        ValueError: it is larger.
    """
    with open_regular(path) as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
    return content.decode("utf-8", "replace")


def _read_json(path: Path) -> Any:
    """Read one JSON document; NaN and infinities become text."""
    try:
        return json.loads(read_text(path), parse_constant=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def scalar_of(given: Any) -> Any:
    """Return a text or a number; None for anything else."""
    return given if isinstance(given, (str, int, float)) else None


def member_of(given: Any, key: str) -> Mapping[str, Any]:
    """Return the object under a key; an empty one if there is none."""
    return as_mapping(as_mapping(given).get(key))


def list_of(given: Any, key: str) -> list[Any]:
    """Return the list under a key; an empty one if there is none."""
    value = as_mapping(given).get(key)
    return value if isinstance(value, list) else []


def milliseconds_of(seconds: Any) -> float | None:
    """Return seconds as milliseconds; None if they are not usable numbers."""
    try:
        return check_duration("duration", seconds * 1000)
    except (TypeError, ValueError):
        return None


class OutputReader(NamedTuple):
    """Reads what one engine printed. `parse` gets standard output and standard error."""

    name: str
    parse: Callable[[str, str], Iterable[StepDraft]]

    def read(self, _: ViewFiles, outcome: Any) -> StepReading:
        """Return the steps that the printed lines tell of."""
        steps = tuple(self.parse(outcome.stdout, outcome.stderr))
        is_cut = any(
            getattr(outcome, f"{stream}_bytes", 0) > len(getattr(outcome, stream).encode("utf-8", "replace"))
            for stream in ("stdout", "stderr")
        )
        warning = f"{self.name} printed more than is kept: tasks in the middle may be missing from the steps"
        return StepReading(steps, warnings=(warning,) if is_cut else ())


@dataclass(slots=True)
class _Task:
    name: str
    began: datetime | None
    facts: dict[str, Any]
    status: str = "unfinished"
    duration_ms: float | None = None
    error: str | None = None


@dataclass(slots=True)
class Tasks:
    """The tasks of one run, put together from lines that tell of their beginning and their end. `reader` is the engine's name."""

    reader: str
    _tasks: dict[str, _Task] = field(default_factory=dict)

    def begin(self, key: str, name: str, at: datetime | None = None, **facts: Any) -> None:
        """Note that a task began; one that begins again is tried again."""
        self._tasks[key] = _Task(name, at, facts)

    def end(
        self,
        key: str,
        at: datetime | None = None,
        *,
        status: str = "success",
        duration_ms: float | None = None,
        error: str | None = None,
    ) -> None:
        """Note how a task ended. One whose beginning is unknown has its key for a name."""
        task = self._tasks.setdefault(key, _Task(key, None, {}))
        if task.error is not None and error is None:
            return
        task.status, task.error = ("failed", error) if error is not None else (status, None)
        if duration_ms is None and at is not None and task.began is not None:
            duration_ms = milliseconds_of((at - task.began).total_seconds())
        task.duration_ms = task.duration_ms if duration_ms is None else duration_ms

    def fail(self, key: str, words: Iterable[str], at: datetime | None = None) -> None:
        """Note that a task failed, with the lines that it printed. The cause is searched in them, below the first line."""
        self.end(key, at, error="\n".join(["the task failed", *list(words)[-_MOST_WORDS:]]))

    def add_fact(self, key: str, **facts: Any) -> None:
        """Add to what is known of a task that began."""
        if key in self._tasks:
            self._tasks[key].facts.update(facts)

    def drafts(self) -> Iterator[StepDraft]:
        """Yield the tasks as steps, in the order of their beginning."""
        for task in self._tasks.values():
            facts = {"reader": self.reader, "status": task.status, **task.facts}
            yield StepDraft(
                content=task.name,
                importance=Importance.MEDIUM if task.error is None else Importance.CRITICAL,
                duration_ms=task.duration_ms,
                timestamp=task.began,
                metadata=facts if task.error is None else {**facts, "error": task.error},
            )
