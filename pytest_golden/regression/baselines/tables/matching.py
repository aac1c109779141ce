"""Whether all of one side can be paired with all of the other, each with one that is near enough. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def can_all_be_paired(count: int, near: Iterable[Sequence[int]]) -> bool:
    """Tell whether `count` on each side can be paired; `near` are the pairs that may be made (augmenting paths)."""
    partners: dict[int, list[int]] = defaultdict(list)
    for left, right in near:
        partners[left].append(right)
    taken: dict[int, int] = {}
    return len(partners) == count and all(_augment(left, partners, taken) for left in list(partners))


def _augment(start: int, partners: Mapping[int, Sequence[int]], taken: dict[int, int]) -> bool:
    """Find a partner for one more, moving others to further partners where need be; breadth first."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for left in waiting:
        for right in partners[left]:
            if right in came_from:
                continue
            came_from[right] = left
            if right not in taken:
                _turn(right, start, came_from, taken)
                return True
            waiting.append(taken[right])
    return False


def _turn(right: int, start: int, came_from: Mapping[int, int], taken: dict[int, int]) -> None:
    before = {left: partner for partner, left in taken.items()}
    while True:
        left = came_from[right]
        taken[right] = left
        if left == start:
            return
        right = before[left]
