"""Trajectories as real runs leave them, with times that are the same every time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_golden.trajectory.model import Trajectory

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def run(
    *steps: tuple[Any, ...], outcome: str | None = "success", error: str | None = None, seconds: float = 1.0
) -> Trajectory:
    """Build a trajectory of (type, content) or (type, content, metadata) steps; an outcome of None leaves it open."""
    trajectory = Trajectory.new(started_at=START)
    for kind, content, *more in steps:
        metadata = more[0] if more else {}
        importance = "critical" if metadata.get("error") and kind in {"action", "observation"} else "medium"
        trajectory = trajectory.add_step(kind, content, metadata=metadata, importance=importance, timestamp=START)
    if outcome is None:
        return trajectory
    return trajectory.complete(outcome, error, START + timedelta(seconds=seconds))


def thoughts(*texts: str, outcome: str | None = "success") -> Trajectory:
    return run(*(("reasoning", text) for text in texts), outcome=outcome)


def looping_agent() -> Trajectory:
    """An agent that reads a file which is not there, over and over, until its time is over."""
    turn = (
        ("reasoning", "I need to read config.yaml to find the source path."),
        ("tool_call", "read_file", {"path": "config.yaml", "error": "FileNotFoundError: config.yaml"}),
    )
    return run(*turn * 6, outcome="timeout", error="no answer after 300 s", seconds=300)


def failed_odibi_run() -> Trajectory:
    return run(
        ("action", "load_customers", {"reader": "odibi", "status": "success", "rows_out": 1200}),
        ("action", "load_orders", {"reader": "odibi", "status": "success", "rows_out": 5400}),
        (
            "action",
            "join_orders",
            {
                "reader": "odibi",
                "status": "failed",
                "error": "KeyError: 'customer_id'",
                "rows_out": None,
                "depends_on": ["load_orders"],
            },
        ),
        ("action", "publish", {"reader": "odibi", "status": "skipped"}),
        outcome="failure",
        error="exit code 1: node join_orders failed: KeyError: 'customer_id'",
    )


def passed_odibi_run() -> Trajectory:
    return run(
        ("action", "load_customers", {"reader": "odibi", "status": "success", "rows_out": 1200}),
        ("action", "load_orders", {"reader": "odibi", "status": "success", "rows_out": 5400}),
        ("action", "join_orders", {"reader": "odibi", "status": "success", "rows_out": 5400}),
        ("action", "publish", {"reader": "odibi", "status": "success"}),
    )


def failed_dbt_run() -> Trajectory:
    return run(
        ("action", "model.shop.stg_orders", {"reader": "dbt", "status": "success"}),
        (
            "observation",
            "test.shop.not_null_orders_amount",
            {"reader": "dbt", "status": "fail", "error": "Got 3 results, configured to fail if != 0", "failures": 3},
        ),
        ("action", "model.shop.orders", {"reader": "dbt", "status": "skipped"}),
        outcome="failure",
        error="exit code 1",
    )


def shell_timeout() -> Trajectory:
    """What the gate leaves of a script that said nothing and never ended."""
    said = "time limit of 10 s reached"
    return run(("observation", said, {"error": said}), outcome="timeout", error=said, seconds=10)
