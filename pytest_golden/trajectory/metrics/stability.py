"""How often a result changes with nothing else changed. What counts as a result is for the caller to say."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def flakiness(results: Iterable[object]) -> float | None:
    """Give the share of neighbouring results that differ, 0 to 1; None for fewer than two.

    Of results that have a `status` only that counts: no two runs take the same time.
    """
    return flakiness_of_groups([results])


def flakiness_of_groups(groups: Iterable[Iterable[object]]) -> float | None:
    """Give the share over the neighbours in all groups together; the last of one is no neighbour of the next one's first."""
    differs = [one != other for one, other in chain.from_iterable(pairwise(map(_status, group)) for group in groups)]
    return sum(differs) / len(differs) if differs else None


def _status(result: object) -> object:
    return getattr(result, "status", result)
