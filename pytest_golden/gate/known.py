"""What earlier runs know about a failure: what changed since the last pass, whether it was seen before, and lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.fix_wording import tell_lesson
from pytest_golden.history.changes import describe_parting, find_changes
from pytest_golden.history.checkout import find_commit_of
from pytest_golden.history.past_store import find_last_pass
from pytest_golden.learning.lessons.model import Recalled
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.seen_before import find_seen_before
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.store import find_trajectory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.history.changes import ChangedSincePass, Present
    from pytest_golden.history.checkout import Commit
    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.seen_before import SeenBefore
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.storage.store import Store

_MOST_LESSONS = 3
_GIT_SECONDS = 1.0
_MOST_SEEN = 3


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
    # If no lesson knows the message, one may know what else was printed.
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
    """Return the commit that contains the edit that taught a lesson; None if it was no edit, or is not committed."""
    blobs = skill.evidence.get("blobs")
    if root is None or not isinstance(blobs, dict) or skill.evidence.get("commits"):
        return None
    return find_commit_of(root, str(skill.evidence.get("passed_commit")), blobs, longest_seconds=_GIT_SECONDS)


def _as_known(recalled: Recalled, project: str, root: Path | None) -> dict[str, Any]:
    lines = tell_lesson(recalled.lesson, project, find_committed(root, recalled.lesson))
    return {"kind": "lesson", "lines": list(lines), **recalled.to_dict()}


def find_changed(connection: Connection, result: GoldenProjectResult, present: Present) -> ChangedSincePass | None:
    """Compare a failed run with its project's last pass; None when it never passed."""
    past = find_last_pass(connection, result.name)
    if past is None:
        return None
    return find_changes(past, present, _find_parting(connection, past.result.trajectory_id, result))


def find_seen(connection: Connection, result: GoldenProjectResult) -> tuple[SeenBefore, ...]:
    """Find the same failure in earlier runs, in the same project first."""
    return find_seen_before(connection, result.error_message or "", prefer=result.name, limit=_MOST_SEEN)


def _find_parting(connection: Connection, good_id: str | None, result: GoldenProjectResult) -> str | None:
    plain: dict[str, Any] = {**(result.trajectory or {}), "steps": result.steps}
    good = None if good_id is None or not result.steps else find_trajectory(connection, good_id)
    return None if good is None else describe_parting(good, Trajectory.from_dict(plain))
