"""Partners between the items of two multisets: first those that are equal, then those that are near enough. Knows no tolerance."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.regression.baselines.json_documents.values import Json, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Finding partners that are near enough can cost the square of an array's length.
_MOST_TRIALS = 500_000
_MOST_VALUES_RANKED = 200


class Alone(NamedTuple):
    """The positions of items without a partner, in the one multiset and in the other."""

    ours: list[int]
    theirs: list[int]


def match_equal(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Alone:
    """Find what stays alone when equal digests are partners; of equal ones the last stay."""
    excess = Counter(ours)
    excess.subtract(Counter(theirs))
    return Alone(_last_ones(ours, excess, 1), _last_ones(theirs, excess, -1))


class NearMatching:
    """Partners within a tolerance for what `match_equal` left alone; those that have a partner may get another.

    `is_near` is asked 500,000 times at most, and says no from then on.
    """

    def __init__(self, ours: Sequence[Json], theirs: Sequence[Json], is_near: Callable[[Json, Json], bool]) -> None:
        self._ours = ours
        self._theirs = theirs
        self._is_near = is_near
        self._trials = _MOST_TRIALS
        self._partner_of: dict[int, int] = {}
        # Items that are near to each other stand near to each other when both sides are sorted.
        ranked = sorted(range(len(ours)), key=lambda index: _rank(ours[index]))
        self._rank_of = {index: rank for rank, index in enumerate(ranked)}
        self._ranked_theirs = sorted(range(len(theirs)), key=lambda index: _rank(theirs[index]))

    def match(self, ours: Sequence[bytes], theirs: Sequence[bytes], alone: Alone) -> Alone:
        """Find what stays alone; takes the digests of all items, and what they left alone."""
        waiting: defaultdict[bytes, list[int]] = defaultdict(list)
        for index in sorted({*range(len(ours))} - {*alone.ours}):
            waiting[ours[index]].append(index)
        for index in sorted({*range(len(theirs))} - {*alone.theirs}):
            self._partner_of[index] = waiting[theirs[index]].pop()
        left = [index for index in alone.ours if not self._find_partner(index)]
        return Alone(left, [index for index in range(len(theirs)) if index not in self._partner_of])

    def _find_partner(self, start: int) -> bool:
        """Find a partner along an augmenting path: by giving others a new one where that helps."""
        reached_by: dict[int, int] = {}
        todo = deque([start])
        while todo:
            index = todo.popleft()
            for other in self._candidates(index):
                if other in reached_by or not self._try(index, other):
                    continue
                reached_by[other] = index
                if other not in self._partner_of:
                    self._reassign(other, reached_by, start)
                    return True
                todo.append(self._partner_of[other])
        return False

    def _reassign(self, last: int, reached_by: dict[int, int], start: int) -> None:
        before = {index: other for other, index in self._partner_of.items()}
        while True:
            index = reached_by[last]
            self._partner_of[last] = index
            if index == start:
                return
            last = before[index]

    def _candidates(self, index: int) -> Iterator[int]:
        """Give the other side's items, the likely ones first."""
        rank, count = self._rank_of[index], len(self._ranked_theirs)
        for distance in range(max(rank + 1, count - rank)):
            if rank + distance < count:
                yield self._ranked_theirs[rank + distance]
            if 0 < distance <= rank and rank - distance < count:
                yield self._ranked_theirs[rank - distance]

    def _try(self, index: int, other: int) -> bool:
        self._trials -= 1
        return self._trials >= 0 and self._is_near(self._ours[index], self._theirs[other])


def _last_ones(digests: Sequence[bytes], excess: Counter[bytes], sign: int) -> list[int]:
    left = {digest: count * sign for digest, count in excess.items() if count * sign > 0}
    found = []
    for index in range(len(digests) - 1, -1, -1):
        if left.get(digests[index], 0) > 0:
            left[digests[index]] -= 1
            found.append(index)
    return found[::-1]


def _rank(item: Json) -> tuple[str, list[float]]:
    """Give what sorts items: all of the first values in them that is no number, then the numbers."""
    texts, numbers = [], []
    todo = [item]
    for _ in range(_MOST_VALUES_RANKED):
        if not todo:
            break
        value = todo.pop()
        if is_number(value):
            numbers.append(_as_float(value))
        elif isinstance(value, dict):
            todo.extend(value[key] for key in sorted(value, reverse=True))
        elif isinstance(value, list):
            todo.extend(value[:_MOST_VALUES_RANKED][::-1])
        else:
            texts.append(str(value))
    return "\0".join(texts), numbers


def _as_float(number: Json) -> float:
    try:
        found = float(number)
    except OverflowError:
        return float("inf")
    # NaN has no place in an order.
    return float("inf") if isnan(found) else found
