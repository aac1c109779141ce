"""What changed between the last pass of a project and its present failure, and the values of earlier results."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.history.checkout import Checkout, CheckoutChanges, changes_between, count_commits
from pytest_golden.history.inputs import RunInputs, compare_inputs
from pytest_golden.history.run_environment import VERDICT, compare_surroundings
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RunVerdict
from pytest_golden.regression.wording import format_duration, format_size, name_some
from pytest_golden.trajectory.step import FrozenSequence
from pytest_golden.trajectory.vocabulary import StepType
from pytest_golden.values.checking import as_mapping
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.trajectory.difference import StepChange, TrajectoryDiff
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step

# These are for people and do not change a run.
_FOR_PEOPLE = frozenset({"title", "description"})
_DURATIONS = frozenset({"timeout", "cpu_limit"})
_SIZES = frozenset({"memory_limit", "disk_limit"})
_LONGEST_VALUE = 60
_NO_CHECKOUT = "no checkout here, so the project's files are told as inputs"
_ERRORS = frozenset({"metadata.error", "metadata.failed"})
_SAID_BY_FAILING = _ERRORS | {"importance", "metadata.error_type"}
_MOST_SHOWN = 3
_ABSENT = "(not reported)"


def find_changes(past: PastPass, present: Present, parted: str | None = None) -> ChangedSincePass:
    """Compare the present run with the last pass. `parted` is what `describe_parting` returned for the two trajectories."""
    result = past.result
    checkout, later_commit_count = _compare_checkouts(past, present)
    is_input_known = past.inputs.is_known and present.inputs.is_known
    if is_input_known and present.checkout.root is None:
        checkout = replace(checkout, note=_NO_CHECKOUT)
    return ChangedSincePass(
        passed_at=result.created_at,
        run_id=result.run_id,
        commit=result.commit,
        checkout=checkout,
        declaration=compare_declarations(past.declaration, present.declaration),
        surroundings=compare_surroundings(
            past.surroundings, present.surroundings, venv=present.declaration.get("venv")
        ),
        parted=parted,
        dirty=result.dirty is True,
        later_commit_count=later_commit_count,
        inputs=tuple(map(str, compare_inputs(past.inputs, present.inputs, checkout.files))),
        is_input_known=is_input_known,
    )


@dataclass(frozen=True, slots=True)
class ChangedSincePass(Shape):
    """The last pass, and what is different now. `parted` says where the trajectory left that of the pass.

    `dirty` tells that it passed with edits that were not committed. If it already failed at an earlier commit, `checkout` ends at
    the first such commit, and `later_commit_count` counts the commits after it; otherwise that is None.
    `inputs` are those that git does not hold; it is also empty if nobody looked at them.
    """

    passed_at: datetime
    run_id: str
    commit: str | None
    checkout: CheckoutChanges
    declaration: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    parted: str | None = None
    dirty: bool = False
    later_commit_count: int | None = None
    inputs: tuple[str, ...] = ()
    is_input_known: bool = field(default=False, metadata=form(hidden=True))


@dataclass(frozen=True, slots=True)
class Present:
    """What the present run of a project runs in, for the comparison with its last pass.

    `folder` lies in the checkout, `within` is the absolute path of the project's folder. `declaration` and `inputs` are redacted.
    """

    folder: Path
    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    within: Path | None = None
    inputs: RunInputs = field(default_factory=RunInputs)


@dataclass(frozen=True, slots=True)
class PastPass:
    """The last pass of a project and what it ran in, for the comparison with the present failure.

    `dirty_files` maps each file that differed from the commit to its content hash. `declaration` holds the project's
    manifest keys, `surroundings` the installed versions, `inputs` what git does not hold. `first_failure` is what the first
    failure after it ran on.
    """

    result: PastResult
    dirty_files: Mapping[str, str | None] | None
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    first_failure: Checkout | None = None
    inputs: RunInputs = field(default_factory=RunInputs)


@dataclass(frozen=True, slots=True)
class PastResult(Shape):
    """The result of one project in one gate run, as far as its history needs it.

    `message` is the first reason, None for a pass. `pass_streak` counts the passes in a row up to this one.
    A skipped or interrupted run is neither a pass nor a failure, and breaks no streak. `is_accepted` tells that a person
    accepted its outputs, so that it is not compared with earlier results.
    """

    entry_id: str
    run_id: str
    project: str = field(metadata=form(hidden=True))
    status: ResultStatus
    exit_code: int | None
    execution_time_seconds: float
    attempts: int
    is_flaky: bool
    is_regression: bool
    pass_streak: int
    commit: str | None
    branch: str | None
    dirty: bool | None
    created_at: datetime
    trajectory_id: str | None
    message: str | None
    is_interrupted: bool = False
    is_accepted: bool = False
    is_narrowed: bool = False

    @property
    def counts(self) -> bool:
        """Tell whether it ran to its end, so that it says something about the project."""
        return self.status is not ResultStatus.SKIPPED and not self.is_interrupted


def read_verdict(final_status: str | None, facts: Any) -> RunVerdict | None:
    """Read the verdict with which a run ended; None if it has not ended."""
    if final_status is None:
        return None
    return RunVerdict.from_dict({**as_mapping(as_mapping(facts).get(VERDICT)), "final_status": final_status})


def _compare_checkouts(past: PastPass, present: Present) -> tuple[CheckoutChanges, int | None]:
    """Compare up to the first failure if its commit differs from both ends, otherwise up to now."""
    result, first, now = past.result, past.first_failure, present.checkout.commit
    before = Checkout(result.commit, result.branch, result.dirty, past.dirty_files)
    is_known = result.commit is not None and now is not None
    if is_known and first is not None and first.commit not in {None, result.commit, now}:
        later = count_commits(present.folder, str(first.commit), str(now))
        broken = replace(first, root=present.checkout.root)
        checkout = changes_between(present.folder, before, broken, present.within)
        if later is not None and checkout.is_known:
            return checkout, later
    return changes_between(present.folder, before, present.checkout, present.within), None


def compare_declarations(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Return lines such as `timeout 10m -> 60s` from two `GoldenProjectConfig.to_dict()`; secret values never appear.

    A key that only one of the two versions knew is left out. Whether a change lowers the floor is not decided here.
    """
    return tuple(_list_changes(redact(dict(before)), redact(dict(now))))


