"""Which files git ignored when a run began, by their names: what of them is gone later has changed. Nothing is read of them.

Of one that is there its times tell (`ignored.py`); of one that is gone nothing does, unless somebody noted its name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.changed.paths import PathIndex
from pytest_golden.gate.changed.reports import list_reports
from pytest_golden.gate.changed.tree import is_no_input
from pytest_golden.redaction.references import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from pytest_golden.gate.checkout import Checkout

_MOST_NAMES = 5000


@dataclass(frozen=True, slots=True)
class IgnoredThen:
    """Files and folders that git ignored, folders with a slash; not `is_all` where there were too many to note."""

    names: tuple[str, ...]
    is_all: bool = True

    @classmethod
    def read(cls, plain: Any) -> IgnoredThen | None:
        """Read back what `describe_ignored` gave; None for whatever else a store may hold in its place."""
        names = plain.get("names") if isinstance(plain, dict) else None
        return cls(tuple(map(str, names)), plain.get("is_all") is True) if isinstance(names, list) else None


def describe_ignored(
    checkout: Checkout, hide: Callable[[Sequence[str]], Sequence[str] | None]
) -> dict[str, Any] | None:
    """Give what git ignores in a checkout, without what is nobody's input, as JSON-safe values; None where it is not known.

    `hide` takes out of names what the store does not keep.
    """
    root = checkout.root
    if root is None or checkout.ignored is None:
        return None
    found = [name for name in checkout.ignored if not is_no_input(root, name)]
    reports = frozenset(list_reports(root, found))
    names = [name for name in found if name not in reports]
    hidden = hide(names[:_MOST_NAMES])
    return None if hidden is None else {"names": list(hidden), "is_all": len(names) <= _MOST_NAMES}


def find_gone(root: Path, then: IgnoredThen | None, products: Collection[str]) -> PathIndex | str:
    """Give what git ignored then and is gone, but for `products`, real paths; or why that is not known."""
    if then is None:
        return "which files git ignored when it passed is not recorded"
    gone = []
    for name in then.names:
        if MARK in name:
            return f"git ignored {name} when it passed, whose name is hidden"
        # A folder's name keeps its slash: what is a file now is gone as a folder.
        if not os.path.lexists(f"{root}/{name}") and str(root / name) not in products:
            gone.append(name)
    return PathIndex(gone)
