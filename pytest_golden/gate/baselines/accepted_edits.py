"""The checkout as it is after a run that accepted baselines: they are its own doing, and no change since it passed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.checkout import Checkout, read_checkout
from pytest_golden.regression.model import OutputChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.regression.model import GoldenProjectResult

_KEPT = frozenset({OutputChange.NEW, OutputChange.CHANGED, OutputChange.REMOVED})


def find_accepted_edits(
    begun: Checkout, folder: Path, results: Iterable[GoldenProjectResult]
) -> Mapping[str, str | None] | None:
    """Give the files that differ from the commit, the baselines in `folder` as they are now and all others as they were.

    None where no baseline was changed, or nothing is known of the checkout.
    """
    has_changed = any(one.change in _KEPT for result in results for one in result.accepted or ())
    if not has_changed or begun.root is None or begun.dirty_files is None:
        return None
    place = Path(os.path.realpath(folder))
    if not place.is_relative_to(begun.root):
        return None
    now = read_checkout(begun.root)
    if now.commit != begun.commit or now.dirty_files is None:
        return None
    prefix = f"{place.relative_to(begun.root).as_posix()}/"
    others = {path: content for path, content in begun.dirty_files.items() if not path.startswith(prefix)}
    return others | {path: content for path, content in now.dirty_files.items() if path.startswith(prefix)}
