"""Events of a gate run for the tests of this room, as the session would make them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_golden.clock import new_id
from pytest_golden.gate.events import ResultJudged, RunBegun, RunEnded
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.storage.columns import to_ms
from pytest_golden.trajectory.model import Trajectory

START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def begin(*projects: str, minute: int = 0, **more: Any) -> RunBegun:
    fields: dict[str, Any] = {
        "run_id": new_id("entry"),
        "moment": moment(minute),
        "workspace_root": "/work",
        "manifest": "golden_projects.yaml",
        "command_line": ("pytest", "--golden"),
        "checkout": {"commit": "c" * 40, "branch": "main", "dirty": False, "dirty_files": {}},
        "surroundings": {"python": "3.11.2"},
        "host": "here",
        "pid": 1,
        "expectations": {project: new_id("expectation") for project in projects},
        "facts": {"mode": "improvement"},
    }
    return RunBegun(**{**fields, **more})


def judge(
    begun: RunBegun, project: str, status: ResultStatus = ResultStatus.PASSED, *, fails: bool | None = None
) -> ResultJudged:
    trajectory = Trajectory.new(started_at=START).add_step("action", "load", timestamp=START)
    plain = trajectory.complete("success", completed_at=START + timedelta(seconds=1)).to_dict()
    steps = plain.pop("steps")
    is_good = status in {ResultStatus.PASSED, ResultStatus.SKIPPED}
    reasons = () if status is ResultStatus.PASSED else (Reason(ReasonKind.EXIT_CODE, "it ended with exit code 3"),)
    result = GoldenProjectResult(
        project,
        f"{project}.py",
        status,
        exit_code=0 if is_good else 3,
        error_message=reasons[0].message if reasons else None,
        execution_time_seconds=1.5,
        reasons=reasons,
        steps_total=1,
        steps=tuple(steps),
        trajectory=plain,
        command=("python", f"{project}.py"),
    )
    return ResultJudged(
        run_id=begun.run_id,
        entry_id=new_id("entry"),
        signal_id=new_id("signal"),
        moment=begun.moment + 1000,
        expectation_id=begun.expectations.get(project),
        fails=not is_good if fails is None else fails,
        declaration={"name": project, "timeout": 600.0},
        result=result,
    )


def end(begun: RunBegun, immediate: str = "success", **more: Any) -> RunEnded:
    fields: dict[str, Any] = {
        "run_id": begun.run_id,
        "moment": begun.moment + 60_000,
        "immediate_result": immediate,
        "notes": "all passed",
        "verdict": judge_run([GoldenProjectResult("one", "one.py", ResultStatus.PASSED, 0)]).to_dict(),
        "facts": {"deselected": []},
    }
    return RunEnded(**{**fields, **more})


def moment(minute: int) -> int:
    return to_ms(START + timedelta(minutes=minute))
