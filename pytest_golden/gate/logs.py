"""Where the full logs of a gate lie, and how many gates' logs are kept."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEPT_GATES = 20


def choose_log_folder(state_folder: Path, gate_id: str) -> Path:
    """Give the folder for the logs of a gate, and remove those of the oldest gates."""
    logs = state_folder / "logs"
    if logs.is_dir():
        # The ids sort by time.
        for old in sorted(logs.iterdir())[: -KEPT_GATES + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return logs / gate_id
