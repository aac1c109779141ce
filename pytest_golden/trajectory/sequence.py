"""A read-only sequence that grows by giving a longer one, at constant cost.

All generations share one list. The newest owns its end; an older one that grows gets a copy, so every kept reference
keeps its content. Items are found by their `id` without a search.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, overload


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_HasId)


class _Shared(Generic[Item]):
    """What all generations have in common: the items ever added at the end, and where each id stands."""

    __slots__ = ("items", "lock", "positions")

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.positions = {item.id: position for position, item in enumerate(items)}
        self.lock = threading.Lock()

    def grown(self, length: int, item: Item) -> _Shared[Item]:
        with self.lock:
            owner = self if len(self.items) == length else _Shared(self.items[:length])
            owner.positions[item.id] = length
            owner.items.append(item)
        return owner


class FrozenSequence(Sequence[Item]):
    """A sequence of items with unique ids. It equals a tuple or list of equal items; a slice is a tuple."""

    __slots__ = ("_length", "_shared")
    _shared: _Shared[Item]
    _length: int

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._shared = _Shared(list(items))
        self._length = len(self._shared.items)
        if len(self._shared.positions) < self._length:
            raise ValueError("id must be unique within a trajectory: some id is given twice")

    def appended(self, item: Item) -> FrozenSequence[Item]:
        """Return a sequence with one more item at the end.

        Raises:
            ValueError: an item with this id is already in it.
        """
        if self.has(item.id):
            raise ValueError(f"id {item.id!r} is already taken in this trajectory: give another or none")
        longer: FrozenSequence[Item] = FrozenSequence.__new__(FrozenSequence)
        longer._shared = self._shared.grown(self._length, item)
        longer._length = self._length + 1
        return longer

    def has(self, item_id: object) -> bool:
        """Tell whether an item with this id is in the sequence."""
        return isinstance(item_id, str) and self._shared.positions.get(item_id, self._length) < self._length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        return islice(self._shared.items, self._length)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if index == -1 and self._length:  # asked for at each step that is added
            return self._shared.items[self._length - 1]
        numbers = range(self._length)[index]
        if isinstance(numbers, range):
            return tuple(self._shared.items[number] for number in numbers)
        return self._shared.items[numbers]

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
