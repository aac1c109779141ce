"""Find the first step at which two trajectories differ. It compares; it judges nothing.

Ids, times and durations do not count, neither as fields of a step nor under such a name in its metadata. A trajectory's own metadata describes its run,
and does not count either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.step import Step
from pytest_golden.values.json_form import json_form
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.trajectory.model import Trajectory

    # The place of each step by its id, of both trajectories.
    _Places = tuple[dict[str, int], dict[str, int]]

_LONGEST_SHOWN = 80
_MOST_SHOWN = 3
_DEEPEST = 20
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TIME_WORDS = frozenset({"at", "time", "timestamp", "duration", "elapsed", "ms", "millis", "seconds", "secs"})
# Ids of a run, not of its data: another customer_id is another event.
_RUN_WORDS = frozenset({"invocation", "process", "request", "run", "session", "span", "step", "thread", "trace"})
# Whole names: a call or a response under another name may be data.
_RUN_KEYS = frozenset({"gen_ai.conversation.id", "gen_ai.response.id", "gen_ai.tool.call.id", "thread.name"})
_RUN_IDS = frozenset({"id", "pid", "ppid", "uuid"})
# The system assigns free ports from here on; a lower one was chosen.
_FIRST_FREE_PORT = 32_768
_STEP_FIELDS = ("type", "content", "metadata", "context", "importance", "parent_step_id")
_SNAPSHOT_FIELDS = ("state", "reason", "metadata", "step_id")


class StepChange(NamedTuple):
    """One difference. A field inside a step's metadata is written `metadata.PATH`; an absent side is None."""

    field: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.field} {_show(self.left)} -> {_show(self.right)}"


def write_named(items: Iterable[NamedTuple]) -> list[dict[str, Any]]:
    """Return the JSON form of named tuples that hold values of any kind."""
    return [{name: json_form(value) for name, value in item._asdict().items()} for item in items]


@dataclass(frozen=True, slots=True)
class TrajectoryDiff(Shape):
    """Where two trajectories differ first; as text, one sentence.

    `index` counts steps from 0 and is None when all steps are the same; then only `changes` of the snapshots, the
    outcome or the error are left. The trajectory that has ended has no step id there. `title` is what that step says.
    """

    identical: bool
    index: int | None = None
    left_step_id: str | None = None
    right_step_id: str | None = None
    changes: tuple[StepChange, ...] = field(
        default=(), metadata=form(write=write_named, as_type=tuple[Mapping[str, Any], ...])
    )
    title: str = ""

    def __str__(self) -> str:
        if self.identical:
            return "the trajectories are identical"
        if self.index is None:
            return f"the steps are the same; {self.list_changes()}"
        number = self.index + 1
        if self.right_step_id is None:
            return f"they part at step {number}: the left goes on with {self.title}, the right ends"
        if self.left_step_id is None:
            return f"they part at step {number}: the left ends, the right goes on with {self.title}"
        return f"they part at step {number}, {self.title}: {self.list_changes()}"

    def list_changes(self) -> str:
        """Write the first few changes in a row, and how many more there are."""
        more = len(self.changes) - _MOST_SHOWN
        shown = ", ".join(map(str, self.changes[:_MOST_SHOWN]))
        return f"{shown} and {more} more" if more > 0 else shown


def diff_trajectories(left: Trajectory, right: Trajectory) -> TrajectoryDiff:
    """Find the first step that differs; the end of the shorter trajectory is a difference."""
    places: _Places = {}, {}
    for index, (mine, theirs) in enumerate(zip_longest(left.steps, right.steps)):
        if mine is None or theirs is None:
            return _one_has_ended(index, mine, theirs)
        changes = tuple(_compare_fields(mine, theirs, places))
        if changes:
            return TrajectoryDiff(False, index, mine.id, theirs.id, changes, _show(mine.content))
        places[0][mine.id] = places[1][theirs.id] = index
    changes = tuple(_compare_ends(left, right, places))
    return TrajectoryDiff(identical=not changes, changes=changes)


