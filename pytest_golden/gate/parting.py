"""Where a failed run parted from the last good one, in words. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.difference import TrajectoryDiff, diff_trajectories
from pytest_golden.trajectory.sequence import FrozenSequence
from pytest_golden.trajectory.vocabulary import StepType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_golden.trajectory.difference import StepChange
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step


_ERRORS = frozenset({"metadata.error", "metadata.failed"})
_SAID_BY_FAILING = _ERRORS | {"importance", "metadata.error_type"}
_MOST_SHOWN = 3
_ABSENT = "(not reported)"


def describe_parting(good: Trajectory, present: Trajectory) -> str | None:
    """Say where the present run parted from a good one; None where it took the same steps.

    Steps that ran side by side come in any order, so an order alone is no difference where each step has a name of its
    own. What the harness noted of a run without steps is none of the pipeline's.
    """
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
    return f"step {number}, {difference.title}: {_list_changes(difference.changes)}"


def _list_changes(changes: Collection[StepChange]) -> str:
    """Write the changes of a step as people would: what a pipeline says of one is its metadata, a word for programs."""
    # The failure's text has the error, and every step that fails is important.
    told = [change for change in changes if change.field not in _SAID_BY_FAILING]
    has_failed = any(change.field in _ERRORS and change.right for change in changes)
    shown = [_write(change) for change in told or changes]
    words = ["it failed", *(shown if told else ())] if has_failed else shown
    more = len(words) - _MOST_SHOWN
    return ", ".join(words[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


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
    return _is_in(swapped.right, good_places) and _is_in(swapped.left, present_places)


def _is_in(content: Any, places: Mapping[str, int]) -> bool:
    return isinstance(content, str) and content in places


def _places(steps: Iterable[Step]) -> dict[str, int]:
    """Give the place of each step by its name; nothing at all when two have the same."""
    names = [step.content for step in steps if isinstance(step.content, str)]
    return {name: place for place, name in enumerate(names)} if len(set(names)) == len(names) else {}


def _in_order_of(good: Trajectory, present: Trajectory) -> Trajectory:
    places = _places(good.steps)
    last = len(places)
    steps = sorted(present.steps, key=lambda step: places[step.content] if _is_in(step.content, places) else last)
    return replace(present, steps=FrozenSequence(steps))
