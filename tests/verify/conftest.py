from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository in which nothing is committed."""
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder)
