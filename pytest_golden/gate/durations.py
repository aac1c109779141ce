"""Read from the store what durations are judged by, once for a session. It loads the database library."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import find_state_folder
from pytest_golden.gate.run_record import PATIENCE_SECONDS
from pytest_golden.gate.spool import find_store_place
from pytest_golden.history.run_environment import describe_run_environment
from pytest_golden.history.trends import SlowdownJudge
from pytest_golden.history.trends_store import read_trends
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pytest_golden.gate.spool import StorePlace
    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest


def find_slowdown_judge(said: str | None, manifest: Manifest, abilities: GatewayAbilities | None) -> SlowdownJudge:
    """Read it from the store that a workspace's gate would use, `said` or its own; none is made."""
    with open_existing(find_store_place(said, find_state_folder(manifest.workspace_root))) as store:
        return read_slowdown_judge(store, manifest.projects, manifest.workspace_root, abilities)


@contextmanager
def open_existing(place: StorePlace | None) -> Iterator[Store | None]:
    """Open a store to look at earlier runs; None where there is none, or it cannot be opened."""
    store = None if place is None else _open(place)
    if store is None:
        yield None
        return
    with store:
        yield store


def _open(place: StorePlace) -> Store | None:
    file = parse_location(place.location)
    if not (file.is_on_server or (file.path is not None and file.path.is_file())):
        return None
    try:
        return Store.open(place.location, busy_seconds=PATIENCE_SECONDS)
    except GoldenError:
        # Whoever records there says why.
        return None


def read_slowdown_judge(
    store: Store | None,
    projects: Collection[GoldenProjectConfig],
    workspace_root: Path,
    abilities: GatewayAbilities | None,
    *,
    workers: int = 1,
) -> SlowdownJudge:
    """Return what judges the projects that declare `max_slowdown`; where none does, nothing is read.

    A store that cannot be read, or None, leaves them unjudged, which each result says.
    """
    judged = {project.name: project.venv for project in projects if project.max_slowdown is not None}
    if not judged or store is None:
        return SlowdownJudge(trouble="no earlier run is known" if store is None else "")
    facts = describe_run_environment(projects, workspace_root, abilities, workers=workers)
    try:
        with store.read() as connection:
            return SlowdownJudge(read_trends(connection, judged, facts))
    except GoldenError as error:
        return SlowdownJudge(trouble=f"earlier runs cannot be asked: {error}")
