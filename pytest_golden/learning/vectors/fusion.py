"""Several rankings made into one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009.
_K = 60


def fuse(*rankings: Iterable[int]) -> list[tuple[int, float]]:
    """Give all numbers of some rankings, each best first, with the sum of 1 / (60 + rank), the highest first.

    Ranks count from 1. Among equals the highest number, which is the newest memory, comes first.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))
