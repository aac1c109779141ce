"""Learn after a session, within a time budget, from what was recorded: results, fixes, breaks, outcomes of lessons, corrections.

A step that has begun is finished; the next session, or `golden learn`, does the rest. Git never runs inside a transaction. The
modules that find and word lessons are imported only when there is something to learn.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate import teaching_store
from pytest_golden.gateway.git import find_top
from pytest_golden.history.checkout import descends, has_commit
from pytest_golden.learning import gate_learning
from pytest_golden.learning.memories import MemoryDraft
from pytest_golden.learning.store import find_memory, insert_all_new, rewrite_memory
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import to_ms
from pytest_golden.values.checking import DAMAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.gate.fixes import Break, Correction, Descends, Difference, Point
    from pytest_golden.learning.lessons.model import LessonVerdict, SkillMemory
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
GATE_SECONDS = 2.0
# Enough for the results of a gate of one second, and for one change.
LEAST_SECONDS = 0.05
_SHARE = 0.01
# The rest of the budget is for finishing what has begun.
_BEGUN = 0.95
_LONGEST_GIT_SECONDS = 1.0
_MOST_EARLIER = 20
# After that time, a clone that has the commits of a turn has learned from it.
_LONGEST_WAIT_MS = 7 * 24 * 60 * 60 * 1000
_MOST_AFTER_SHOWN = 20
_MOST_BEFORE_SHOWN = 5
# Older recalls of failures that never ran again stay unsettled.
_MOST_RECALLS = 50
_CORRECTIONS_KEY = "corrections"
# More than the overlap may hold, so that something new is always among them.
_CORRECTIONS_AT_ONCE = 1_500
# Writers of a server number their signals before they are done: one may appear after a later one.
_OVERLAP = 1_000
_WORTH_KEEPING = 1_000


@dataclass(slots=True)
class GateLearning:
    """What was learned: from how many results, and which lessons were kept or refused.

    `breaks` counts the first failures after a pass, `settled` the recalls whose outcome is known now, `left` the turns
    whose commits another clone may know. `is_cut_short` tells that the time ran out.
    """

    results: gate_learning.LearningReport = field(default_factory=gate_learning.LearningReport)
    verdicts: list[LessonVerdict] = field(default_factory=list)
    breaks: int = 0
    settled: int = 0
    left: int = 0
    is_cut_short: bool = False

    @property
    def is_all(self) -> bool:
        """Tell whether this session learned nothing, and nothing is left to learn from."""
        is_idle = not (self.results.learned or self.results.passed_over or self.results.unreadable)
        return is_idle and not (self.results.left or self.verdicts or self.breaks or self.settled or self.is_cut_short)

    def add(self, later: GateLearning) -> None:
        """Add what was learned later. `left` is taken from the later one."""
        summed = ("learned", "passed_over", "unreadable", "seconds")
        sums = {name: getattr(self.results, name) + getattr(later.results, name) for name in summed}
        self.results = later.results._replace(**sums)
        self.verdicts += later.verdicts
        self.breaks += later.breaks
        self.settled += later.settled
        self.left = later.left
        self.is_cut_short = later.is_cut_short

    @property
    def kept(self) -> list[SkillMemory]:
        """Return the lessons that were kept."""
        return [verdict.skill for verdict in self.verdicts if verdict.kept]


def find_budget(run_seconds: float) -> float:
    """Return how many seconds a gate may learn at its end: a hundredth of its run time, within limits."""
    return min(GATE_SECONDS, max(LEAST_SECONDS, run_seconds * _SHARE))


class GateLearner:
    """Learns from a store, which the caller closes, in the checkout of a workspace.

    `manifest` is the path of the manifest, or None. `hide` removes the projects' secrets from JSON-safe values, such as the
    subject of a commit; values for which it returns None are not stored.
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
        self._ends_at = 0.0
        self._has_time = False
        # Asked once: the commits of these do not arrive while it learns.
        self._waiting: set[str] = set()
        self._looked_at: set[str] = set()

    def learn(self, budget_seconds: float = GATE_SECONDS) -> GateLearning:
        """Learn until nothing is left to learn from, or the time is over.

        Raises:
            StorageError: the store cannot be read or written; what was learned before stays.
        """
        seconds = budget_seconds * _BEGUN
        self._ends_at = self._monotonic() + seconds
        self._has_time = seconds > 0
        done = GateLearning()
        done.results = gate_learning.learn_from_results(
            self._store, budget_seconds=seconds, clock=self._clock, monotonic=self._monotonic
        )
        self._learn_from_turns(done)
        self._settle(done)
        if not self._is_time_up():
            done.verdicts += learn_corrections(self._store, to_ms(self._clock()))
        with self._store.read() as connection:
            done.left = len(gate_learning.list_turns(connection))
        done.is_cut_short = self._is_time_up()
        return done

    @cached_property
    def _root(self) -> Path | None:
        """Return the checkout's top folder. Git runs only when there is something to learn."""
        with suppress(GoldenError):
            return find_top(self._workspace, longest_seconds=_LONGEST_GIT_SECONDS)
        return None

    @cached_property
    def _descends(self) -> Descends:
        @cache
        def ask(commit: str, ancestor: str) -> bool:
            if self._root is None:
                return commit == ancestor
            return descends(self._root, commit, ancestor, longest_seconds=_LONGEST_GIT_SECONDS)

        return ask

    def _is_time_up(self, begun: int = 1) -> bool:
        """Tell whether to begin nothing more. The first of each kind is always begun, so that short gates make progress."""
        return self._monotonic() >= self._ends_at and (begun > 0 or not self._has_time)

    def _learn_from_turns(self, done: GateLearning) -> None:
        with self._store.read() as connection:
            turns = gate_learning.list_turns(connection)
        begun = 0
        for entry_id in turns:
            if entry_id in self._waiting:
                continue
            if self._is_time_up(begun):
                break
            try:
                self._learn_from_turn(entry_id, done)
            except DAMAGE as error:
                # A damaged row must not stop learning from the others.
                _log.warning("a change cannot be learned from", extra={"entry": entry_id, "error": repr(error)})
                with self._store.write() as connection:
                    gate_learning.take_turn(connection, entry_id)
            begun += entry_id not in self._waiting

    def _learn_from_turn(self, entry_id: str, done: GateLearning) -> None:
        from pytest_golden.gate.fixes import Break
        from pytest_golden.learning.lessons.service import add_lesson
        from pytest_golden.learning.lessons.store import find_lesson

        with self._store.read() as connection:
            point = teaching_store.find_point(connection, entry_id)
            earlier = () if point is None else teaching_store.list_points_before(connection, point, _MOST_EARLIER)
        if point is not None and self._must_wait(point):
            self._waiting.add(entry_id)
            return
        taught = None if point is None else self._find_taught(point, earlier)
        # Projects' secrets are not stored, nor are values from which they cannot be removed.
        hidden = None if taught is None else self._hide(taught.to_dict())
        with self._store.write() as connection:
            if not gate_learning.take_turn(connection, entry_id) or taught is None or hidden is None:
                return
            moment = to_ms(self._clock())
            if isinstance(taught, Break):
                done.breaks += len(insert_all_new(connection, [Break.from_dict(hidden).to_draft()], moment))
            elif find_lesson(connection, taught.id) is None:
                done.verdicts.append(add_lesson(connection, taught.from_dict(hidden), gate_learning.GATE_AGENT, moment))

    def _must_wait(self, point: Point) -> bool:
        """Tell whether another clone may know the commit that is missing in this one."""
        if point.commit is None or (self._root is not None and has_commit(self._root, point.commit)):
            return False
        return to_ms(self._clock()) - point.created_at < _LONGEST_WAIT_MS

    def _find_taught(self, point: Point, earlier: tuple[Point, ...]) -> SkillMemory | Break | None:
        from pytest_golden.gate.fix_wording import word_fix
        from pytest_golden.gate.fixes import find_turned, is_chance, make_break

        before = find_turned(point, earlier, self._descends) if self._root is not None and point.counts else None
        difference = None if before is None else self._compare(before, point)
        if before is None or difference is None:
            return None
        if not point.has_passed:
            return make_break(point, difference, self._name_manifest())
        if point.is_accepted or is_chance(before, point, earlier):
            return None
        return word_fix(before, point, difference, self._name_manifest())

    def _compare(self, before: Point, point: Point) -> Difference | None:
        from pytest_golden.gate.fixes import Clone

        with self._store.read() as connection:
            states = teaching_store.read_state(connection, before), teaching_store.read_state(connection, point)
        clone = Clone(self._root or self._workspace, self._workspace, longest_seconds=_LONGEST_GIT_SECONDS)
        return clone.find_difference(*states)

    def _name_manifest(self) -> str:
        """Return the manifest's path relative to the checkout's root; empty if it lies elsewhere."""
        if self._manifest is None or self._root is None:
            return ""
        manifest = self._manifest.resolve()
        return manifest.relative_to(self._root).as_posix() if manifest.is_relative_to(self._root) else ""

    def _settle(self, done: GateLearning) -> None:
        if done.results.learned:
            self._looked_at.clear()
        with self._store.read() as connection:
            projects = teaching_store.list_unsettled_projects(connection)
        for place, project in enumerate(one for one in projects if one not in self._looked_at):
            if self._is_time_up(place):
                break
            self._looked_at.add(project)
            try:
                done.settled += settle_project(self._store, project, self._descends, self._clock())
            except DAMAGE as error:
                _log.warning("what came of lessons cannot be told", extra={"project": project, "error": repr(error)})


