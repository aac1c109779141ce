"""Learn from recorded gate results: an outcome, a training example and a tally each. Never on the critical path.

What a result taught and the mark that it was learned from are saved in one transaction: however the process ends, the next
run continues where this one stopped. Turns (a project passes after it failed, or fails after it passed) are noted as
memories for a caller who can ask git what changed.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.learning import gate_results_store as results
from pytest_golden.learning import store as rows
from pytest_golden.learning.memories import MemoryDraft, words_of
from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.learning.outcomes import extract_plan_by_rules, write_outcome, write_training_example
from pytest_golden.learning.seen_before import TALLIES, Tally
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.columns import from_ms, storable, to_ms
from pytest_golden.values.checking import DAMAGE, as_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.learning.model import RecordedResult
    from pytest_golden.storage.store import Store

    _Steps = Sequence[Mapping[str, Any]]

_log = logging.getLogger(__name__)
# Large enough to share one fdatasync, small enough that another gate does not wait for the store.
_BATCH = 100
#: Namespaces that begin with this hold pending work of this store; they are not merged from other stores.
OWN_WORK = "learning"
TURNS = (OWN_WORK, "turns")
PROGRESS = (OWN_WORK, "progress")
GATE_AGENT = "golden"
# A run with another word for `--golden-learning` is skipped for good.
_MAY_LEARN = frozenset({None, "on"})
_MOST_STEPS = 100
_MOST_OF_STEP, _MOST_OF_MESSAGE, _MOST_REASONS, _MOST_ERRORS = 120, 1_000, 5, 10
# Their messages are about the person at the keyboard, or about another project.
_NOT_TELLING = frozenset({ReasonKind.INTERRUPTED, ReasonKind.NEED_NOT_PASSED, ReasonKind.WORKER_CRASHED})


class LearningReport(NamedTuple):
    """The numbers of results that a call learned from, passed over because nothing ran, could not read, and left for the next."""

    learned: int = 0
    passed_over: int = 0
    unreadable: int = 0
    left: int = 0
    seconds: float = 0.0


class _Lesson(NamedTuple):
    """The memories that one result teaches."""

    outcome: MemoryDraft
    training: MemoryDraft
    failure: Tally | None


def learn_from_results(
    store: Store,
    *,
    budget_seconds: float = 2.0,
    clock: Callable[[], datetime] = utc_now,
    monotonic: Callable[[], float] = monotonic_seconds,
) -> LearningReport:
    """Learn from the results that the gate recorded, oldest first, until nothing or no time is left.

    Args:
        store: the store of results and memories.
        budget_seconds: after this time no further result is begun.
        clock: returns the timestamp of the memories.
        monotonic: returns the seconds that the budget is measured by.

    Raises:
        StorageError: the store cannot be read or written; what was learned before stays.
    """
    started = monotonic()
    counts: Counter[str] = Counter()
    is_done = False
    while not is_done:
        with store.write() as connection:
            is_done = _learn_from_batch(connection, counts, clock, lambda: monotonic() - started >= budget_seconds)
    with store.read() as connection:
        left = results.count_unlearned(connection)
    return LearningReport(**counts, left=left, seconds=monotonic() - started)


def _learn_from_batch(
    connection: Connection, counts: Counter[str], clock: Callable[[], datetime], is_time_up: Callable[[], bool]
) -> bool:
    """Learn from up to a hundred results, and count them; return True when nothing or no time is left."""
    done: list[int] = []
    ran: list[RecordedResult] = []
    lessons: list[_Lesson] = []
    for one in () if is_time_up() else results.list_unlearned(connection, _BATCH):
        if is_time_up():
            break
        ending, lesson = _learn_from(connection, one)
        counts[ending] += 1
        done.append(one.number)
        if lesson is not None:
            lessons.append(lesson)
            ran.append(one)
    timestamp = to_ms(clock())
    _keep(connection, lessons, timestamp)
    note_turns(connection, ran, timestamp)
    results.mark_learned(connection, done, timestamp)
    return len(done) < _BATCH


def _learn_from(connection: Connection, recorded: RecordedResult) -> tuple[str, _Lesson | None]:
    """Return the name of the count of `LearningReport` that the result belongs to, and what it teaches."""
    if recorded.status == ResultStatus.SKIPPED or recorded.learning not in _MAY_LEARN:
        return "passed_over", None
    try:
        trajectory_id = recorded.trajectory_id
        trajectory = None if trajectory_id is None else results.read_trajectory_text(connection, trajectory_id)
        return "learned", _find_lesson(recorded, trajectory)
    except DAMAGE:
        # A damaged row must not stop the others.
        _log.warning("a result cannot be learned from", extra={"entry": recorded.occasion.entry}, exc_info=True)
        return "unreadable", None


def _keep(connection: Connection, lessons: Sequence[_Lesson], timestamp: int) -> None:
    """Store what is new. The failure of a result that was learned before is counted already."""
    drafts = [draft for lesson in lessons for draft in (lesson.outcome, lesson.training)]
    new = rows.insert_all_new(connection, drafts, timestamp)
    failures = [lesson.failure for lesson in lessons if lesson.failure is not None and lesson.outcome.key in new]
    keys = list(dict.fromkeys(failure.key for failure in failures))
    tallies = {memory.key: Tally.from_dict(memory.value) for memory in rows.find_by_keys(connection, TALLIES, keys)}
    for failure in failures:
        known = tallies.get(failure.key)
        if known is not None:
            fixed = results.find_pass(connection, known.project, after=known.last.entry, before=failure.last.entry)
            failure = known.count_on(failure, fixed)
        tallies[failure.key] = failure
    for tally in tallies.values():
        rows.rewrite_memory(connection, tally.to_draft(), timestamp)


def _find_lesson(recorded: RecordedResult, trajectory: str | None) -> _Lesson:
    result = _read_result(recorded)
    body = json.loads(trajectory) if trajectory else {}
    steps = tuple(step for step in body.get("steps") or () if isinstance(step, dict))
    outcome = make_outcome(recorded, result, steps)
    plan = extract_plan_by_rules(outcome)
    (kept,), (example,) = write_outcome(outcome), write_training_example(outcome, plan)
    message = find_reason(recorded.status, result)
    provenance = make_provenance(recorded, steps)
    ending = "success" if outcome.success else "failure"
    common = [outcome.task_description, outcome.error_message, ending, outcome.context["reasons"], recorded.status]
    further = [*common, outcome.execution_path, outcome.context["commit"], outcome.context["branch"]]
    learned = [outcome.task_description, plan.strategy_description, plan.reasoning_pattern, ending]
    return _Lesson(
        MemoryDraft(**kept, provenance=provenance, words=storable(words_of(further))),
        MemoryDraft(**example, provenance=provenance, words=storable(words_of(learned))),
        None if message is None else Tally.begin(message, recorded.project, recorded.occasion),
    )


def _read_result(recorded: RecordedResult) -> Mapping[str, Any]:
    result = json.loads(recorded.result)
    if not isinstance(result, dict):
        raise ValueError(f"the result of {recorded.project} is not an object")  # noqa: TRY004 - one kind of refusal
    return result


def make_outcome(recorded: RecordedResult, result: Mapping[str, Any], steps: _Steps) -> ProductionOutcome:
    """Return the outcome of a result. Its id follows from the result's entry, so that learning twice changes nothing."""
    # Nothing ran: the 0.0 was not measured.
    never_ran = recorded.exit_code is None and not recorded.execution_time_seconds
    named = [step for step in steps if not _is_of_harness(step)]
    occasion, error, written = recorded.occasion, result.get("error_message"), as_mapping(result.get("write_set"))
    return ProductionOutcome(
        outcome_id=f"outcome_{occasion.entry.removeprefix('entry_')}",
        task_description=f"Run golden project {recorded.project}",
        agent_name=GATE_AGENT,
        execution_path=_ends(tuple(_cut(str(step.get("content")), _MOST_OF_STEP) for step in named)),
        result={
            "status": recorded.status,
            "exit_code": recorded.exit_code,
            "written": {name: len(written.get(name) or ()) for name in ("created", "changed", "removed")},
        },
        success=recorded.status == ResultStatus.PASSED,
        error_message=None if error is None else _cut(str(error), _MOST_OF_MESSAGE),
        execution_time=None if never_ran else recorded.execution_time_seconds,
        timestamp=from_ms(occasion.at),
        context={
            "project": recorded.project,
            "run": occasion.run,
            "entry": occasion.entry,
            "commit": occasion.commit,
            "branch": recorded.branch,
            "dirty": occasion.dirty,
            "attempts": recorded.attempts,
            "is_flaky": recorded.is_flaky,
            "reasons": _reasons(result),
            "steps_total": result.get("steps_total", len(named)),
        },
    )


