"""Warnings before a run: which golden projects broke when these files changed before, and what fixed them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.fix_wording import tell_broken, tell_lesson
from pytest_golden.gate.fixes import BREAKS, Break, find_broken
from pytest_golden.gate.known import find_committed
from pytest_golden.history.checkout import list_files_since
from pytest_golden.learning.lessons.model import RecallReason
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.store import find_by_keys, list_keys
from pytest_golden.storage.columns import from_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.gate.fixes import BrokeBefore
    from pytest_golden.history.checkout import Commit
    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.storage.store import Store

_MOST_BREAKS = 2_000
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Forewarned:
    """A project that broke before, and the lesson of how that ended, where there is one."""

    broke: BrokeBefore
    lesson: SkillMemory | None
    committed: Commit | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what is told to people, the first line naming the project."""
        lesson = () if self.lesson is None else tell_lesson(self.lesson, self.broke.project, self.committed)
        error = " ".join(self.broke.last.error.split())
        return (tell_broken(self.broke), f"  {error}", *(f"  {line}" for line in lesson))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        last = asdict(self.broke.last)
        last |= {"at": iso_utc(from_ms(self.broke.last.at)), "commits": [dict(one) for one in self.broke.last.commits]}
        return {
            "project": self.broke.project,
            "count": self.broke.count,
            "break_count": self.broke.break_count,
            "files": list(self.broke.files),
            "last_broken": {**last, "files": list(last["files"]), "inside": list(last["inside"])},
            "lesson": None if self.lesson is None else self.lesson.to_dict(),
            "lines": list(self.lines),
        }


@dataclass(frozen=True, slots=True)
class Foresight:
    """The files that differ from a ref, and the projects that broke when some of them changed before."""

    ref: str
    files: tuple[str, ...]
    projects: tuple[Forewarned, ...]

    def tell(self, most: int = _MOST_TOLD) -> tuple[str, ...]:
        """Return the lines for a gate's header: the first few projects with their lessons; nothing if none is known."""
        lines = [line for one in self.projects[:most] for line in one.lines]
        more = len(self.projects) - most
        return (*lines, *([f"{more} more broke before: `golden recall --diff {self.ref}`"] if more > 0 else []))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {"diff": self.ref, "files": list(self.files), "projects": [one.to_dict() for one in self.projects]}


def foresee(store: Store, folder: Path, ref: str, *, projects: Collection[str] | None = None) -> Foresight:
    """Tell what the changes since a ref have broken before.

    Args:
        store: where breaks and lessons are.
        folder: a folder in the checkout.
        ref: a branch, a tag or a commit; the changes since this branch left it count, with edits.
        projects: consider only these.

    Raises:
        GoldenError: outside git, or a ref that is not there; the message says what to fetch.
        StorageError: the store cannot be read.
    """
    files = list_files_since(folder, ref)
    with store.read() as connection:
        breaks = [one for one in _list_breaks(connection) if projects is None or one.project in projects]
        broken = find_broken(breaks, frozenset(files))
        found = [(one, _find_lesson(connection, one)) for one in broken]
    warned = [
        Forewarned(broke, lesson, None if lesson is None else find_committed(folder, lesson)) for broke, lesson in found
    ]
    return Foresight(ref, files, tuple(warned))


def _list_breaks(connection: Connection) -> Iterator[Break]:
    """Return the newest breaks in their order; what is none is passed over."""
    keys = list_keys(connection, BREAKS)[-_MOST_BREAKS:]
    for memory in sorted(find_by_keys(connection, BREAKS, keys), key=lambda memory: memory.key):
        try:
            yield Break.from_value(memory.value)
        except (KeyError, TypeError, ValueError):
            continue


def _find_lesson(connection: Connection, broke: BrokeBefore) -> SkillMemory | None:
    found = recall_lessons(connection, broke.last.error, project=broke.project, limit=3)
    own = (skill for skill, *_ in found if skill.evidence.get("project") == broke.project)
    # Projects that one commit has fixed together share a lesson, which names the first of them.
    return next(own, next((skill for skill, _, why in found if why is RecallReason.SIGNATURE), None))
