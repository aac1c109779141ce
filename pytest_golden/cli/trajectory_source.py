"""Which trajectory a command means: one of the store, by id, its beginning or its project's name, or one in a file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.cli.store_option import open_store
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.trajectory.jsonlines import iter_steps, read_outline, read_trajectory
from pytest_golden.trajectory.store import find_kept, find_success_before, find_trajectory, list_traced_projects

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step
    from pytest_golden.trajectory.store import KeptTrajectory

_MOST_NAMED = 5


class Source(NamedTuple):
    """A trajectory that need not be in memory: all of it but its steps, and two ways to them.

    `outline` has what the trajectory says of itself; its steps and snapshots are there only if they are cheap.
    """

    outline: Trajectory
    project: str | None
    total_steps: int
    total_snapshots: int
    iter_steps: Callable[[], Iterator[Step]]
    read: Callable[[], Trajectory]


def find_source(arguments: argparse.Namespace, run: str) -> Source:
    """Find the trajectory that is meant.

    Raises:
        SettingsError: there is none, or several begin so.
        GoldenError: the store or the file cannot be read.
    """
    if not run.strip() or "\x00" in run:
        raise SettingsError("RUN is blank: give a golden project's name, the id of a trajectory, or a file")
    file = Path(run)
    if file.is_file():
        return _open_file(file)
    if file.suffix == ".jsonl":
        raise SettingsError(f"there is no file {run}")
    with open_store(arguments) as store, store.read() as connection:
        kept = _find_one(connection, run, store.where)
        return _from_store(connection, kept)


def find_pair(arguments: argparse.Namespace, run: str, other: str | None) -> tuple[Source, Source]:
    """Find two trajectories to compare; without another, the project's last success before the one that is meant.

    Raises:
        SettingsError: there is none, several begin so, or the project had no success before.
        GoldenError: the store or a file cannot be read.
    """
    if other is not None:
        return find_source(arguments, run), find_source(arguments, other)
    if Path(run).is_file():
        raise SettingsError("a file has no earlier run: name the OTHER to compare it with")
    with open_store(arguments) as store, store.read() as connection:
        kept = _find_one(connection, run, store.where)
        earlier = None if kept.project is None else find_success_before(connection, kept)
        if earlier is None:
            raise SettingsError(f"there is no success of {kept.project or kept.id} before {kept.id}: name the OTHER")
        return _from_store(connection, earlier), _from_store(connection, kept)


def _open_file(file: Path) -> Source:
    outline = read_outline(file)
    return Source(
        outline.trajectory,
        None,
        outline.total_steps,
        outline.total_snapshots,
        lambda: iter_steps(file),
        lambda: read_trajectory(file),
    )


def _from_store(connection: Connection, kept: KeptTrajectory) -> Source:
    try:
        found = find_trajectory(connection, kept.id)
    except ValueError as error:
        raise GoldenError(f"trajectory {kept.id}: {error}") from None
    if found is None:
        raise SettingsError(f"trajectory {kept.id} is no longer there")
    steps, snapshots = len(found.steps), len(found.state_snapshots)
    return Source(found, kept.project, steps, snapshots, lambda: iter(found.steps), lambda: found)


def _find_one(connection: Connection, run: str, where: str) -> KeptTrajectory:
    found = find_kept(connection, run, _MOST_NAMED)
    if len(found) == 1:
        return found[0]
    if found:
        raise SettingsError(f"several ids begin with {run!r}: {', '.join(kept.id for kept in found)}; give more of one")
    near = get_close_matches(run, list_traced_projects(connection), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "give a golden project's name, an id or its beginning, or a file"
    raise SettingsError(f"no run {run!r} has a trajectory in {where}; {hint}")
