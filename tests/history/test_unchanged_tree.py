from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pytest_golden.gate.events import SecretHider
from pytest_golden.history import unchanged_tree as ignored
from pytest_golden.history.inputs import IgnoredThen
from pytest_golden.history.unchanged_paths import PathIndex
from pytest_golden.history.unchanged_tree import IgnoredFiles, find_gone
from pytest_golden.redaction.rule import MARK

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def test_newest_file_counts_and_no_product_report_or_what_tools_leave(tmp_path: Path) -> None:
    (tmp_path / "data" / "__pycache__").mkdir(parents=True)
    for name in ("data/a.csv", "data/__pycache__/x.pyc", "data/x.log", "store.db", "loose.csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "data" / "r.xml").write_text("<testsuites>")
    files = IgnoredFiles(tmp_path, ["data/"], {str(tmp_path / "store.db")})
    assert files.find_newer(0) == "data/a.csv"
    assert files.find_newer(sys.maxsize) is None
    assert IgnoredFiles(tmp_path, ["store.db"], {str(tmp_path / "store.db")}).find_newer(0) is None
    assert IgnoredFiles(tmp_path, ["loose.csv"]).find_newer(0) == "loose.csv"


def test_folder_out_of_which_a_file_went_has_changed_and_one_with_a_new_report_has_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("x")
    (data / "a.csv").unlink()
    assert IgnoredFiles(tmp_path, ["data/"]).find_newer(0) == "data"
    (data / "r.xml").write_text("<testsuites>")
    assert IgnoredFiles(tmp_path, ["data/"]).find_newer(0) is None


def test_of_installed_packages_only_what_each_installation_writes_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "node_modules" / "left-pad").mkdir(parents=True)
    assert IgnoredFiles(tmp_path, ["node_modules/"]).find_newer(0) == "node_modules"
    (tmp_path / "node_modules" / "left-pad" / "x.js").write_text("x")
    (tmp_path / "node_modules" / ".package-lock.json").write_text("{}")
    listing = IgnoredFiles(tmp_path, ["node_modules/"])
    assert listing.find_newer(0) in {"node_modules", "node_modules/.package-lock.json"}


def test_what_is_gone_or_too_much_is_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert IgnoredFiles(tmp_path, ["gone.csv"]).find_newer(sys.maxsize) == "gone.csv"
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / "data" / name).write_text("x")
    monkeypatch.setattr(ignored, "_MOST_LOOKED_AT", 2)
    assert IgnoredFiles(tmp_path, ["data/"]).find_newer(sys.maxsize) == "data/"


def gone(root: Path, *names: str, products: tuple[str, ...] = ()) -> tuple[str, ...]:
    found = find_gone(root, IgnoredThen(names), products)
    assert isinstance(found, PathIndex)
    return found.paths


def test_files_folders_and_what_changed_its_kind_are_seen_to_be_gone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.csv").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "now-a-file").touch()
    names = ("a.csv", "data/", "dangling", "b.csv", "more/", "now-a-file/", "store.db-wal")
    found = gone(tmp_path, *names, products=(str(tmp_path / "store.db-wal"),))
    assert found == ("b.csv", "more/", "now-a-file/")


def test_hidden_or_unrecorded_names_tell_nothing(tmp_path: Path) -> None:
    assert "not recorded" in str(find_gone(tmp_path, None, ()))
    hidden = SecretHider(lambda *_: None, ()).hide_names(["a.csv", f"{TOKEN}.csv"])
    assert hidden is not None
    assert hidden[0] == "a.csv"
    assert MARK in hidden[1]
    assert "whose name is hidden" in str(find_gone(tmp_path, IgnoredThen(tuple(hidden)), ()))