def settle_project(store: Store, project: str, descends: Descends, now: datetime) -> int:
    """Settle the lessons shown for a project's failures, and return how many: a pass is a success, the same failure a harm.

    Failures of the gate or its machine settle nothing, nor do skipped and interrupted runs. One pass credits a lesson once,
    however often it was shown before. A failure that was only run again is not charged twice.

    Raises:
        StorageError: the store cannot be read or written.
    """
    from pytest_golden.learning.lessons.service import settle
    from pytest_golden.learning.lessons.store import list_unsettled, settle_recall

    with store.read() as connection:
        recalls = [one for one in list_unsettled(connection, project)[-_MOST_RECALLS:] if one.entry_id is not None]
        entries = dict.fromkeys(str(one.entry_id) for one in recalls)
        endings = {entry_id: _find_ending(connection, entry_id, descends) for entry_id in entries}
    told = [(one, *ending) for one in recalls for ending in endings[str(one.entry_id)]]
    if not told:
        return 0
    done: set[tuple[str, str]] = set()
    with store.write() as connection:
        for recall, ending, is_telling in told:
            if is_telling and (recall.lesson_id, ending.entry_id) not in done:
                settle(connection, recall.id, now, passed=ending.has_passed)
                done.add((recall.lesson_id, ending.entry_id))
            else:
                settle_recall(connection, recall.id, to_ms(now), passed=ending.has_passed)
    return len(told)


