"""What earlier runs know about a failure at hand: what changed since the last pass, and whether it was seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.changes import find_changes
from pytest_golden.gate.parting import describe_parting
from pytest_golden.gate.store import find_last_pass
from pytest_golden.learning.seen_before import find_seen_before
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.store import find_trajectory

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.gate.changes import ChangedSincePass, Present
    from pytest_golden.learning.seen_before import SeenBefore
    from pytest_golden.regression.model import GoldenProjectResult

_MOST_SEEN = 3


def find_changed(connection: Connection, result: GoldenProjectResult, present: Present) -> ChangedSincePass | None:
    """Compare a failed run with its project's last pass; None when it never passed."""
    past = find_last_pass(connection, result.name)
    if past is None:
        return None
    return find_changes(past, present, _find_parting(connection, past.result.trajectory_id, result))


def find_seen(connection: Connection, result: GoldenProjectResult) -> tuple[SeenBefore, ...]:
    """Find the same failure in earlier runs, in the same project first."""
    return find_seen_before(connection, result.error_message or "", prefer=result.name, limit=_MOST_SEEN)


def _find_parting(connection: Connection, good_id: str | None, result: GoldenProjectResult) -> str | None:
    plain: dict[str, Any] = {**(result.trajectory or {}), "steps": result.steps}
    good = None if good_id is None or not result.steps else find_trajectory(connection, good_id)
    return None if good is None else describe_parting(good, Trajectory.from_dict(plain))
