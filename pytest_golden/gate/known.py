"""What earlier runs know about a failure and, before a run, about the projects that broke when the same files changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.fix_wording import tell_broken, tell_lesson
from pytest_golden.gate.fixes import BREAKS, Break, BrokeBefore, find_broken
from pytest_golden.history.changes import describe_parting, find_changes
from pytest_golden.history.checkout import Commit, find_commit_of, list_files_since
from pytest_golden.history.past_store import find_last_pass
from pytest_golden.learning.lessons.model import Recalled, RecallReason, SkillMemory
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.store import find_by_keys, list_keys
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.store import find_trajectory
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.history.changes import ChangedSincePass, Present
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.storage.store import Store

_MOST_LESSONS = 3
_GIT_SECONDS = 1.0
_MOST_BREAKS = 2_000
_MOST_TOLD = 3


def find_known_lessons(
    store: Store, result: GoldenProjectResult, entry_id: str, *, keeps: bool, root: Path | None = None
) -> tuple[dict[str, Any], ...]:
    """Return what lessons say of a failure: `{kind, lines, recall_id, lesson, score, why}` each, the lines for people.

    Args:
        store: where lessons are.
        result: the failure.
        entry_id: its entry.
        root: the checkout's top folder, to find the commit that an edit was put into.
        keeps: keep that they were shown. Without it, and where the store takes nothing, `recall_id` is empty.

    Raises:
        StorageError: the store cannot be read.
    """
    if not (result.error_message or "").strip():
        return ()
    # If no lesson matches the message, one may match other output.
    for text in (result.error_message, result.output_summary):
        recalled = _recall(store, text or "", result.name, entry_id, root, keeps=keeps)
        if recalled:
            told = ((one, _tell_recalled(one, result.name, root)) for one in recalled)
            return tuple({"kind": "lesson", "lines": list(lines), **one.to_dict()} for one, lines in told)
    return ()


def _recall(
    store: Store, text: str, project: str, entry_id: str, root: Path | None, *, keeps: bool
) -> Sequence[Recalled]:
    if keeps:
        return Lessons(store).recall(text, project=project, limit=_MOST_LESSONS, entry_id=entry_id, root=root)
    with store.read() as connection:
        return recall_lessons(connection, text, project=project, limit=_MOST_LESSONS, root=root)


def _tell_recalled(recalled: Recalled, project: str, root: Path | None) -> tuple[str, ...]:
    told = tell_lesson(recalled.lesson, project, find_committed(root, recalled.lesson))
    return (*told, f"stale: {recalled.stale}") if recalled.stale else told


def find_committed(root: Path | None, skill: SkillMemory) -> Commit | None:
    """Return the commit that contains the edit behind a lesson; None if there was no edit, or it is not committed."""
    blobs = skill.evidence.get("blobs")
    if root is None or not isinstance(blobs, dict) or skill.evidence.get("commits"):
        return None
    return find_commit_of(root, str(skill.evidence.get("passed_commit")), blobs, longest_seconds=_GIT_SECONDS)


def find_changed(connection: Connection, result: GoldenProjectResult, present: Present) -> ChangedSincePass | None:
    """Compare a failed run with its project's last pass; None if it never passed."""
    past = find_last_pass(connection, result.name)
    if past is None:
        return None
    good_id = past.result.trajectory_id
    is_part = past.result.is_narrowed or result.is_narrowed
    good = None if good_id is None or is_part or not result.steps else find_trajectory(connection, good_id)
    if good is None:
        return find_changes(past, present)
    plain: dict[str, Any] = {**(result.trajectory or {}), "steps": result.steps}
    return find_changes(past, present, describe_parting(good, Trajectory.from_dict(plain)))


@dataclass(frozen=True, slots=True)
class Forewarned(Shape):
    """A project that broke before, and the lesson of how that was fixed, if there is one."""

    broke: BrokeBefore = field(metadata=form(merged=True))
    lesson: SkillMemory | None
    committed: Commit | None = field(default=None, metadata=form(hidden=True))

    @property
    @in_form()
    def lines(self) -> tuple[str, ...]:
        """Return the lines that are shown to people; the first one names the project."""
        lesson = () if self.lesson is None else tell_lesson(self.lesson, self.broke.project, self.committed)
        error = " ".join(self.broke.last.error.split())
        return (tell_broken(self.broke), f"  {error}", *(f"  {line}" for line in lesson))


@dataclass(frozen=True, slots=True)
class Foresight(Shape):
    """The files that differ from a ref, and the projects that broke when some of them changed before."""

    ref: str = field(metadata=form(key="diff"))
    files: tuple[str, ...]
    projects: tuple[Forewarned, ...]

    def tell(self, most: int = _MOST_TOLD) -> tuple[str, ...]:
        """Return the lines for a gate's header: the first few projects with their lessons; nothing if none is known."""
        lines = [line for one in self.projects[:most] for line in one.lines]
        more = len(self.projects) - most
        return (*lines, *([f"{more} more broke before: `golden recall --diff {self.ref}`"] if more > 0 else []))


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
        found = [(one, _find_lesson(connection, one)) for one in find_broken(breaks, frozenset(files))]
    warned = (
        Forewarned(broke, skill, None if skill is None else find_committed(folder, skill)) for broke, skill in found
    )
    return Foresight(ref, files, tuple(warned))


def _list_breaks(connection: Connection) -> Iterator[Break]:
    """Return the newest breaks in their order; skip damaged ones."""
    keys = list_keys(connection, BREAKS)[-_MOST_BREAKS:]
    for memory in sorted(find_by_keys(connection, BREAKS, keys), key=lambda memory: memory.key):
        try:
            yield Break.from_dict(memory.value)
        except (KeyError, TypeError, ValueError):
            continue


def _find_lesson(connection: Connection, broke: BrokeBefore) -> SkillMemory | None:
    found = recall_lessons(connection, broke.last.error, project=broke.project, limit=3)
    own = (one.lesson for one in found if one.lesson.evidence.get("project") == broke.project)
    # Projects that one commit fixed together share a lesson, which names the first of them.
    return next(own, next((one.lesson for one in found if one.why is RecallReason.SIGNATURE), None))
