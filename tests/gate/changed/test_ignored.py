from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pytest_golden.gate.changed import ignored
from pytest_golden.gate.changed.ignored import IgnoredFiles

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_newest_file_counts_and_no_product_report_or_what_tools_leave(tmp_path: Path) -> None:
    (tmp_path / "data" / "node_modules").mkdir(parents=True)
    for name in ("data/a.csv", "data/node_modules/x.js", "data/x.log", "store.db", "loose.csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "data" / "r.xml").write_text("<testsuites>")
    files = IgnoredFiles(tmp_path, ["data/"], {str(tmp_path / "store.db")})
    assert files.find_newer(0) == "data/a.csv"
    assert files.find_newer(sys.maxsize) is None
    assert IgnoredFiles(tmp_path, ["store.db"], {str(tmp_path / "store.db")}).find_newer(0) is None
    assert IgnoredFiles(tmp_path, ["loose.csv"]).find_newer(0) == "loose.csv"


def test_what_is_gone_or_too_much_is_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert IgnoredFiles(tmp_path, ["gone.csv"]).find_newer(sys.maxsize) == "gone.csv"
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / "data" / name).write_text("x")
    monkeypatch.setattr(ignored, "_MOST_LOOKED_AT", 2)
    assert IgnoredFiles(tmp_path, ["data/"]).find_newer(sys.maxsize) == "data/"
