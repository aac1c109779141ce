"""Learn from recorded gate results: an outcome, a training example and a tally each. Never on the critical path.

What a result taught and the mark that it was learned from are saved in one transaction: however the process ends, the next
run continues where this one stopped.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.learning.gate_results import (
    GATE_AGENT,
    find_telling_message,
    make_outcome,
    make_provenance,
    read_result,
    read_steps,
)
from pytest_golden.learning.gate_results_store import (
    count_unlearned,
    find_pass,
    list_unlearned,
    mark_learned,
    read_long_trajectory,
    read_short_trajectories,
)
from pytest_golden.learning.memories import MemoryDraft, words_of
from pytest_golden.learning.model import training_value
from pytest_golden.learning.rules import extract_plan_by_rules
from pytest_golden.learning.seen_before import TALLIES, Tally
from pytest_golden.learning.store import find_by_keys, insert_all_new, rewrite_memory
from pytest_golden.learning.turns import note_turns
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.columns import storable, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from sqlalchemy import Connection

    from pytest_golden.learning.gate_results import RecordedResult
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
# Long enough to share one fdatasync, short enough that another gate does not wait for the store.
_BATCH = 100


@dataclass(frozen=True, slots=True)
class LearningReport:
    """What one call has done: results learned from, passed over because nothing ran, unreadable, and left for next time."""

    learned: int = 0
    passed_over: int = 0
    unreadable: int = 0
    left: int = 0
    seconds: float = 0.0


# A run that asked not to be learned from is skipped for good.
_MAY_LEARN = frozenset({None, "on"})


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What one result teaches."""

    outcome: MemoryDraft
    training: MemoryDraft
    failure: Tally | None


def learn_from_results(
    store: Store,
    *,
    budget_seconds: float = 2.0,
    clock: Callable[[], datetime] = utc_now,
    monotonic: Callable[[], float] = monotonic_seconds,
    run_id: str | None = None,
) -> LearningReport:
    """Learn from what the gate has recorded, oldest first, until nothing or no time is left.

    Args:
        store: where results and memories are.
        budget_seconds: no result is begun after so long.
        clock: gives the moment under which memories are stored.
        monotonic: gives the seconds that the budget is measured by.
        run_id: learn from this run alone.

    Raises:
        StorageError: the store cannot be read or written; what was learned before stays.
    """
    started = monotonic()
    batch = _Batch(clock, lambda: monotonic() - started >= budget_seconds)
    is_done = False
    while not is_done:
        with store.write() as connection:
            is_done = batch.learn(connection, run_id)
    with store.read() as connection:
        left = count_unlearned(connection)
    return LearningReport(batch.learned, batch.passed_over, batch.unreadable, left, monotonic() - started)


class _Batch:
    """Learns from up to a hundred results in one transaction, and counts over all of them."""

    def __init__(self, clock: Callable[[], datetime], is_time_up: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_time_up = is_time_up
        self.learned = self.passed_over = self.unreadable = 0

    def learn(self, connection: Connection, run_id: str | None) -> bool:
        """Do one batch; True when there is nothing left to do, or no time."""
        if self._is_time_up():
            return True
        recorded = list_unlearned(connection, _BATCH, run_id)
        bodies = read_short_trajectories(connection, [one.trajectory_id for one in recorded if one.trajectory_id])
        done: list[int] = []
        told: list[RecordedResult] = []
        lessons: list[_Lesson] = []
        for one in recorded:
            if self._is_time_up():
                break
            taught = self._learn_from(connection, one, bodies)
            lessons += taught
            told += [one] * bool(taught)
            done.append(one.number)
        moment = to_ms(self._clock())
        _keep(connection, lessons, moment)
        note_turns(connection, told, moment)
        mark_learned(connection, done, moment)
        return len(done) < _BATCH

    def _learn_from(
        self, connection: Connection, recorded: RecordedResult, bodies: Mapping[str, str | None]
    ) -> Sequence[_Lesson]:
        if recorded.status == ResultStatus.SKIPPED or recorded.learning not in _MAY_LEARN:
            self.passed_over += 1
            return ()
        try:
            lesson = _find_lesson(recorded, _find_trajectory(connection, recorded.trajectory_id, bodies))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            # Whatever one row holds, the others are learned from.
            _log.warning("a result cannot be learned from", extra={"entry": recorded.occasion.entry}, exc_info=True)
            self.unreadable += 1
            return ()
        self.learned += 1
        return (lesson,)


def _find_trajectory(connection: Connection, trajectory_id: str | None, bodies: Mapping[str, str | None]) -> str | None:
    if trajectory_id is None or trajectory_id not in bodies:
        return None
    return bodies[trajectory_id] or read_long_trajectory(connection, trajectory_id)


def _keep(connection: Connection, lessons: Sequence[_Lesson], moment: int) -> None:
    """Store what is new; what is there was learned before, and its failure counted."""
    new = insert_all_new(
        connection, [draft for lesson in lessons for draft in (lesson.outcome, lesson.training)], moment
    )
    failures = [lesson.failure for lesson in lessons if lesson.failure is not None and lesson.outcome.key in new]
    _count_failures(connection, failures, moment)


def _find_lesson(recorded: RecordedResult, trajectory: str | None) -> _Lesson:
    result = read_result(recorded)
    steps = read_steps(trajectory)
    outcome = make_outcome(recorded, result, steps)
    plan = extract_plan_by_rules(outcome)
    training = training_value(outcome, plan)
    message = find_telling_message(recorded, result)
    provenance = make_provenance(recorded, steps)
    ending = "success" if outcome.success else "failure"
    telling = [outcome.task_description, outcome.error_message, ending, outcome.context["reasons"], recorded.status]
    return _Lesson(
        _draft(
            "outcomes",
            outcome.outcome_id,
            training["outcome"],
            ("production", "outcome", ending),
            provenance,
            [*telling, outcome.execution_path, outcome.context["commit"], outcome.context["branch"]],
        ),
        _draft(
            "training",
            training["training_id"],
            training,
            ("se_darwin", "training", "production_learning"),
            provenance,
            [outcome.task_description, training["plan"]["strategy_description"], plan.reasoning_pattern, ending],
        ),
        None if message is None else Tally.begin(message, recorded.project, recorded.occasion),
    )


def _draft(
    kind: str,
    key: str,
    value: Mapping[str, Any],
    tags: tuple[str, ...],
    provenance: Mapping[str, Any],
    words: Sequence[Any],
) -> MemoryDraft:
    return MemoryDraft((kind, GATE_AGENT), key, value, tags, provenance, storable(words_of(words)))


def _count_failures(connection: Connection, failures: Sequence[Tally], moment: int) -> None:
    keys = list(dict.fromkeys(failure.key for failure in failures))
    tallies = {memory.key: Tally.from_value(memory.value) for memory in find_by_keys(connection, TALLIES, keys)}
    for failure in failures:
        known = tallies.get(failure.key)
        if known is not None:
            fixed = find_pass(connection, known.project, after=known.last.entry, before=failure.last.entry)
            failure = known.count_on(failure, fixed)
        tallies[failure.key] = failure
    for tally in tallies.values():
        rewrite_memory(connection, tally.to_draft(), moment)
