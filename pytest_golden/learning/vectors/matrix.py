"""Vectors of memories in one array, ranked exactly by their cosine. Needs numpy; whoever uses it sees to turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.learning.vectors.units import Units

    Span = tuple[str, str]

_LEAST_ROOM = 256
_DECIMALS = 6
# Below such a part of all rows, to copy them costs less than to look at all.
_FEW = 0.2


class Entry(NamedTuple):
    """A memory's vector, of length one. The stamp differs when it was made again."""

    number: int
    stamp: int
    namespace: str
    unit: Units


class VectorMatrix:
    """The vectors of memories, of one dimension. `last_stamp` is the highest that it ever had."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.last_stamp = 0
        self._count = 0
        self._units: Any = np.empty((0, dimension), np.float32)
        # Numbers, stamps, places in the list of namespaces, and 1 for a vector of zeros.
        self._keys: Any = np.empty((4, 0), np.int64)
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, entries: Sequence[Entry]) -> None:
        """Take in vectors of memories, in place of those that it has of them."""
        self._drop(np.flatnonzero(np.isin(self._numbers, [entry.number for entry in entries])))
        start, end = self._count, self._count + len(entries)
        self._make_room(end)
        for row, entry in enumerate(entries, start):
            self._units[row] = entry.unit
            place = self._places.setdefault(entry.namespace, len(self._places))
            self._keys[:, row] = entry.number, entry.stamp, place, not entry.unit.any()
            self.last_stamp = max(self.last_stamp, entry.stamp)
        self._count = end

    def keep_only(self, present: Sequence[tuple[int, int]]) -> list[int]:
        """Drop what is not among these numbers and stamps, and give the numbers that are missing, rising."""
        there = np.array(sorted(present), np.int64).reshape(-1, 2)
        # Behind all others stands what none is equal to.
        there = np.vstack((there, np.full((1, 2), -1)))
        spots = np.searchsorted(there[:-1, 0], self._numbers)
        is_kept = (there[spots] == self._keys[:2, : self._count].T).all(axis=1)
        missing = there[:-1][~np.isin(there[:-1, 0], self._numbers[is_kept]), 0]
        self._drop(np.flatnonzero(~is_kept))
        return [int(number) for number in missing]

    def rank(self, unit: Units, span: Span | None, limit: int) -> list[tuple[int, float]]:
        """Give the memories of some namespaces that are nearest: numbers with the cosine, the highest first.

        What is at a right angle or beyond is not near. Among equals the newest comes first.
        """
        rows = self._rows_in(span)
        numbers = self._numbers if rows is None else self._keys[0, rows]
        # Equal vectors come out a little different by where they stand.
        cosines = np.round(self._cosines(unit, rows), _DECIMALS)
        near = np.flatnonzero(cosines > 0)
        if len(near) > limit:
            least = np.partition(cosines[near], len(near) - limit)[len(near) - limit]
            near = near[cosines[near] >= least]
        best = near[np.lexsort((-numbers[near], -cosines[near]))][:limit]
        return [(int(numbers[row]), float(cosines[row])) for row in best]

    def count_empty(self, span: Span | None) -> tuple[int, int]:
        """Count the vectors of some namespaces, and those of them that are zeros, which mean nothing."""
        rows = self._rows_in(span)
        empty = self._keys[3, : self._count] if rows is None else self._keys[3, rows]
        return len(empty), int(empty.sum())

    @property
    def _numbers(self) -> Any:
        return self._keys[0, : self._count]

    def _drop(self, rows: Any) -> None:
        # From the end on: the last row takes the place of one that goes.
        for row in rows[::-1]:
            self._count -= 1
            self._units[row] = self._units[self._count]
            self._keys[:, row] = self._keys[:, self._count]

    def _cosines(self, unit: Units, rows: Any) -> Any:
        if rows is None:
            return self._units[: self._count] @ unit
        if len(rows) < _FEW * self._count:
            return self._units[rows] @ unit
        return (self._units[: self._count] @ unit)[rows]

    def _rows_in(self, span: Span | None) -> Any:
        """Give the rows of some namespaces; None for all."""
        if span is None:
            return None
        is_in = np.array([span[0] <= place < span[1] for place in self._places], bool)
        return np.flatnonzero(is_in[self._keys[2, : self._count]]) if len(is_in) else np.empty(0, np.int64)

    def _make_room(self, count: int) -> None:
        room = len(self._units)
        if count <= room:
            return
        room = max(count, 2 * room, _LEAST_ROOM)
        units, keys = np.empty((room, self.dimension), np.float32), np.empty((4, room), np.int64)
        units[: self._count] = self._units[: self._count]
        keys[:, : self._count] = self._keys[:, : self._count]
        self._units, self._keys = units, keys
