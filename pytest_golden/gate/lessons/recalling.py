"""What lessons bear on a failure at hand, as a report has it. That they were shown is kept, so that the next runs can settle it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.commits import find_commit_of
from pytest_golden.gate.lessons.telling import tell_lesson
from pytest_golden.learning.lessons.model import Recalled
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.lessons.service import Lessons

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_golden.gate.commits import Commit
    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.storage.store import Store

_MOST_LESSONS = 3
_GIT_SECONDS = 1.0


def find_known_lessons(
    store: Store, result: GoldenProjectResult, entry_id: str, *, keeps: bool, root: Path | None = None
) -> tuple[dict[str, Any], ...]:
    """Give what lessons say of a failure: `{kind, lines, recall_id, lesson, score, why}` each, the lines for people.

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
    # The message is a line of it; where no lesson knows that, one may know what else was printed.
    for text in (result.error_message, result.output_summary):
        recalled = _recall(store, text or "", result.name, entry_id, keeps=keeps)
        if recalled:
            return tuple(_as_known(one, result.name, root) for one in recalled)
    return ()


def _recall(store: Store, text: str, project: str, entry_id: str, *, keeps: bool) -> Sequence[Recalled]:
    if keeps:
        return Lessons(store).recall(text, project=project, limit=_MOST_LESSONS, entry_id=entry_id)
    with store.read() as connection:
        found = recall_lessons(connection, text, project=project, limit=_MOST_LESSONS)
    return [Recalled(skill, score, why, "") for skill, score, why in found]


def find_committed(root: Path | None, skill: SkillMemory) -> Commit | None:
    """Give the commit that the edit which taught a lesson was put into; None where it was no edit, or is not committed."""
    blobs = skill.evidence.get("blobs")
    if root is None or not isinstance(blobs, dict) or skill.evidence.get("commits"):
        return None
    return find_commit_of(root, str(skill.evidence.get("passed_commit")), blobs, longest_seconds=_GIT_SECONDS)


def _as_known(recalled: Recalled, project: str, root: Path | None) -> dict[str, Any]:
    lines = tell_lesson(recalled.lesson, project, find_committed(root, recalled.lesson))
    return {"kind": "lesson", "lines": list(lines), **recalled.to_dict()}
