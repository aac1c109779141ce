"""Learn from fixes that are older than the store: run golden projects before and after a commit that says it mends something."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.clock import monotonic_seconds, new_id, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate.fix_wording import word_fix
from pytest_golden.gate.fixes import Clone, Point, State, choose_files
from pytest_golden.history.checkout import Checkout
from pytest_golden.history.suspects import Fix, is_test_file, list_fixes
from pytest_golden.learning.gate_learning import GATE_AGENT, find_reason
from pytest_golden.learning.lessons.service import add_lesson
from pytest_golden.learning.lessons.store import find_lesson
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.columns import to_ms
from pytest_golden.verify.failures import identify_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.learning.lessons.model import LessonVerdict, SkillMemory
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.storage.store import Store
    from pytest_golden.verify.past_commits import PastCommits

_SHORT, _GIT_SECONDS = 12, 60
# The least with which a lesson is shown: one that a gate has lived through is surer.
_CONFIDENCE = 0.7
_RECORDED = ("failed_entry", "failed_run", "passed_entry", "passed_run")
# Crockford's letters, as in ULIDs.
_LETTERS, _ID_LENGTH = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26


class HistoryLearning(NamedTuple):
    """What a walk through history taught: how many fixes were found and run, how many of these were known or taught nothing."""

    found: int
    run: int
    known: int
    unnoticed: int
    verdicts: tuple[LessonVerdict, ...]


class HistoryLearner:
    """Runs projects at fixes and at their parents, by the manifest and the baselines of the working tree."""

    def __init__(self, past: PastCommits, checkout: Path, store: Store, say: Callable[[str], None]) -> None:
        self._past = past
        self._checkout = checkout
        self._store = store
        self._say = say
        declared = past.declared
        self._clone = Clone(checkout, declared.workspace_root, longest_seconds=_GIT_SECONDS)
        self._folders = {one.name: self._clone.find_folder(one.to_dict()) for one in declared.projects}
        manifest = os.path.realpath(past.manifest)
        self._manifest = os.path.relpath(manifest, os.path.realpath(checkout))

    def learn(self, since: str, most: int, ends_at: float | None = None) -> HistoryLearning:
        """Learn from the newest fixes since a date, from so many at most; begin none after `ends_at`.

        Raises:
            GoldenError: git cannot list commits.
        """
        told = ((fix, self._list_affected(fix)) for fix in list_fixes(self._checkout, f"--since={since}"))
        fixes = [(fix, projects) for fix, projects in told if projects]
        verdicts: list[LessonVerdict] = []
        ran = known = unnoticed = 0
        for fix, projects in fixes[:most]:
            if ends_at is not None and monotonic_seconds() >= ends_at:
                break
            ran += 1
            self._say(f"{fix.commit[:_SHORT]} {fix.subject}")
            # To learn a lesson once more would be no further support.
            unknown = [project for project in projects if not self._is_known(fix, project)]
            found = [one for project in unknown for one in self._learn_from(fix, project)]
            known += len(unknown) < len(projects)
            unnoticed += len(unknown) == len(projects) and not found
            verdicts += found
        return HistoryLearning(len(fixes), ran, known, unnoticed, tuple(verdicts))

    def _list_affected(self, fix: Fix) -> list[GoldenProjectConfig]:
        """Return the projects in whose folder the fix changed anything but tests, documentation and the manifest."""
        files = [path for path in choose_files(fix.files, self._manifest) if not is_test_file(path)]
        return [
            project
            for project in self._past.declared.projects
            if any(path.startswith(self._folders[project.name]) for path in files)
        ]

    def _is_known(self, fix: Fix, project: GoldenProjectConfig) -> bool:
        with self._store.read() as connection:
            return find_lesson(connection, _name_lesson(fix.commit, project.name)) is not None

    def _learn_from(self, fix: Fix, project: GoldenProjectConfig) -> Iterator[LessonVerdict]:
        try:
            before = self._past.run(fix.parent, project.name)
            if not before.status.is_failure:
                return
            after = self._past.run(fix.commit, project.name)
            if after.status is not ResultStatus.PASSED or not self._fails_again(fix, before):
                return
        except GoldenError as error:
            self._say(f"{project.name} cannot be run: {error}")
            return
        skill = self._word(fix, project, before, after)
        if skill is not None:
            with self._store.write() as connection:
                yield add_lesson(connection, skill, GATE_AGENT, to_ms(utc_now()))

    def _fails_again(self, fix: Fix, before: GoldenProjectResult) -> bool:
        """Tell whether it fails at the parent a second time, and for the same reason: a fix must not get the credit for chance."""
        failure, again = identify_failure(before), identify_failure(self._past.run(fix.parent, before.name))
        return failure is not None and again is not None and not again.is_other_than((failure,))

    def _word(
        self, fix: Fix, project: GoldenProjectConfig, before: GoldenProjectResult, after: GoldenProjectResult
    ) -> SkillMemory | None:
        states = [
            State(Checkout(commit=commit, dirty=False, dirty_files={}), project.to_dict(), {})
            for commit in (fix.parent, fix.commit)
        ]
        difference = self._clone.find_difference(*states)
        failed, passed = (_make_point(commit, result) for commit, result in ((fix.parent, before), (fix.commit, after)))
        skill = (
            None if difference is None or not failed.counts else word_fix(failed, passed, difference, self._manifest)
        )
        if skill is None:
            return None
        evidence = {name: value for name, value in skill.evidence.items() if name not in _RECORDED}
        return skill.replace(
            id=_name_lesson(fix.commit, project.name),
            why=f"from history: it failed before {fix.commit[:_SHORT]} and passed with it, run now by the present floor",
            confidence=_CONFIDENCE,
            evidence={**evidence, "from_history": fix.commit},
        )


def _make_point(commit: str, result: GoldenProjectResult) -> Point:
    """Return a result as the recorded ones are, without an entry."""
    plain = result.to_dict()
    return Point(
        number=0,
        entry_id=new_id("entry"),
        run_id=new_id("entry"),
        project=result.name,
        status=result.status,
        message=find_reason(str(result.status), plain),
        reason_kind=result.reasons[0].kind if result.reasons else None,
        is_flaky=result.is_flaky,
        commit=commit,
        branch=None,
        dirty=False,
        workspace_root="",
        declaration_digest="",
        environment_digest="",
        created_at=to_ms(utc_now()),
    )


def _name_lesson(commit: str, project: str) -> str:
    """Return the id of the lesson of a fix: the same each time."""
    number = int.from_bytes(sha256(f"{commit}\0{project}".encode()).digest())
    return "lesson_" + "".join(_LETTERS[number >> 5 * place & 31] for place in range(_ID_LENGTH))
