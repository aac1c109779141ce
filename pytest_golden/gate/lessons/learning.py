"""Learns after a session from all that was recorded: results, fixes, breaks, what came of lessons, corrections. In a budget.

What was begun is finished; what there was no time for is done by the next session, or by `golden learn`. Git is asked
outside of every transaction.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate.commits import descends, has_commit
from pytest_golden.gate.git import run_git
from pytest_golden.gate.lessons.breaks import Break, make_break
from pytest_golden.gate.lessons.correcting import learn_corrections
from pytest_golden.gate.lessons.difference import Clone
from pytest_golden.gate.lessons.model import DAMAGE
from pytest_golden.gate.lessons.pairing import find_turned, is_chance
from pytest_golden.gate.lessons.settling import settle_project
from pytest_golden.gate.lessons.store import find_point, list_points_before, list_unsettled_projects, read_state
from pytest_golden.gate.lessons.wording import word_fix
from pytest_golden.learning.gate_learning import LearningReport, learn_from_results
from pytest_golden.learning.lessons.adding import add_lesson
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.store import find_lesson
from pytest_golden.learning.results.reading import GATE_AGENT
from pytest_golden.learning.results.turns import list_turns, take_turn
from pytest_golden.learning.store import insert_if_new
from pytest_golden.redaction import redact
from pytest_golden.storage.moments import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pytest_golden.gate.lessons.model import Difference, Point
    from pytest_golden.gate.lessons.pairing import Descends
    from pytest_golden.learning.lessons.model import LessonVerdict
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
GATE_SECONDS = 2.0
# A gate of a second has its results learned from and one change looked at all the same.
LEAST_SECONDS = 0.05
_SHARE = 0.01
# The rest of the budget is for finishing what was begun.
_BEGUN = 0.95
_LONGEST_GIT_SECONDS = 1.0
_MOST_EARLIER = 20
# Whoever has the commits of a turn has looked at it by then.
_LONGEST_WAIT_MS = 7 * 24 * 60 * 60 * 1000


@dataclass(slots=True)
class GateLearning:
    """What was learned: from how many results, which lessons were kept and which refused.

    `breaks` counts the first failures after a pass, `settled` the recalls of which something came, `left` the turns whose
    commits another clone may know. `is_cut_short` tells that the time was over.
    """

    results: LearningReport = field(default_factory=LearningReport)
    verdicts: list[LessonVerdict] = field(default_factory=list)
    breaks: int = 0
    settled: int = 0
    left: int = 0
    is_cut_short: bool = False

    @property
    def is_all(self) -> bool:
        """Tell whether nothing was learned any more and nothing is left that could be."""
        is_idle = not (self.results.learned or self.results.passed_over or self.results.unreadable)
        return is_idle and not (self.results.left or self.verdicts or self.breaks or self.settled or self.is_cut_short)

    def add(self, later: GateLearning) -> None:
        """Add what was learned afterwards; what was left before that is not any more."""
        was, now = self.results, later.results
        self.results = LearningReport(
            was.learned + now.learned,
            was.passed_over + now.passed_over,
            was.unreadable + now.unreadable,
            now.left,
            was.seconds + now.seconds,
        )
        self.verdicts += later.verdicts
        self.breaks += later.breaks
        self.settled += later.settled
        self.left = later.left
        self.is_cut_short = later.is_cut_short

    @property
    def kept(self) -> list[SkillMemory]:
        """Give the lessons that were kept."""
        return [verdict.skill for verdict in self.verdicts if verdict.kept]


def find_budget(run_seconds: float) -> float:
    """Give the seconds for which a gate that ran so long may learn at its end: a hundredth, but for the least and the most."""
    return min(GATE_SECONDS, max(LEAST_SECONDS, run_seconds * _SHARE))


class GateLearner:
    """Learns from a store that stays the caller's, in the checkout that a workspace lies in.

    `manifest` is the path of the manifest, None where there is none. `hide` takes the projects' secrets out of JSON-safe
    values, such as the words of a commit; None when that cannot be told, and nothing is kept of them.
    """

    def __init__(
        self,
        store: Store,
        workspace_root: Path,
        manifest: Path | None,
        *,
        hide: Callable[[dict[str, Any]], dict[str, Any] | None] = redact,
        clock: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._store = store
        self._hide = hide
        self._workspace = workspace_root.resolve()
        self._manifest = manifest
        self._clock = clock
        self._monotonic = monotonic
        self._known_commits: dict[str, bool] = {}
        self._ends_at = 0.0
        self._has_time = False
        # Asked once; the commits of these do not come while it learns.
        self._waiting: set[str] = set()
        self._looked_at: set[str] = set()

    def learn(self, budget_seconds: float = GATE_SECONDS) -> GateLearning:
        """Learn until nothing or no time is left.

        Raises:
            StorageError: the store cannot be read or written; what was learned before stays.
        """
        seconds = budget_seconds * _BEGUN
        self._ends_at = self._monotonic() + seconds
        self._has_time = seconds > 0
        done = GateLearning()
        done.results = learn_from_results(
            self._store, budget_seconds=seconds, clock=self._clock, monotonic=self._monotonic
        )
        self._learn_from_turns(done)
        self._settle(done)
        if not self._is_time_up():
            done.verdicts += learn_corrections(self._store, to_ms(self._clock()))
        with self._store.read() as connection:
            done.left = len(list_turns(connection))
        done.is_cut_short = self._is_time_up()
        return done

    @cached_property
    def _root(self) -> Path | None:
        """The checkout's top folder, which git is asked for when there is something to learn."""
        return _find_root(self._workspace)

    @cached_property
    def _descends(self) -> Descends:
        @cache
        def ask(commit: str, ancestor: str) -> bool:
            if self._root is None:
                return commit == ancestor
            return descends(self._root, commit, ancestor, longest_seconds=_LONGEST_GIT_SECONDS)

        return ask

    def _is_time_up(self, begun: int = 1) -> bool:
        """Tell whether nothing more is begun; the first of its kind always is, so that a row of short gates gets on."""
        return self._monotonic() >= self._ends_at and (begun > 0 or not self._has_time)

    def _learn_from_turns(self, done: GateLearning) -> None:
        with self._store.read() as connection:
            turns = list_turns(connection)
        begun = 0
        for entry_id in turns:
            if entry_id in self._waiting:
                continue
            if self._is_time_up(begun):
                break
            try:
                self._learn_from_turn(entry_id, done)
            except DAMAGE as error:
                # Whatever one row holds, the others are learned from.
                _log.warning("a change cannot be learned from", extra={"entry": entry_id, "error": repr(error)})
                with self._store.write() as connection:
                    take_turn(connection, entry_id)
            begun += entry_id not in self._waiting

    def _learn_from_turn(self, entry_id: str, done: GateLearning) -> None:
        with self._store.read() as connection:
            point = find_point(connection, entry_id)
            earlier = () if point is None else list_points_before(connection, point, _MOST_EARLIER)
        if point is not None and self._must_wait(point):
            self._waiting.add(entry_id)
            return
        taught = None if point is None else self._hidden(self._find_taught(point, earlier))
        with self._store.write() as connection:
            if not take_turn(connection, entry_id) or taught is None:
                return
            moment = to_ms(self._clock())
            if isinstance(taught, Break):
                done.breaks += insert_if_new(connection, taught.to_draft(), moment) is not None
            elif find_lesson(connection, taught.id) is None:
                done.verdicts.append(add_lesson(connection, taught, GATE_AGENT, moment))

    def _must_wait(self, point: Point) -> bool:
        """Tell whether another clone may know the commit that this one does not have."""
        if point.commit is None or self._has_commit(point.commit):
            return False
        return to_ms(self._clock()) - point.created_at < _LONGEST_WAIT_MS

    def _has_commit(self, commit: str) -> bool:
        if commit not in self._known_commits:
            self._known_commits[commit] = self._root is not None and has_commit(self._root, commit)
        return self._known_commits[commit]

    def _find_taught(self, point: Point, earlier: tuple[Point, ...]) -> SkillMemory | Break | None:
        if self._root is None or not point.counts:
            return None
        before = find_turned(point, earlier, self._descends)
        if before is None:
            return None
        difference = self._compare(before, point)
        if difference is None:
            return None
        if not point.has_passed:
            return make_break(point, difference, self._name_manifest())
        if point.is_accepted or is_chance(before, point, earlier):
            return None
        return word_fix(before, point, difference, self._name_manifest())

    def _hidden(self, taught: SkillMemory | Break | None) -> SkillMemory | Break | None:
        """Give what is taught without the projects' secrets."""
        if taught is None:
            return None
        hidden = self._hide(taught.to_dict())
        if hidden is None:
            return None
        return Break.from_value(hidden) if isinstance(taught, Break) else SkillMemory.from_dict(hidden)

    def _compare(self, before: Point, point: Point) -> Difference | None:
        if self._root is None:
            return None
        clone = Clone(self._root, self._workspace, longest_seconds=_LONGEST_GIT_SECONDS)
        with self._store.read() as connection:
            states = read_state(connection, before), read_state(connection, point)
        return clone.find_difference(*states)

    def _name_manifest(self) -> str:
        """Give the manifest's path relative to the checkout's root; empty where it lies elsewhere."""
        if self._manifest is None or self._root is None:
            return ""
        manifest = self._manifest.resolve()
        return manifest.relative_to(self._root).as_posix() if manifest.is_relative_to(self._root) else ""

    def _settle(self, done: GateLearning) -> None:
        if done.results.learned:
            self._looked_at.clear()
        with self._store.read() as connection:
            projects = list_unsettled_projects(connection)
        for place, project in enumerate(one for one in projects if one not in self._looked_at):
            if self._is_time_up(place):
                break
            self._looked_at.add(project)
            try:
                done.settled += settle_project(self._store, project, self._descends, self._clock())
            except DAMAGE as error:
                _log.warning("what came of lessons cannot be told", extra={"project": project, "error": repr(error)})


def _find_root(workspace: Path) -> Path | None:
    try:
        top = run_git(workspace, "rev-parse", "--show-toplevel", longest_seconds=_LONGEST_GIT_SECONDS)
    except GoldenError:
        return None
    return None if top.returncode else Path(top.stdout.removesuffix("\n"))
