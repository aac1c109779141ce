"""Trajectories as rows, and back. Each function works on an open connection; what is stored is redacted by the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, insert, or_, select

from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import trajectories
from pytest_golden.storage.statements import Prepared
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import FrozenSequence
from pytest_golden.trajectory.vocabulary import TrajectoryOutcome
from pytest_golden.values.checking import check_mapping, list_items, parse_time

if TYPE_CHECKING:
    from sqlalchemy import Connection


class KeptTrajectory(NamedTuple):
    """Which trajectory it is, without what is in it. `number` counts up as they are kept."""

    id: str
    entry_id: str | None
    project: str | None
    number: int


_INSERT = Prepared(insert(trajectories), *(column.name for column in trajectories.c if column.name != "number"))
_KEPT = select(*(trajectories.c[name] for name in KeptTrajectory._fields)).order_by(trajectories.c.number.desc())
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
    _INSERT.leave(
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


def find_dict_form(connection: Connection, trajectory_id: str) -> dict[str, Any] | None:
    """Find the dict form of a trajectory by its id, much faster than `find_trajectory`: its steps are taken as they were stored.

    Raises:
        ValueError: it is damaged, or a newer program wrote it.
    """
    body = connection.scalar(_FIND, {"trajectory_id": trajectory_id})
    if body is None:
        return None
    about = Trajectory.from_parts(check_mapping("a trajectory", body), FrozenSequence(), FrozenSequence()).to_dict()
    parts = {name: list_items(name, body.get(name, ())) for name in ("steps", "state_snapshots")}
    return about | {name: [check_mapping(name, one) for one in items] for name, items in parts.items()}


def find_kept(connection: Connection, run: str, limit: int) -> tuple[KeptTrajectory, ...]:
    """Find which trajectories a word means, newest first: one by its id or its entry's, else a project's newest one.

    A word that is none of these may be the beginning of ids; only then there may be several, `limit` at most.
    """
    by_id = or_(trajectories.c.id == run, trajectories.c.entry_id == run)
    for meant in (by_id, trajectories.c.project == run):
        row = connection.execute(_KEPT.where(meant).limit(1)).one_or_none()
        if row is not None:
            return (KeptTrajectory(*row),)
    begins = or_(*(trajectories.c[name].startswith(run, autoescape=True) for name in ("id", "entry_id")))
    return tuple(KeptTrajectory(*row) for row in connection.execute(_KEPT.where(begins).limit(limit)))


def find_success_before(connection: Connection, kept: KeptTrajectory) -> KeptTrajectory | None:
    """Find the last one of the same project before this one that ended with success."""
    earlier = (
        trajectories.c.project == kept.project,
        trajectories.c.number < kept.number,
        trajectories.c.outcome == TrajectoryOutcome.SUCCESS.value,
    )
    row = connection.execute(_KEPT.where(*earlier).limit(1)).one_or_none()
    return None if row is None else KeptTrajectory(*row)


def list_traced_projects(connection: Connection) -> tuple[str, ...]:
    """Return the projects that have a trajectory."""
    rows = connection.scalars(select(trajectories.c.project).where(trajectories.c.project.is_not(None)).distinct())
    return tuple(name for name in rows if name is not None)
