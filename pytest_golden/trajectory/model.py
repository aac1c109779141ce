"""Define the trajectory: what happened inside one run, in order, as an immutable value. Its figures, its tree and its filter are here too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, monotonic_seconds, new_id, utc_now
from pytest_golden.trajectory.step import FrozenSequence, StateSnapshot, Step, error_text
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome, check_duration, freeze_mapping
from pytest_golden.values import checking
from pytest_golden.values.checking import Missing, check_text, check_time, check_word, list_items, parse_time
from pytest_golden.values.json_form import FrozenDict, json_form
from pytest_golden.values.shape import Shape, VersionedShape, form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_golden.trajectory.query import StepQuery

_MISSING = Missing.MISSING
_ONE_MS = timedelta(milliseconds=1)
_LONGEST_ERROR = 100_000
# The fields of a step and of a snapshot that name a step.
_PARENT, _STEP = "parent_step_id", "step_id"


@dataclass(frozen=True, slots=True)
class Trajectory(VersionedShape):
    """Steps and state snapshots in order, and how they ended. Start with `Trajectory.new()`.

    Every method that adds or changes gives a new value; adding costs the same however long the trajectory is.
    `completed_at`, `duration_ms` and `outcome` are None while it is open.
    """

    id: str
    steps: FrozenSequence[Step]
    state_snapshots: FrozenSequence[StateSnapshot]
    started_at: datetime
    completed_at: datetime | None = None
    duration_ms: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, metadata=form(write=json_form))
    outcome: TrajectoryOutcome | None = None
    error: str | None = None
    filtered: bool = False
    _started_monotonic: float | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.id)

    @classmethod
    def new(
        cls,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - the public name
        *,
        started_at: datetime | None = None,
    ) -> Trajectory:
        """Start an open, empty trajectory, now or at an aware time."""
        return cls(
            id=new_id("traj") if id is None else check_text("id", id),
            steps=FrozenSequence(),
            state_snapshots=FrozenSequence(),
            started_at=utc_now() if started_at is None else check_time("started_at", started_at),
            metadata=freeze_mapping("metadata", metadata),
            _started_monotonic=monotonic_seconds() if started_at is None else None,
        )

    @property
    def is_completed(self) -> bool:
        """Tell whether `complete` was called."""
        return self.completed_at is not None

    def add_step(
        self,
        type: StepType | str | Missing = _MISSING,  # noqa: A002 - the public name
        content: Any = _MISSING,
        *,
        importance: Importance | str = Importance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        context: Any = None,
        duration_ms: float | None = None,
        parent_step_id: str | None = None,
        timestamp: datetime | None = None,
    ) -> Trajectory:
        """Return a trajectory with one more step, whose id is made here.

        Raises:
            ValueError: a field has a value that is not allowed, the parent does not exist, the time is before the last
                step's, or the trajectory is completed.
        """
        # The step itself checks and freezes them; doing it once keeps this fast.
        step = Step(
            id=new_id("step"),
            type=type,  # type: ignore[arg-type]
            content=content,
            timestamp=self._now_after(self.steps) if timestamp is None else timestamp,
            duration_ms=duration_ms,
            metadata=metadata,  # type: ignore[arg-type]
            context=context,
            importance=importance,  # type: ignore[arg-type]
            parent_step_id=parent_step_id,
        )
        return self.with_step(step)

    def with_step(self, step: Step) -> Trajectory:
        """Return a trajectory with this step at the end. Refuse what `add_step` refuses, and an id that is taken."""
        self._refuse_when_completed("add a step")
        return self._grown(_appended(self.steps, step, self.steps, _PARENT), self.state_snapshots)

    def add_snapshot(
        self,
        state: Any = _MISSING,
        *,
        reason: str = "checkpoint",
        step_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> Trajectory:
        """Return a trajectory with one more state snapshot, whose id is made here.

        Raises:
            ValueError: the state is missing or None, a field has a value that is not allowed, the step does not exist,
                the time is before the last snapshot's, or the trajectory is completed.
        """
        snapshot = StateSnapshot(
            id=new_id("snap"),
            timestamp=self._now_after(self.state_snapshots) if timestamp is None else timestamp,
            state=state,
            reason=reason,
            step_id=step_id,
            metadata=freeze_mapping("metadata", metadata),
        )
        return self.with_snapshot(snapshot)

    def with_snapshot(self, snapshot: StateSnapshot) -> Trajectory:
        """Return a trajectory with this snapshot at the end. Refuse what `add_snapshot` refuses."""
        self._refuse_when_completed("add a snapshot")
        return self._grown(self.steps, _appended(self.state_snapshots, snapshot, self.steps, _STEP))

    def complete(
        self,
        outcome: TrajectoryOutcome | str = TrajectoryOutcome.SUCCESS,
        error: object = None,
        completed_at: datetime | None = None,
    ) -> Trajectory:
        """Return the completed trajectory.

        `error` is kept as text of at most 100,000 characters: an exception as class and message, another value as JSON.
        Without `completed_at` it ends now and the duration comes from the monotonic clock; a given time is kept
        exactly and the duration is its difference to the start.

        Raises:
            ValueError: already completed, unknown outcome, or a time before the start or the last step.
        """
        self._refuse_when_completed("complete it")
        moment, duration_ms = self._ending_now() if completed_at is None else self._ending_at(completed_at)
        return replace(
            self,
            completed_at=moment,
            duration_ms=duration_ms,
            outcome=check_word("outcome", outcome, TrajectoryOutcome),
            error=_write_error(error),
        )

    def reopen(self) -> Trajectory:
        """Return the trajectory without its completion, so that steps can be added; an open one is returned unchanged."""
        return replace(self, completed_at=None, duration_ms=None, outcome=None, error=None)

    def filter(
        self,
        min_importance: Importance | str = Importance.MEDIUM,
        preserve_first_last: bool = True,
        keep_snapshots: bool = True,
    ) -> Trajectory:
        """Return a trajectory of the steps at or above a level; children and snapshots of dropped steps are re-attached.

        Raises:
            ValueError: unknown importance.
        """
        level = check_word("min_importance", min_importance, Importance)
        ends = {self.steps[0].id, self.steps[-1].id} if preserve_first_last and self.steps else set()
        levels = {word for word in Importance if word.rank >= level.rank}
        kept_ids = {step.id for step in self.steps if step.importance in levels or step.id in ends}
        standins = _nearest_kept_ancestors(self.steps, kept_ids)
        kept = [_reparented(step, standins) for step in self.steps if step.id in kept_ids]
        snapshots = _follow_steps(self.state_snapshots, self.steps, standins) if keep_snapshots else ()
        settings = {
            "min_importance": min_importance,
            "preserve_first_last": preserve_first_last,
            "keep_snapshots": keep_snapshots,
        }
        entry = {
            "settings": settings,
            "removed_steps": len(self.steps) - len(kept),
            "removed_snapshots": len(self.state_snapshots) - len(snapshots),
        }
        earlier = self.metadata.get("filter_history")
        history = [*earlier, entry] if isinstance(earlier, list) else [entry]
        metadata = {**self.metadata, "filter_settings": settings, "filter_history": history}
        return replace(
            self,
            steps=FrozenSequence(kept),
            state_snapshots=FrozenSequence(snapshots),
            metadata=freeze_mapping("metadata", metadata),
            filtered=True,
        )

    def query(self, query: StepQuery | str) -> tuple[Step, ...]:
        """Return the steps that match the query, in order.

        Raises:
            ValueError: the text is not a query; the message names the column.
        """
        from pytest_golden.trajectory.query import StepQuery, parse_query

        asked = query if isinstance(query, StepQuery) else parse_query(query)
        return tuple(asked.select(self.steps))

    def tree(self) -> tuple[StepNode, ...]:
        """Return the root steps, each with its children, in order."""
        return grow_tree(self.steps)

    def statistics(self) -> TrajectoryStatistics:
        """Count steps, durations, depth and errors."""
        return summarize_steps(self.steps, self, total_snapshots=len(self.state_snapshots))

    def without_steps(self) -> Trajectory:
        """Return the trajectory with its own fields only, without steps and snapshots."""
        return replace(self, steps=FrozenSequence(), state_snapshots=FrozenSequence())

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Trajectory:
        """Read back what `to_dict` gave; unknown keys are tolerated.

        Raises:
            ValueError: a key is missing or has a value that is not allowed, or a newer program wrote it; the message
                says where, such as `steps[3]: type is missing`.
        """
        checking.check_mapping("a trajectory", mapping)
        steps = _read_items("steps", mapping, lambda kept, step: _appended(kept, Step.from_dict(step), kept, _PARENT))
        snapshots = _read_items(
            "state_snapshots", mapping, lambda kept, one: _appended(kept, StateSnapshot.from_dict(one), steps, _STEP)
        )
        return cls.from_parts(mapping, steps, snapshots)

    @classmethod
    def from_parts(
        cls, mapping: Mapping[str, Any], steps: FrozenSequence[Step], snapshots: FrozenSequence[StateSnapshot]
    ) -> Trajectory:
        """Return a trajectory of steps and snapshots read before; all else comes from the dict form."""
        cls.check_version(mapping)
        completed_at, outcome = mapping.get("completed_at"), mapping.get("outcome")
        return cls(
            id=check_text("id", mapping.get("id")),
            steps=steps,
            state_snapshots=snapshots,
            started_at=parse_time("started_at", mapping.get("started_at")),
            completed_at=None if completed_at is None else parse_time("completed_at", completed_at),
            duration_ms=check_duration("duration_ms", mapping.get("duration_ms")),
            metadata=freeze_mapping("metadata", mapping.get("metadata")),
            outcome=None if outcome is None else check_word("outcome", outcome, TrajectoryOutcome),
            error=checking.check_optional_text("error", mapping.get("error")),
            filtered=bool(mapping.get("filtered", False)),
        )

    def _grown(self, steps: FrozenSequence[Step], snapshots: FrozenSequence[StateSnapshot]) -> Trajectory:
        # As `replace` would, in a third of the time: this is done for each step.
        return Trajectory(
            self.id,
            steps,
            snapshots,
            self.started_at,
            metadata=self.metadata,
            filtered=self.filtered,
            _started_monotonic=self._started_monotonic,
        )

    def _refuse_when_completed(self, wish: str) -> None:
        if self.completed_at is not None:
            message = f"trajectory {self.id} is completed (outcome {self.outcome}): reopen() it first to {wish}"
            raise ValueError(message)

    def _now_after(self, earlier: FrozenSequence[Step] | FrozenSequence[StateSnapshot]) -> datetime:
        return max(utc_now(), earlier[-1].timestamp) if earlier else utc_now()

    def _ending_now(self) -> tuple[datetime, float]:
        moment = max(self._now_after(self.steps), self.started_at)
        if self._started_monotonic is None:
            return moment, (moment - self.started_at) / _ONE_MS
        return moment, max(0.0, (monotonic_seconds() - self._started_monotonic) * 1000)

    def _ending_at(self, completed_at: datetime) -> tuple[datetime, float]:
        moment = check_time("completed_at", completed_at)
        if moment < self.started_at:
            raise ValueError(f"completed_at {iso_utc(moment)} is before the start, {iso_utc(self.started_at)}")
        if self.steps and moment < self.steps[-1].timestamp:
            last = iso_utc(self.steps[-1].timestamp)
            raise ValueError(f"completed_at {iso_utc(moment)} is before the last step's timestamp, {last}")
        return moment, (moment - self.started_at) / _ONE_MS


def _appended(items: FrozenSequence[Any], item: Any, steps: FrozenSequence[Step], field: str) -> FrozenSequence[Any]:
    """Append a step or a snapshot; this field of it must name one of the steps, or be None."""
    step_id = getattr(item, field)
    if step_id is not None and not steps.has(step_id):
        named = "parent" if field == _PARENT else "step"
        raise ValueError(f"{field} {step_id!r} is not a step of this trajectory: add the {named} first")
    if items and item.timestamp < items[-1].timestamp:
        last = f"the last {'step' if field == _PARENT else 'snapshot'}'s, {iso_utc(items[-1].timestamp)}"
        raise ValueError(f"timestamp {iso_utc(item.timestamp)} is before {last}: times never go back")
    return items.appended(item)


def _read_items(
    field: str, mapping: Mapping[str, Any], add: Callable[[FrozenSequence[Any], Any], FrozenSequence[Any]]
) -> FrozenSequence[Any]:
    kept: FrozenSequence[Any] = FrozenSequence()
    for number, item in enumerate(list_items(field, mapping.get(field, ()))):
        try:
            kept = add(kept, item)
        except ValueError as error:
            raise ValueError(f"{field}[{number}]: {error}") from None
    return kept


def _write_error(error: object) -> str | None:
    if error is None:
        return None
    told = error_text(error) if isinstance(error, BaseException) else json_form(error)
    text = told if isinstance(told, str) else json.dumps(told)
    left_out = len(text) - _LONGEST_ERROR
    return text if left_out <= 0 else f"{text[:_LONGEST_ERROR]} ... ({left_out:,} more characters)"


@dataclass(frozen=True, slots=True)
class TrajectoryStatistics(Shape):
    """What a trajectory consists of. Words that do not occur are absent, and so are types without a known duration.

    `max_depth` is 1 for flat steps and 0 for none. `error_count` counts steps whose metadata has a truthy `error` or
    `failed`. `duration_ms` and `outcome` are None for an open trajectory.
    """

    total_steps: int
    step_types: Mapping[StepType, int]
    importance_distribution: Mapping[Importance, int]
    total_snapshots: int
    duration_ms: float | None
    outcome: TrajectoryOutcome | None
    filtered: bool
    duration_ms_by_type: Mapping[StepType, float]
    max_depth: int
    error_count: int


def summarize_steps(steps: Iterable[Step], ending: Trajectory, *, total_snapshots: int) -> TrajectoryStatistics:
    """Count steps, durations, depth and errors in one pass; the steps need not be those of `ending`, nor in memory.

    A child's time counts in its parent's too. Parents come before their children.
    """
    types: Counter[StepType] = Counter()
    importances: Counter[Importance] = Counter()
    durations: dict[StepType, float] = {}
    depths: dict[str, int] = {}
    errors = 0
    for step in steps:
        types[step.type] += 1
        importances[step.importance] += 1
        errors += step.has_error
        depths[step.id] = depths.get(step.parent_step_id or "", 0) + 1
        if step.duration_ms is not None:
            durations[step.type] = durations.get(step.type, 0.0) + step.duration_ms
    return TrajectoryStatistics(
        total_steps=types.total(),
        step_types=dict(types),
        importance_distribution=dict(importances),
        total_snapshots=total_snapshots,
        duration_ms=ending.duration_ms,
        outcome=ending.outcome,
        filtered=ending.filtered,
        duration_ms_by_type=durations,
        max_depth=max(depths.values(), default=0),
        error_count=errors,
    )


@dataclass(frozen=True, slots=True)
class StepNode:
    """A step and the steps whose parent it is, in order."""

    step: Step
    children: tuple[StepNode, ...] = ()

    def walk(self) -> Iterator[tuple[int, StepNode]]:
        """Return this node and all below it, parents first, each with its depth below this node. It does not recurse."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting.extend((depth + 1, child) for child in reversed(node.children))


