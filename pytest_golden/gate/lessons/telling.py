"""What is shown of a lesson and of a break: a line or two each, for people. Pure text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.lessons.changes_told import join
from pytest_golden.learning.lessons.model import LessonKind
from pytest_golden.storage.moments import from_ms

if TYPE_CHECKING:
    from pytest_golden.gate.commits import Commit
    from pytest_golden.gate.lessons.breaks import BrokeBefore
    from pytest_golden.learning.lessons.model import SkillMemory

_SHORT = 7
_LONGEST_SUBJECT, _MOST_OF_LESSON = 72, 300
_MOST_SUBJECTS = 3


def tell_lesson(skill: SkillMemory, project: str | None = None, committed: Commit | None = None) -> tuple[str, ...]:
    """Tell a lesson in a line, and what fixed it in another where it is known.

    `project` is the one at hand, `committed` the commit that an edit was put into later.
    """
    fix = tell_fix(skill, project, committed)
    told = _cut(_without_the_known(skill) if fix else skill.lesson, _MOST_OF_LESSON)
    waits = "" if skill.approved else " (not approved yet)"
    return (f"lesson: {told}{waits}", *([f"  {fix}"] if fix else []))


def tell_fix(skill: SkillMemory, project: str | None = None, committed: Commit | None = None) -> str | None:
    """Tell which commit or edit ended the failure that taught a lesson; None where that is not known."""
    if skill.kind != LessonKind.PROJECT_FIX:
        return None
    evidence = skill.evidence
    other = evidence.get("project")
    where = f" in {other}" if project is not None and isinstance(other, str) and other != project else ""
    files = _name_files(_list(evidence, "files"))
    edited = _list(evidence, "edited")
    commits = [one for one in _list(evidence, "commits") if isinstance(one, Mapping)]
    if committed is not None and not commits:
        commits = [{"commit": committed.id, "subject": committed.subject}]
    elif commits and edited:
        files = f", or by an edit{files}"
    inputs = [str(one) for one in _list(evidence, "inputs")]
    besides = f"; besides, {join(inputs)}" if inputs else ""
    if commits:
        return f"fixed by {_tell_commits(commits, evidence)}{files}{where}{besides}"
    at = str(evidence.get("passed_commit") or "")[:_SHORT]
    if edited:
        return f"fixed by an edit on {at} that was not committed{files}{where}{besides}"
    return f"fixed at {at}, by no commit{_name_files(inputs)}{where}" if at else None


def tell_broken(broke: BrokeBefore) -> str:
    """Tell that a project broke when these files changed before, and how often, in one line."""
    times = "once" if broke.count == 1 else f"{broke.count} times"
    of_all = f" (of {broke.break_count} breaks)" if broke.break_count > broke.count else ""
    last = broke.last
    by = _tell_commits(last.commits, {"commit_range": last.commit_range}) if last.commits else "an edit"
    return (
        f"{broke.project}: broke {times}{of_all} when {join(broke.files)} changed,"
        f" last on {from_ms(last.at):%Y-%m-%d} by {by}"
    )


def _tell_commits(commits: Sequence[Mapping[str, Any]], evidence: Mapping[str, Any]) -> str:
    subjects = [f"'{_cut(str(one.get('subject', '')), _LONGEST_SUBJECT)}'" for one in commits[:_MOST_SUBJECTS]]
    if len(commits) == 1:
        count = evidence.get("commit_count")
        of_all = f", the one of {count} commits in its folder" if isinstance(count, int) and count > 1 else ""
        return f"{str(commits[0].get('commit'))[:_SHORT]}{of_all}: {subjects[0]}"
    more = f", +{len(commits) - len(subjects)} more" if len(commits) > len(subjects) else ""
    return f"one of {len(commits)} commits {evidence.get('commit_range')}: {', '.join(subjects)}{more}"


def _without_the_known(skill: SkillMemory) -> str:
    """Leave out the commit's subject, which the line about the commit has, and the failure, which the reader has before him."""
    told = skill.lesson.removesuffix(f", after: {skill.what_failed}")
    return told.partition(': "')[0] if told.endswith('"') else told


def _name_files(files: Sequence[Any]) -> str:
    return f" ({join([str(file) for file in files])})" if files else ""


def _list(evidence: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = evidence.get(key)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