def _list_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, value in now.items():
        if key in _FOR_PEOPLE or key not in before or before[key] == value:
            continue
        if key == "set_env":
            yield from _list_variables(before[key] or {}, value or {})
        elif key == "outputs":
            yield from _list_outputs(_index_by_path(before[key]), _index_by_path(value))
        else:
            yield f"{key} {_show_value(key, before[key])} -> {_show_value(key, value)}"


def _list_variables(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*now, *before]):
        if name not in before:
            yield f"set_env.{name} added: {_show(now[name])}"
        elif name not in now:
            yield f"set_env.{name} removed"
        elif before[name] != now[name]:
            yield f"set_env.{name} {_show(before[name])} -> {_show(now[name])}"


def _list_outputs(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path in dict.fromkeys([*now, *before]):
        if path not in before or path not in now:
            yield f"outputs.{path} {'added' if path in now else 'removed'}"
            continue
        then, present = before[path], now[path]
        for key, value in present.items():
            if key in then and then[key] != value:
                yield f"outputs.{path}.{key} {_show(then[key])} -> {_show(value)}"


def _index_by_path(outputs: Any) -> dict[str, Mapping[str, Any]]:
    """Return the entries by their paths; those that share a path by path and number."""
    entries: dict[str, Mapping[str, Any]] = {}
    count: Counter[str] = Counter()
    for output in outputs or ():
        path = str(output["path"])
        count[path] += 1
        entries[f"{path} ({count[path]})" if count[path] > 1 else path] = output
    return entries


def _show_value(key: str, value: Any) -> str:
    is_amount = isinstance(value, int | float) and not isinstance(value, bool)
    if is_amount and key in _DURATIONS:
        return format_duration(value)
    return format_size(int(value)) if is_amount and key in _SIZES else _show(value)


def _show(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= _LONGEST_VALUE else f"{told[: _LONGEST_VALUE - 3]}..."


def describe_parting(good: Trajectory, present: Trajectory) -> str | None:
    """Say where the present run left the course of a good one; None if it took the same steps.

    Steps that ran side by side come in any order, so a different order is not a difference if each step has a unique name. The
    harness's note about a run without steps is ignored.
    """
    # Imported here, since only a failure needs it.
    from pytest_golden.trajectory.difference import diff_trajectories

    good, present = _without_note(good), _without_note(present)
    difference = diff_trajectories(good, present)
    if _is_an_order(difference, good, present):
        difference = diff_trajectories(good, _in_order_of(good, present))
    return None if difference.index is None else _describe(difference, difference.index + 1)


def _without_note(trajectory: Trajectory) -> Trajectory:
    noted = [step for step in trajectory.steps if step.type is StepType.OBSERVATION]
    is_note = len(trajectory.steps) == 1 and len(noted) == 1 and noted[0].metadata.get("error") == noted[0].content
    return replace(trajectory, steps=FrozenSequence()) if is_note else trajectory


def _describe(difference: TrajectoryDiff, number: int) -> str:
    if difference.right_step_id is None:
        return f"step {number}: the good run went on with {difference.title}, this one ended"
    if difference.left_step_id is None:
        return f"step {number}: the good run ended, this one went on with {difference.title}"
    return f"step {number}, {difference.title}: {_list_step_changes(difference.changes)}"


def _list_step_changes(changes: Collection[StepChange]) -> str:
    """Describe the changes of a step for people, who need not know that a step has metadata."""
    # The failure's text has the error, and every step that fails is important.
    told = [change for change in changes if change.field not in _SAID_BY_FAILING]
    has_failed = any(change.field in _ERRORS and change.right for change in changes)
    shown = [_write(change) for change in told or changes]
    words = ["it failed", *(shown if told else ())] if has_failed else shown
    return name_some(words, _MOST_SHOWN)


def _write(change: StepChange) -> str:
    name = change.field.removeprefix("metadata.")
    told = str(change._replace(field=name))
    if name == change.field:
        return told
    if change.left is None:
        told = told.replace(f"{name} none", f"{name} {_ABSENT}", 1)
    return told if change.right is not None else f"{told.removesuffix('none')}{_ABSENT}"


def _is_an_order(difference: TrajectoryDiff, good: Trajectory, present: Trajectory) -> bool:
    swapped = next((change for change in difference.changes if change.field == "content"), None)
    if swapped is None or difference.left_step_id is None or difference.right_step_id is None:
        return False
    good_places, present_places = _places(good.steps), _places(present.steps)
    return _is_place(swapped.right, good_places) and _is_place(swapped.left, present_places)


def _is_place(content: Any, places: Mapping[str, int]) -> bool:
    return isinstance(content, str) and content in places


def _places(steps: Iterable[Step]) -> dict[str, int]:
    """Return the position of each step by its name; nothing at all if two have the same name."""
    names = [step.content for step in steps if isinstance(step.content, str)]
    return {name: place for place, name in enumerate(names)} if len(set(names)) == len(names) else {}


def _in_order_of(good: Trajectory, present: Trajectory) -> Trajectory:
    places = _places(good.steps)
    last = len(places)
    steps = sorted(present.steps, key=lambda step: places[step.content] if _is_place(step.content, places) else last)
    return replace(present, steps=FrozenSequence(steps))
