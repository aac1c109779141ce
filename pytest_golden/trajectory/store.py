"""Trajectories as rows, and back. Each function works on an open connection; what is stored is redacted by the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select

from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import trajectories
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import parse_time

if TYPE_CHECKING:
    from sqlalchemy import Connection

_INSERT = Prepared(insert(trajectories), *(column.name for column in trajectories.c if column.name != "number"))
_FIND = select(trajectories.c.body).where(trajectories.c.id == bindparam("trajectory_id"))


def insert_trajectory(
    connection: Connection,
    trajectory: Trajectory | Mapping[str, Any],
    *,
    entry_id: str | None = None,
    project: str | None = None,
    agent_id: str | None = None,
) -> None:
    """Keep a trajectory, or its dict form as `to_dict` gives it, and what it belongs to.

    Raises:
        ValueError: a dict that is not the form of a trajectory.
    """
    body = trajectory if isinstance(trajectory, Mapping) else trajectory.to_dict()
    completed_at = body.get("completed_at")
    _INSERT.run(
        connection,
        {
            "id": body.get("id"),
            "entry_id": entry_id,
            "agent_id": agent_id,
            "project": project,
            "outcome": body.get("outcome"),
            "started_at": to_ms(parse_time("started_at", body.get("started_at"))),
            "completed_at": None if completed_at is None else to_ms(parse_time("completed_at", completed_at)),
            "duration_ms": body.get("duration_ms"),
            "steps_total": len(body.get("steps", ())),
            "body": dict(body),
        },
    )


def find_trajectory(connection: Connection, trajectory_id: str) -> Trajectory | None:
    """Find a trajectory by its id.

    Raises:
        ValueError: a newer program wrote it.
    """
    body = connection.scalar(_FIND, {"trajectory_id": trajectory_id})
    return None if body is None else Trajectory.from_dict(body)
