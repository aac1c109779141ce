"""Embedders that can be told what to do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What stands in one group means the same; each group is a direction.
MEANINGS = (
    {"column", "field", "attribute"},
    {"missing", "absent", "lost"},
    {"timeout", "slow", "late"},
    {"network", "connection", "socket"},
    {"memory", "ram", "heap"},
)


def embed(texts: Sequence[str]) -> Any:
    """Return how often each meaning is in a text; zeros for a text that has none."""
    return np.array(
        [[sum(word in group for word in text.lower().split()) for group in MEANINGS] for text in texts], float
    )


class Told:
    """Does what it is told by `behave`, and keeps the texts that it was asked for."""

    def __init__(self, behave: Callable[[Sequence[str]], Any] = embed, model: Any = "told") -> None:
        self.behave = behave
        self.model = model
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return self.behave(texts)

    @property
    def count(self) -> int:
        return sum(map(len, self.asked))


class Hanging:
    """Hangs for as long as it is not released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.calls = 0

    def __call__(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        self.released.wait(600)
        return embed(texts)
