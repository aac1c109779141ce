"""Past results made to order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_golden.history.changes import PastResult
from pytest_golden.regression.model import ResultStatus

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
STATUSES = {
    "P": ResultStatus.PASSED,
    "~": ResultStatus.PASSED,
    "F": ResultStatus.FAILED,
    "E": ResultStatus.ERROR,
    "-": ResultStatus.SKIPPED,
    "^": ResultStatus.ERROR,
}


def results_of(word: str, *, earlier_passes: int = 0, **fields: Any) -> tuple[PastResult, ...]:
    """Return results newest first from a word that is read oldest first: P, F, E, -, ^ for an interrupted one and ~ for a flaky pass.

    A field given as a list has one value a result, oldest first.
    """
    results = []
    streak = earlier_passes
    for number, sign in enumerate(word):
        status = STATUSES[sign]
        streak = {"P": streak + 1, "~": streak + 1, "-": streak, "^": streak}.get(sign, 0)
        own = {name: value[number] if isinstance(value, list) else value for name, value in fields.items()}
        result = {
            "entry_id": f"entry_{number}",
            "run_id": f"run_{number}",
            "project": "sales",
            "status": status,
            "exit_code": None if sign == "-" else int(sign != "P"),
            "execution_time_seconds": 1.0,
            "attempts": 2 if sign == "~" else 1,
            "is_flaky": sign == "~",
            "is_regression": sign in "FE",
            "pass_streak": streak,
            "commit": "1a2b3c4d" * 5,
            "branch": "main",
            "dirty": False,
            "created_at": NOON + timedelta(hours=number),
            "trajectory_id": None,
            "message": None if sign in "P~" else "exit code 1, expected 0\nmore",
            "is_interrupted": sign == "^",
        }
        results.append(PastResult(**{**result, **own}))
    return tuple(reversed(results))
