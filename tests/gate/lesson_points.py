"""Points and differences made to order."""

from __future__ import annotations

from typing import Any

from pytest_golden.gate.fixes import Difference, Point
from pytest_golden.history.checkout import Commit
from pytest_golden.regression.model import ReasonKind, ResultStatus

A, B, C = "a" * 40, "b" * 40, "c" * 40
BOOM = "exit code 1, expected 0: KeyError: 'amount'"


def point(number: int = 1, *, passed: bool = False, **fields: Any) -> Point:
    plain: dict[str, Any] = {
        "number": number,
        "entry_id": f"entry_{number:026}",
        "run_id": f"entry_RUN{number}",
        "project": "sales",
        "status": ResultStatus.PASSED if passed else ResultStatus.FAILED,
        "message": None if passed else BOOM,
        "reason_kind": None if passed else ReasonKind.EXIT_CODE.value,
        "is_flaky": False,
        "commit": A,
        "branch": "main",
        "dirty": False,
        "workspace_root": "/w",
        "declaration_digest": "d",
        "environment_digest": "e",
        "created_at": 1_772_366_400_000 + number,
    }
    return Point(**{**plain, **fields})


def difference(*subjects: str, **fields: Any) -> Difference:
    """Return the difference of these commits, the newest first."""
    commits = tuple(Commit(f"{number:040x}", subject) for number, subject in enumerate(subjects, 1))
    plain: dict[str, Any] = {
        "commit_range": f"{A[:7]}..{B[:7]}" if subjects else None,
        "commits": commits,
        "commit_count": len(commits),
    }
    plain |= fields
    plain.setdefault("inside", plain.get("files", ()))
    return Difference(**plain)
