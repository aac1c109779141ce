"""The values of a comparison: the two files, the mismatch, the errors, and the choice of the comparison by path."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.manifest.comparisons import comparison_by_suffix

if TYPE_CHECKING:
    from pathlib import Path, PurePath

    from pytest_golden.manifest.model import DeclaredOutput
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


def choose_comparison(path: str | PurePath, declared: DeclaredOutput) -> str:
    """Return the declared comparison; where none is, the one of the file's suffix, through that of an archive."""
    return declared.compare or comparison_by_suffix(str(path).replace("\\", "/"))
