from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.storage.folder import make_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_state_folder_is_kept_out_of_git_whoever_makes_it(tmp_path: Path) -> None:
    make_folder(tmp_path / ".golden" / "spool" / "abc")
    assert (tmp_path / ".golden" / ".gitignore").read_text() == "*\n"


def test_what_is_said_to_git_already_stays(tmp_path: Path) -> None:
    (tmp_path / ".golden").mkdir()
    (tmp_path / ".golden" / ".gitignore").write_text("*.db\n")
    make_folder(tmp_path / ".golden")
    assert (tmp_path / ".golden" / ".gitignore").read_text() == "*.db\n"


def test_other_folders_are_left_to_their_owners(tmp_path: Path) -> None:
    make_folder(tmp_path / "deep" / "stores")
    assert list((tmp_path / "deep").rglob("*")) == [tmp_path / "deep" / "stores"]
