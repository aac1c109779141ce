"""A second version of the store's tables, so that tests have an older store before the first one is released."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_golden.storage import schema, upgrading

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_MIGRATION = """
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("CREATE TABLE letters (number INTEGER PRIMARY KEY)")
    op.execute("INSERT INTO letters SELECT number FROM entries")
"""


def add_second_version(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the program know a second version. A store that it has opened before is then older.

    Its migration makes the table `letters` with a row for each entry.
    """
    shutil.copytree(upgrading.MIGRATIONS, folder)
    (folder / "versions" / "v0002_letters.py").write_text(_MIGRATION, encoding="utf-8")
    monkeypatch.setattr(upgrading, "MIGRATIONS", folder)
    monkeypatch.setattr(schema, "HEAD", "0002")
