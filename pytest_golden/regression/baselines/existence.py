"""The comparison that needs no baseline: a file is there, and its size on the disk lies within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import Mismatch
from pytest_golden.regression.baselines.opening import read_size
from pytest_golden.regression.baselines.showing import count_of
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from pytest_golden.manifest.model import DeclaredOutput
    from pytest_golden.regression.baselines.model import Content


def check_existence(declared: DeclaredOutput, actual: Content, *, shown_as: str) -> Mismatch | None:
    """Check a file's size on the disk against `min_bytes` and `max_bytes`.

    Raises:
        UnreadableError: it is gone or no regular file.
    """
    size = read_size(actual)
    if declared.min_bytes is not None and size < declared.min_bytes:
        bound = f"less than min_bytes: {declared.min_bytes}"
    elif declared.max_bytes is not None and size > declared.max_bytes:
        bound = f"more than max_bytes: {declared.max_bytes}"
    else:
        return None
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, f"{shown_as} has {count_of(size, 'byte')}, {bound}")