def _one_has_ended(index: int, mine: Step | None, theirs: Step | None) -> TrajectoryDiff:
    left, right = (None if step is None else step.content for step in (mine, theirs))
    return TrajectoryDiff(
        identical=False,
        index=index,
        left_step_id=None if mine is None else mine.id,
        right_step_id=None if theirs is None else theirs.id,
        changes=(StepChange("content", left, right),),
        title=_show(right if mine is None else left),
    )


def _compare_ends(left: Trajectory, right: Trajectory, places: _Places) -> Iterator[StepChange]:
    pairs = zip_longest(left.state_snapshots, right.state_snapshots)
    for index, (mine, theirs) in enumerate(pairs):
        name = f"state_snapshots[{index}]"
        if mine is None or theirs is None:
            yield StepChange(f"{name}.state", mine and mine.state, theirs and theirs.state)
            break
        changes = tuple(_compare_fields(mine, theirs, places))
        yield from (change._replace(field=f"{name}.{change.field}") for change in changes)
        if changes:
            break
    yield from _compare_values("outcome", left.outcome, right.outcome)
    yield from _compare_values("error", left.error, right.error)


def _compare_fields(mine: Any, theirs: Any, places: _Places) -> Iterator[StepChange]:
    """Compare two steps or two snapshots; the ids of steps in them are compared by the places of these steps."""
    for name in _STEP_FIELDS if isinstance(mine, Step) else _SNAPSHOT_FIELDS:
        left, right = getattr(mine, name), getattr(theirs, name)
        if name == "metadata":
            yield from _compare_mappings(name, left, right)
        elif not name.endswith("_id"):
            yield from _compare_values(name, left, right)
        elif places[0].get(left or "") != places[1].get(right or ""):
            yield StepChange(name, left, right)


def _compare_values(field: str, left: Any, right: Any) -> Iterator[StepChange]:
    if not _is_same(left, right):
        yield StepChange(field, left, right)


def _compare_mappings(
    field: str, left: Mapping[Any, Any], right: Mapping[Any, Any], depth: int = 0
) -> Iterator[StepChange]:
    if _is_equal(left, right):
        return
    for key in dict.fromkeys([*left, *right]):
        if is_fleeting(str(key)):
            continue
        mine, theirs, below = left.get(key), right.get(key), f"{field}.{key}"
        if _are_free_ports(str(key), mine, theirs):
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict) and depth < _DEEPEST:
            yield from _compare_mappings(below, mine, theirs, depth + 1)
        elif (key in left) != (key in right) or not _is_same(mine, theirs):
            yield StepChange(below, mine, theirs)


def is_fleeting(key: str) -> bool:
    """Tell whether a key of this name holds a time, a duration or the id of a run, which differ every time."""
    words = [word.lower() for word in _WORD.findall(key)]
    if not words:
        return False
    if words[-1] in _TIME_WORDS or words[0] in {"duration", "timestamp"} or key in _RUN_KEYS:
        return True
    return words[-1] in _RUN_IDS and (len(words) == 1 or words[-2] in _RUN_WORDS)


def _are_free_ports(key: str, left: Any, right: Any) -> bool:
    return key.lower().endswith("port") and all(
        type(port) is int and port >= _FIRST_FREE_PORT for port in (left, right)
    )


def _is_same(left: Any, right: Any) -> bool:
    # One of the two may have been written and read back: then tuples, bytes and NaN have their JSON form.
    return _is_equal(left, right) or _is_equal(json_form(left), json_form(right))


def _is_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except Exception:  # a foreign class may raise anything, and a value may contain itself
        return False


def _show(value: Any) -> str:
    if value is None:
        return "none"
    plain = json_form(value)
    told = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    told = " ".join(told.split())
    told = told if len(told) <= _LONGEST_SHOWN else f"{told[: _LONGEST_SHOWN - 3]}..."
    return f"'{told}'" if isinstance(plain, str) else told
