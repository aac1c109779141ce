"""Vectors of memories in one array, ranked exactly by their cosine. Needs numpy; callers take turns."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from pytest_golden.learning.vectors.model import VectorsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Span = tuple[str, str]
    Units: TypeAlias = NDArray[np.float32]

_LEAST_ROOM = 256
_DECIMALS = 6
# Below such a part of all rows, to copy them costs less than to look at all.
_FEW = 0.2
_ON_DISK = np.dtype("<f4")


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
        """Drop rows that are not among these numbers and stamps; return the missing numbers, ascending."""
        there = np.array(sorted(present), np.int64).reshape(-1, 2)
        # A last row that equals no other.
        there = np.vstack((there, np.full((1, 2), -1)))
        spots = np.searchsorted(there[:-1, 0], self._numbers)
        is_kept = (there[spots] == self._keys[:2, : self._count].T).all(axis=1)
        missing = there[:-1][~np.isin(there[:-1, 0], self._numbers[is_kept]), 0]
        self._drop(np.flatnonzero(~is_kept))
        return [int(number) for number in missing]

    def rank(self, unit: Units, span: Span | None, limit: int) -> list[tuple[int, float]]:
        """Return the memories of some namespaces that are nearest: numbers with the cosine, the highest first.

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
        """Return the rows of some namespaces; None for all."""
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


def read_units(given: Any, count: int) -> Units:
    """Return a row of length one for each of `count` texts; a vector of zeros stays one.

    Raises:
        VectorsError: it is not so many rows of finite numbers.
    """
    try:
        rows = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise VectorsError(f"gave no rows of equal length ({error})") from None
    if rows.dtype.kind not in "iuf":
        raise VectorsError(f"gave no numbers ({type(given).__name__} of {rows.dtype})")
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        texts = "1 text" if count == 1 else f"{count} texts"
        raise VectorsError(f"gave numbers of shape {rows.shape} for {texts}, and not a vector each")
    rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise VectorsError("gave NaN or infinite numbers")
    # By the largest first: the square of a large number would be infinite.
    rows /= _never_zero(np.abs(rows).max(axis=1, keepdims=True))
    rows /= _never_zero(np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.astype(np.float32)


def write_vector(unit: Units) -> str:
    """Write a vector as it is kept: 32-bit floats, little-endian, in Base64."""
    return base64.b64encode(unit.astype(_ON_DISK).tobytes()).decode("ascii")


def read_vector(text: str) -> Units | None:
    """Read what `write_vector` wrote; None for anything else."""
    try:
        unit = np.frombuffer(base64.b64decode(text, validate=True), _ON_DISK)
    except (binascii.Error, ValueError):
        return None
    return unit.astype(np.float32, copy=False) if len(unit) and np.isfinite(unit).all() else None


def _never_zero(sizes: Any) -> Any:
    return np.where(sizes == 0, 1.0, sizes)
