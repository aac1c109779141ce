"""What the tests of comparisons share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.regression.baselines.files import Files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return a place for an output and its baseline."""
    return Files(tmp_path)
