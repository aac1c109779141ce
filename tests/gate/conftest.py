from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.gepa import GoldenAdapter
from tests.gate.gepa_workspace import OpenAdapter, Workspace
from tests.gate.record_place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def open_adapter(workspace: Workspace) -> Iterator[OpenAdapter]:
    """Open adapters on the workspace, closed when the test ends."""
    opened = []

    def open_one(components: Any = None, /, **options: Any) -> GoldenAdapter:
        adapter = GoldenAdapter(workspace.manifest, components or {"query": "query.sql"}, **options)
        opened.append(adapter)
        return adapter

    yield open_one
    for adapter in opened:
        adapter.close()
