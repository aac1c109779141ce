"""Which gate runs are people's own. The others ran in a worktree that was made for them and is gone.

Those are the base of `golden verify` and the proposals of `golden cycle`: what passed or failed there is another commit's
news, and no turn in what people ran before and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_

from pytest_golden.storage.private_prefix import PRIVATE_PREFIX
from pytest_golden.storage.schema import gate_runs

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement


def is_own_run() -> ColumnElement[bool]:
    """Give the condition that a run is somebody's own; a result without a run counts as one."""
    root = gate_runs.c.workspace_root
    return or_(root.is_(None), root.not_like(f"%/{PRIVATE_PREFIX}%"))


def is_own_place(workspace_root: str | None) -> bool:
    """Tell the same of a run by where it ran."""
    return workspace_root is None or f"/{PRIVATE_PREFIX}" not in workspace_root
