"""What a hybrid search answers, and what keeps vectors out of it. Values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pytest_golden.learning.model import MemoryHit

#: Returns a vector for each text. Its attribute `model`, if it has one, names the model.
Embedder = Callable[[Sequence[str]], Any]


class SearchMethod(StrEnum):
    """What was searched by."""

    HYBRID = "hybrid"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class HybridAnswer:
    """What was found, best first, and by which method. `notice` says why it was words alone, or what was not looked at."""

    hits: tuple[MemoryHit, ...]
    method: SearchMethod
    notice: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, JSON-safe."""
        return {"hits": [hit.to_dict() for hit in self.hits], "method": self.method.value, "notice": self.notice}


class VectorsError(GoldenError):
    """There are no vectors to search by, or to keep. The message is a clause that tells why."""
