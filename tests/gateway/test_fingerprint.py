from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.write_set import CACHE_FOLDERS, find_differences, take_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def differences(folder: Path, change: Callable[[], object]) -> list[str]:
    before = take_fingerprint(str(folder))
    change()
    return list(find_differences(before, take_fingerprint(str(folder))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.csv").write_text("1\n")
    (folder / "b.csv").write_text("2\n")
    (folder / "link").symlink_to("b.csv")
    return folder


def test_untouched_folder_has_no_differences(folder: Path) -> None:
    assert differences(folder, lambda: None) == []


def test_reading_is_no_difference(folder: Path) -> None:
    assert differences(folder, (folder / "b.csv").read_text) == []


def test_equal_bytes_with_the_old_times_are_a_difference(folder: Path) -> None:
    file = folder / "b.csv"
    found = file.stat()

    def forge() -> None:
        file.write_text("2\n")
        os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert differences(folder, forge) == ["b.csv"]


def test_new_gone_changed_and_retargeted_are_differences(folder: Path) -> None:
    def change() -> None:
        (folder / "new").touch()
        (folder / "sub" / "a.csv").unlink()
        (folder / "b.csv").chmod(0o600)
        (folder / "link").unlink()
        (folder / "link").symlink_to("sub")

    assert differences(folder, change) == ["b.csv", "link", "new", "sub/a.csv"]


def test_mode_of_a_folder_is_looked_at(folder: Path) -> None:
    assert differences(folder, lambda: (folder / "sub").chmod(0o700)) == ["sub"]


@pytest.mark.parametrize("name", sorted(CACHE_FOLDERS))
def test_caches_do_not_count(folder: Path, name: str) -> None:
    def change() -> None:
        (folder / "sub" / name).mkdir()
        (folder / "sub" / name / "x").touch()

    assert differences(folder, change) == []


def test_git_and_virtual_environments_are_withheld(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub" / "env" / "bin").mkdir(parents=True)
    (folder / "sub" / "env" / "pyvenv.cfg").touch()
    found = take_fingerprint(str(folder))
    assert sorted(found.withheld) == [".git", "sub/env"]
    assert not any(path.startswith((".git", "sub/env/")) for path in found.marks)


def test_git_file_of_a_worktree_is_withheld(folder: Path) -> None:
    (folder / ".git").write_text("gitdir: /elsewhere\n")
    assert take_fingerprint(str(folder)).withheld == (".git",)


def test_project_that_is_itself_an_environment_is_looked_at(folder: Path) -> None:
    (folder / "pyvenv.cfg").touch()
    assert "b.csv" in take_fingerprint(str(folder)).marks


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").touch()
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(".")
    assert not any(path.startswith(("out/", "loop/")) for path in take_fingerprint(str(folder)).marks)


def test_names_that_are_not_text_are_looked_at(folder: Path) -> None:
    def change() -> None:
        (folder / os.fsdecode(b"\xff\xfe")).touch()

    assert differences(folder, change) == [os.fsdecode(b"\xff\xfe")]


def test_folder_that_went_away_is_a_difference(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert differences(folder, folder.rmdir) == ["(unreadable)"]