def make_provenance(recorded: RecordedResult, steps: _Steps) -> dict[str, Any]:
    """Return where the outcome comes from; `steps` are the ids of the steps with an error."""
    failed = [str(step.get("id")) for step in steps if (step.get("metadata") or {}).get("error")]
    return {
        "run": recorded.occasion.run,
        "commit": recorded.occasion.commit,
        "steps": failed[-_MOST_ERRORS:],
        "trajectory": recorded.trajectory_id,
    }


def find_reason(status: str, result: Mapping[str, Any]) -> str | None:
    """Return the reason that identifies a failure; None for a pass, and for a failure that is not about the project itself."""
    if status not in {ResultStatus.FAILED, ResultStatus.ERROR}:
        return None
    reasons = result.get("reasons") or ()
    first = reasons[0] if reasons else {"message": result.get("error_message") or ""}
    message = str(first.get("message") or "")
    return None if first.get("kind") in _NOT_TELLING or not message.strip() else message


def _is_of_harness(step: Mapping[str, Any]) -> bool:
    """Return whether a step is the observation that replaces missing steps: it repeats the reason."""
    return step.get("type") == "observation" and step.get("content") == (step.get("metadata") or {}).get("error")


def _ends(path: tuple[str, ...]) -> tuple[str, ...]:
    half = _MOST_STEPS // 2
    # A failure is at the end.
    return path if len(path) <= _MOST_STEPS else path[:half] + path[-half:]


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def _reasons(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    reasons = (result.get("reasons") or ())[:_MOST_REASONS]
    return [{"kind": reason["kind"], "message": _cut(str(reason["message"]), _MOST_OF_MESSAGE)} for reason in reasons]


def note_turns(connection: Connection, recorded: Sequence[RecordedResult], timestamp: int) -> None:
    """Note the results that differ from their project's previous result."""
    turns = [one for one in recorded if is_turn(one, results.list_earlier(connection, one.project, one.number))]
    drafts = [MemoryDraft(TURNS, one.occasion.entry, {"project": one.project}) for one in turns]
    rows.insert_all_new(connection, drafts, timestamp)


def is_turn(result: RecordedResult, earlier: Iterable[tuple[str, str | None]]) -> bool:
    """Return whether a result differs from the previous one, if possible of the same branch.

    `earlier` has the status and the branch of each earlier result, newest first.
    """
    ran = [(status, branch) for status, branch in earlier if status != ResultStatus.SKIPPED]
    before = next((status for status, branch in ran if branch == result.branch), ran[0][0] if ran else None)
    return before is not None and (before == ResultStatus.PASSED) != (result.status == ResultStatus.PASSED)


def list_turns(connection: Connection) -> tuple[str, ...]:
    """Return the entries of turns that were not learned from yet, oldest first."""
    return rows.list_keys(connection, TURNS)


def take_turn(connection: Connection, entry_id: str) -> bool:
    """Remove a turn; return False when another process has already taken it."""
    return rows.delete_memory(connection, TURNS, entry_id)