def _find_ending(connection: Connection, entry_id: str, descends: Descends) -> list[tuple[Point, bool]]:
    """Return what ended a failure, if anything, and whether that says something about a lesson shown for it."""
    from pytest_golden.gate.fixes import find_ending, is_repeat

    shown = teaching_store.find_point(connection, entry_id)
    if shown is None or not shown.counts:
        return []
    ending = find_ending(shown, teaching_store.list_points_after(connection, shown, _MOST_AFTER_SHOWN), descends)
    if ending is None:
        return []
    is_telling = ending.has_passed or not is_repeat(
        shown, teaching_store.list_points_before(connection, shown, _MOST_BEFORE_SHOWN)
    )
    return [(ending, is_telling)]


def learn_corrections(store: Store, moment: int) -> tuple[LessonVerdict, ...]:
    """Make lesson candidates of the corrections received since the last time, and return what became of them.

    Raises:
        StorageError: the store cannot be read or written.
    """
    with store.read() as connection:
        if not _has_news(connection):
            return ()
    with store.write() as connection:
        place = _read_place(connection)
        last = teaching_store.find_last_signal(connection)
        # Check again: another process may have been faster.
        found = teaching_store.list_corrections(connection, place["number"] - _OVERLAP, _CORRECTIONS_AT_ONCE)
        new = [one for one in found if one.signal_id not in place["learned"]]
        verdicts = tuple(verdict for one in new for verdict in _learn_correction(connection, one, moment))
        number = found[-1].number if len(found) == _CORRECTIONS_AT_ONCE else last
        recent = [one.signal_id for one in found if one.number > number - _OVERLAP]
        rewrite_memory(
            connection,
            MemoryDraft(gate_learning.PROGRESS, _CORRECTIONS_KEY, {"number": number, "learned": recent}),
            moment,
        )
    return verdicts


def _learn_correction(connection: Connection, correction: Correction, moment: int) -> Iterator[LessonVerdict]:
    from pytest_golden.gate.fix_wording import word_correction
    from pytest_golden.learning.lessons.service import add_lesson
    from pytest_golden.learning.lessons.store import find_lesson

    try:
        skill = word_correction(correction)
        # It may have come from another store.
        if find_lesson(connection, skill.id) is None:
            yield add_lesson(connection, skill, correction.agent, moment)
    except ValueError as error:
        details = {"signal": correction.signal_id, "error": repr(error)}
        _log.warning("a correction cannot be learned from", extra=details)


def _has_news(connection: Connection) -> bool:
    place = _read_place(connection)
    if teaching_store.find_last_signal(connection) - place["number"] >= _WORTH_KEEPING:
        return True
    found = teaching_store.list_corrections(connection, place["number"] - _OVERLAP, _CORRECTIONS_AT_ONCE)
    return any(one.signal_id not in place["learned"] for one in found)


def _read_place(connection: Connection) -> dict[str, Any]:
    memory = find_memory(connection, gate_learning.PROGRESS, _CORRECTIONS_KEY)
    kept = {} if memory is None else memory.value
    return {"number": int(kept.get("number", 0)), "learned": set(kept.get("learned", ()))}
