"""What a task of an agent leaves: one value, which is written into a store, or waits beside it until the store takes it."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id
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
from pytest_golden.storage.folder import make_folder, replace_file
from pytest_golden.trajectory.step import error_text
from pytest_golden.values.shape import Shape, VersionedShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
_MOST_OF_TASK, _MOST_FILES = 1_000, 1_000
_PREFIX = "task"


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
    """Records that wait in a folder beside a store's file, redacted, a file each time. Whoever may write to the store takes them in."""

    def __init__(self, store: Path) -> None:
        self._folder = store.with_name(f"{store.name}.tasks")

    def put(self, records: Iterable[TaskRecord]) -> None:
        """Put records aside, all or none.

        Raises:
            OSError: they cannot be written, or a thousand files wait already.
        """
        make_folder(self._folder.parent)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if len(self._list()) >= _MOST_FILES:
            raise OSError(f"{_MOST_FILES} files wait in {self._folder} already")
        with replace_file(self._folder / f"{new_id(_PREFIX)}.jsonl") as file:
            file.writelines(f"{json.dumps(redact(record.to_dict()))}\n" for record in records)

    def take_in(self, store: Store) -> int:
        """Write into the store what waits, and return how many records; one that cannot be written is dropped, and logged.

        Raises:
            OSError: a file cannot be read or removed; nothing is lost.
            StorageError: the store takes nothing; nothing is lost.
        """
        if not self._list():
            return 0
        count = 0
        # While this process may write, no other takes anything in.
        with store.write() as connection:
            files = self._list()
            for record in chain.from_iterable(map(_read_records, files)):
                count += _write_apart(connection, record)
        for file in files:
            file.unlink(missing_ok=True)
        with suppress(OSError):
            # Another task may wait already.
            self._folder.rmdir()
        return count

    def _list(self) -> list[Path]:
        return sorted(self._folder.glob(f"{_PREFIX}_*.jsonl"))


def _read_records(file: Path) -> Iterator[TaskRecord]:
    for line in filter(None, file.read_text(encoding="utf-8", errors="replace").split("\n")):
        try:
            yield TaskRecord.from_dict(json.loads(line))
        except (ValueError, RecursionError) as problem:
            _log.warning("a task that waited for the store cannot be read: %s", redact(str(problem)))


def _write_apart(connection: Connection, record: TaskRecord) -> bool:
    """Write a record, and tell whether it is kept: one that no store would take does not stop the others."""
    try:
        with connection.begin_nested():
            write_task(connection, record)
    except StorageError:
        raise
    except Exception as problem:
        _log.warning("what an agent did cannot be kept: %s", redact(error_text(problem)))
        return False
    return True
