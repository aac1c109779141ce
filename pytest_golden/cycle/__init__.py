"""The improvement cycle: ten fixed steps around a proposal, of which the gate is the seventh.

It decides by rules (`rules.py`) and keeps its state after every step (`keeping.py`). Nothing that it does merges or undoes
a proposal: what is wrong with one is flagged. `worktree/` is the cycle of the command line, whose improvement and review
are commands.
"""

from __future__ import annotations

from pytest_golden.cycle.config import CycleConfig
from pytest_golden.cycle.model import (
    CYCLE_ORDER,
    CycleEvent,
    CycleEventType,
    CycleState,
    CycleStep,
    CycleVerdict,
    StepRecord,
    StepStatus,
)
from pytest_golden.cycle.rules import get_final_status
from pytest_golden.cycle.runner import CycleRunner

__all__ = [
    "CYCLE_ORDER",
    "CycleConfig",
    "CycleEvent",
    "CycleEventType",
    "CycleRunner",
    "CycleState",
    "CycleStep",
    "CycleVerdict",
    "StepRecord",
    "StepStatus",
    "get_final_status",
]
