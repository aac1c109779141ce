"""What a comparison is made of and what comes of it. Values only; see `comparing.py`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.regression.model import ReasonKind


class Side(StrEnum):
    """Whose file it is."""

    OUTPUT = "output"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Content:
    """One of the two files of a comparison."""

    path: Path
    side: Side


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an output does not hold: the first line of `message` is one sentence, a difference to be read may follow."""

    kind: ReasonKind
    message: str


class UnreadableError(GoldenError):
    """A file cannot be read as what it should be; the message goes on after the file's name: `is cut short`."""

    def __init__(self, side: Side, message: str) -> None:
        self.side = side
        super().__init__(message)


class VastError(UnreadableError):
    """An archive unfolds beyond all bounds; what was read of it is not the whole."""


class PatternTimedOutError(GoldenError):
    """A pattern of the manifest backtracks without end over a text."""
