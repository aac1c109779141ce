from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.clock import new_id
from pytest_golden.cycle.worktree import CycleWorktree
from tests.gate.verify.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit; folders for temporary files are this test's own."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folder = tmp_path / "repository"
    folder.mkdir()
    made = Repository(folder)
    made.declare("works")
    made.script("works", "echo fine\n")
    made.write(lib__py="x = 1\n")
    made.commit("base")
    return made


@pytest.fixture
def tree(repository: Repository) -> Iterator[CycleWorktree]:
    made = CycleWorktree(repository.folder, new_id("cycle"), repository.git("rev-parse", "HEAD"), "golden/cycle-test")
    made.open()
    yield made
    made.close()
