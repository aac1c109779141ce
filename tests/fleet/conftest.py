from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.fleet.clusters import SCHEDULER, WORKER, Cluster, Gate
from tests.requirement import require
from tests.warm_starts import starting_warm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """A folder with a `python` that starts gates, schedulers and workers warm."""
    require(find_spec("distributed"), "distributed")
    with starting_warm(SCHEDULER, WORKER, "pytest_golden.fleet.cluster") as folder:
        yield folder


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Cluster]:
    """Two workers that no test may kill."""
    cluster = Cluster(tmp_path_factory.mktemp("fleet") / "cluster", programs)
    try:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def lonely(tmp_path: Path, programs: Path) -> Iterator[Cluster]:
    """A scheduler without workers, for a test to do with what it likes."""
    cluster = Cluster(tmp_path / "cluster", programs)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def gate(tmp_path: Path, programs: Path) -> Gate:
    return Gate(tmp_path / "gate", programs)
