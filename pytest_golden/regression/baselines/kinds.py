"""By which comparison one file is compared. Pure text over paths; no file is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.manifest.comparisons import comparison_by_suffix

if TYPE_CHECKING:
    from pathlib import PurePath

    from pytest_golden.manifest.model import DeclaredOutput


def choose_comparison(path: str | PurePath, declared: DeclaredOutput) -> str:
    """Give the declared comparison; where none is, the one of the file's suffix, through that of an archive."""
    return declared.compare or comparison_by_suffix(str(path).replace("\\", "/"))
