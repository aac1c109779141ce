"""Define one step, one state snapshot, and the sequence that a trajectory keeps them in.

Steps and snapshots are frozen values that check their own fields. `Trajectory` checks that a parent exists and that times do not go back. A `Span` is
a step with a length, as a with-block: what is recorded inside it is its child. The present span is a context variable, so that each thread and
each asyncio task has its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

from pytest_golden.clock import monotonic_seconds
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration, freeze, freeze_mapping
from pytest_golden.values.checking import Checked, Missing, check_text, check_time, check_word, checked, optional
from pytest_golden.values.json_form import FrozenDict, json_form
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from typing import Self

_ANY = form(write=json_form)
#: The fields that a step has from its draft unchanged.
FIELDS_OF_DRAFTS = ("type", "content", "duration_ms", "metadata", "context", "importance")


@dataclass(frozen=True, slots=True)
class Step(Shape):
    """One thing that happened.

    `type` and `importance` may be given as plain words. `content` is anything, None included. `duration_ms` is None when
    unknown.

    Raises:
        ValueError: a field has a value that is not allowed; the message names the field and what is.
    """

    id: str
    type: StepType
    content: Any = field(metadata=_ANY)
    timestamp: datetime
    duration_ms: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, metadata=_ANY)
    context: Any = field(default=None, metadata=_ANY)
    importance: Importance = Importance.MEDIUM
    parent_step_id: str | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        check_text("id", self.id)
        settle(self, "timestamp", check_time("timestamp", self.timestamp))
        if self.parent_step_id is not None:
            check_text("parent_step_id", self.parent_step_id)
        settle_step_fields(self)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def has_error(self) -> bool:
        """Tell whether the step's metadata has a truthy `error` or `failed`."""
        return bool(self.metadata.get("error") or self.metadata.get("failed"))


def _freeze_state(name: str, state: Any) -> Any:
    if state is None or state is Missing.MISSING:
        raise ValueError(f"{name} is missing: give the state to keep, any value but None")
    return freeze(name, state)


@dataclass(frozen=True, slots=True)
class StateSnapshot(Checked, Shape):
    """The state at one time, as the caller describes it, and the step it belongs to, if any.

    Raises:
        ValueError: a field has a value that is not allowed; the message names the field and what is.
    """

    id: str = field(metadata=checked(check_text))
    timestamp: datetime = field(metadata=checked(check_time))
    state: Any = field(metadata={**_ANY, **checked(_freeze_state)})
    reason: str = field(default="checkpoint", metadata=checked(check_text))
    step_id: str | None = field(default=None, metadata=checked(optional(check_text)))
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, metadata={**_ANY, **checked(freeze_mapping)})

    def __hash__(self) -> int:
        return hash(self.id)


def settle_step_fields(step: Any) -> None:
    """Check and freeze, in place and once, the fields that a step and a step's draft have in common."""
    settle = object.__setattr__
    settle(step, "type", check_word("type", step.type, StepType))
    if step.content is Missing.MISSING:
        raise ValueError("content is missing: give what happened; None is content too")
    settle(step, "content", freeze("content", step.content))
    settle(step, "duration_ms", check_duration("duration_ms", step.duration_ms))
    settle(step, "metadata", freeze_mapping("metadata", step.metadata))
    settle(step, "context", freeze("context", step.context))
    settle(step, "importance", check_word("importance", step.importance, Importance))


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_HasId)


class FrozenSequence(Sequence[Item]):
    """A sequence of items with unique ids. It equals a tuple or list of equal items; a slice is a tuple.

    All that grew from one share a list of the items ever added at the end, and the position of each id.
    """

    __slots__ = ("_items", "_length", "_lock", "_positions")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._positions = {item.id: position for position, item in enumerate(self._items)}
        self._lock = threading.Lock()
        self._length = len(self._items)
        if len(self._positions) < self._length:
            raise ValueError("id must be unique within a trajectory: some id is given twice")

    def appended(self, item: Item) -> FrozenSequence[Item]:
        """Return a sequence with one more item at the end.

        Raises:
            ValueError: an item with this id is already in it.
        """
        if self.has(item.id):
            raise ValueError(f"id {item.id!r} is already taken in this trajectory: give another or none")
        items, positions, lock = self._items, self._positions, self._lock
        with lock:
            if len(items) > self._length:  # another one has grown from this one
                items, lock = items[: self._length], threading.Lock()
                positions = {one.id: position for position, one in enumerate(items)}
            items.append(item)
            positions[item.id] = self._length
        longer: FrozenSequence[Item] = FrozenSequence.__new__(FrozenSequence)
        longer._items, longer._positions, longer._lock, longer._length = items, positions, lock, self._length + 1
        return longer

    def has(self, item_id: object) -> bool:
        """Tell whether an item with this id is in the sequence."""
        return isinstance(item_id, str) and self._positions.get(item_id, self._length) < self._length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if index == -1 and self._length:  # read for each step that is added
            return self._items[self._length - 1]
        numbers = range(self._length)[index]
        if isinstance(numbers, range):
            return tuple(self._items[number] for number in numbers)
        return self._items[numbers]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (FrozenSequence, tuple, list)):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenSequence, (tuple(self),)


class _Present(NamedTuple):
    """An open span, its recorder, and the span that was present when it began."""

    owner: object
    step_id: str
    outer: _Present | None


_PRESENT: ContextVar[_Present | None] = ContextVar("present_trajectory_span", default=None)


def find_present_step(owner: object) -> str | None:
    """Return the innermost open span of this recorder in this thread or task, or None."""
    present = _PRESENT.get()
    while present is not None and present.owner is not owner:
        present = present.outer
    return None if present is None else present.step_id


class Span:
    """A step that begins with the with-block and gets its duration, and its error, at the end of it."""

    __slots__ = ("_begin", "_end", "_notes", "_owner", "_started", "_token", "id")

    def __init__(
        self, owner: object, begin: Callable[[], str], end: Callable[[str, float, dict[str, Any], bool], None]
    ) -> None:
        #: The step's id; empty before the block begins.
        self.id = ""
        self._owner = owner
        self._begin = begin
        self._end = end
        self._notes: dict[str, Any] = {}
        self._started = 0.0
        self._token: Token[_Present | None] | None = None

    def note(self, **metadata: Any) -> None:
        """Add metadata that is known only inside the block, such as a row count; it is kept when the block ends."""
        self._notes.update(metadata)

    def __enter__(self) -> Self:
        self.id = self._begin()
        self._token = _PRESENT.set(_Present(self._owner, self.id, _PRESENT.get()))
        self._started = monotonic_seconds()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        took = (monotonic_seconds() - self._started) * 1000
        if self._token is not None:
            with contextlib.suppress(ValueError):  # it ends in another context than it began in, as in a generator
                _PRESENT.reset(self._token)
        # A generator that is not read to its end has not failed.
        failed = error is not None and kind is not GeneratorExit
        told = {"error": error_text(error)} if error is not None and failed else {}
        self._end(self.id, took, {**self._notes, **told}, failed)


def error_text(error: BaseException) -> str:
    """Return an exception's class and message, even if its `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # a foreign class may raise anything
        return type(error).__name__
