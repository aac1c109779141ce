from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.fleet.clusters import Cluster, Gate
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers that no test may kill."""
    require(find_spec("distributed"), "distributed")
    cluster = Cluster(tmp_path_factory.mktemp("fleet") / "cluster")
    try:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers, for a test to do with what it likes."""
    require(find_spec("distributed"), "distributed")
    cluster = Cluster(tmp_path / "cluster")
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")
