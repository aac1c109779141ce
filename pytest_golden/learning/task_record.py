"""What a task of an agent leaves: one value, which is written into a store, or waits in a file beside it until the store takes it."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import StorageError
from pytest_golden.learning import outcomes
from pytest_golden.learning.lessons.lesson_wording import learn_by_rules, word_correction
from pytest_golden.learning.lessons.model import Attempt, LessonSource, Recalled, RecallReason
from pytest_golden.learning.lessons.service import add_lesson, settle
from pytest_golden.learning.lessons.staleness import find_moved_edit, find_packages
from pytest_golden.learning.lessons.store import find_lesson, put_recall
from pytest_golden.learning.memories import draft_memory
from pytest_golden.learning.store import put_memories
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.folder import flush, make_folder
from pytest_golden.trajectory.step import error_text
from pytest_golden.values.shape import Shape, VersionedShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
_MOST_OF_TASK = 1_000
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ShownLesson(Shape):
    """A lesson that an agent was shown, for an error by its signature or for the task; `passed` is what came next, None if nothing did."""

    lesson_id: str
    score: float
    signature: str | None
    passed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord(VersionedShape):
    """A task that is done: what was tried, what a person said against it, and the lessons that were shown, each once.

    `root` is the folder that was worked in. With `lessons_wait` its lessons are shown only after a person has approved them, and
    without `teaches` there are none.
    """

    agent: str
    description: str
    files: tuple[str, ...]
    tools: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    corrections: tuple[str, ...]
    shown: tuple[ShownLesson, ...]
    success: bool
    note: str
    seconds: float
    at: datetime
    root: str
    project: str | None
    lessons_wait: bool
    teaches: bool


def write_task(connection: Connection, record: TaskRecord) -> None:
    """Write what a task leaves: its outcome, plan and lessons, and what became of the lessons that were shown."""
    errors = [one.error_message for one in record.attempts if one.error_message]
    outcome = outcomes.make_outcome(
        outcomes.Report(
            record.description,
            {"status": "success" if record.success else "failed", "note": record.note},
            record.success,
            tuple(one.tool for one in record.attempts),
            record.agent,
            record.seconds,
            None if record.success else record.note or next(iter(errors[::-1]), None),
            {"files": list(record.files), "tools": list(record.tools)},
        )
    )
    written = [*outcomes.write_outcome(outcome)]
    if record.attempts:
        plan = outcomes.extract_plan_by_rules(outcome)
        written += outcomes.write_plan(plan, outcome)
        written += outcomes.write_training_example(outcome, plan) if record.success else ()
    put_memories(connection, [draft_memory(**memory) for memory in written], to_ms(record.at))
    if record.teaches:
        for skill in _find_lessons(record, outcome.outcome_id):
            add_lesson(connection, skill, record.agent, to_ms(record.at))
    for shown in record.shown:
        _settle(connection, shown, record)


def _find_lessons(record: TaskRecord, outcome_id: str) -> Iterator[SkillMemory]:
    where: dict[str, Any] = {
        "files": list(record.files),
        "task": record.description[:_MOST_OF_TASK],
        "outcome": outcome_id,
    }
    where |= {} if record.project is None else {"project": record.project}
    waits: dict[str, Any] = {}
    if record.lessons_wait:
        waits = {"source": LessonSource.AGENT, "proposed_by": record.agent, "approved": False}
    for skill in learn_by_rules(record.attempts, record.description):
        yield skill.replace(evidence={**skill.evidence, **where, **_find_ground(skill, record.root)}, **waits)
    for said in record.corrections:
        corrected = word_correction(said, record.description, record.agent)
        if corrected is not None:
            yield corrected.replace(evidence=where)


def _find_ground(skill: SkillMemory, folder: str) -> dict[str, Any]:
    """Return what a lesson rests on in the folder. Only what is there now can be seen to change."""
    root, error = Path(folder), skill.evidence.get("error")
    packages = find_packages(error, root) if error else {}
    is_there = "edits" in skill.evidence and not find_moved_edit(skill.evidence["edits"], root)
    return ({"packages": packages} if packages else {}) | ({"workspace": folder} if is_there or packages else {})


def _settle(connection: Connection, shown: ShownLesson, record: TaskRecord) -> None:
    kept = find_lesson(connection, shown.lesson_id)
    if kept is None:
        return
    reason = RecallReason.WORDS if shown.signature is None else RecallReason.SIGNATURE
    recalled = Recalled(kept.skill, shown.score, reason)
    recall = put_recall(connection, kept, recalled, to_ms(record.at), project=record.project)
    if shown.passed is not None:
        settle(connection, recall, record.at, passed=shown.passed)


class Spool:
    """Records that wait beside a store's file, redacted, a line each. Processes may share it: who may write to the store takes them in."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}.tasks.jsonl")
        self._taken = store.with_name(f"{store.name}.tasks.taken.jsonl")

    def put(self, records: Iterable[TaskRecord]) -> None:
        """Append records.

        Raises:
            OSError: the file cannot be written, or has 64 MiB already.
        """
        make_folder(self._path.parent)
        lines = "".join(f"{json.dumps(redact(record.to_dict()))}\n" for record in records)
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if file.tell() + len(lines) > _MOST_BYTES:
                raise OSError("too many tasks wait for the store")
            file.write(lines)
        flush(self._path)

    def take_in(self, store: Store) -> int:
        """Write into the store what waits, and return how many records; one that cannot be written is dropped, and logged.

        Raises:
            OSError: a file cannot be read or renamed; nothing is lost.
            StorageError: the store takes nothing; nothing is lost.
        """
        if not self._path.exists() and not self._taken.exists():
            return 0
        count = 0
        # While this process may write, no other takes anything in.
        with store.write() as connection:
            self._claim()
            for record in self._read():
                try:
                    with connection.begin_nested():
                        write_task(connection, record)
                except StorageError:
                    raise
                except Exception as problem:
                    _log.warning("what an agent did cannot be kept: %s", redact(error_text(problem)))
                count += 1
        self._taken.unlink(missing_ok=True)
        return count

    def _claim(self) -> None:
        if self._taken.exists() and self._path.exists():
            # Another process ended in between.
            with self._taken.open("ab") as file:
                file.write(b"\n" + self._path.read_bytes())
            self._path.unlink()
        elif self._path.exists():
            self._path.replace(self._taken)

    def _read(self) -> Iterator[TaskRecord]:
        text = self._taken.read_text(encoding="utf-8", errors="replace") if self._taken.exists() else ""
        for line in filter(None, text.split("\n")):
            try:
                yield TaskRecord.from_dict(json.loads(line))
            except (ValueError, RecursionError) as problem:
                # Half a line: the process was killed while it wrote, or the disk was full.
                _log.warning("a task that waited for the store cannot be read: %s", redact(str(problem)))