def grow_tree(steps: Sequence[Step]) -> tuple[StepNode, ...]:
    """Return the roots; parents come before their children. Children of an unknown parent are roots."""
    known = {step.id for step in steps}
    children: dict[str | None, list[StepNode]] = {}
    # From the end: a step's children are whole before it is made.
    for step in reversed(steps):
        own = children.pop(step.id, [])
        parent = step.parent_step_id if step.parent_step_id in known else None
        children.setdefault(parent, []).append(StepNode(step, tuple(reversed(own))))
    return tuple(reversed(children.get(None, [])))


def _follow_steps(
    snapshots: Sequence[StateSnapshot], steps: Sequence[Step], standins: Mapping[str, str | None]
) -> tuple[StateSnapshot, ...]:
    """Return all snapshots; those of a removed step point to the step that replaces it, else to the last kept one before it."""
    places: dict[str, str | None] = {}
    last_kept: str | None = None
    for step in steps:
        last_kept = step.id if standins[step.id] == step.id else last_kept
        places[step.id] = standins[step.id] or last_kept
    return tuple(
        replace(snapshot, step_id=places[snapshot.step_id]) if snapshot.step_id else snapshot for snapshot in snapshots
    )


def _nearest_kept_ancestors(steps: Sequence[Step], kept_ids: set[str]) -> dict[str, str | None]:
    """Return for each step itself when kept, else its nearest kept ancestor. Parents come before their children."""
    nearest: dict[str, str | None] = {}
    for step in steps:
        above = nearest.get(step.parent_step_id) if step.parent_step_id else None
        nearest[step.id] = step.id if step.id in kept_ids else above
    return nearest


def _reparented(step: Step, standins: Mapping[str, str | None]) -> Step:
    if step.parent_step_id is None or standins[step.parent_step_id] == step.parent_step_id:
        return step
    return replace(step, parent_step_id=standins[step.parent_step_id])
