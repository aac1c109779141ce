from __future__ import annotations

import fcntl
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.verify.base_worktree import PrivateFolder, is_private_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("temporary_folder")

KILLED = """
import os, signal, sys
from pathlib import Path
from pytest_golden.verify.base_worktree import PrivateFolder
private = PrivateFolder(outside=Path("/nowhere"))
(private.path / "file").write_text("left")
print(private.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_folder_is_private_and_removed_with_all_that_is_in_it(temporary_folder: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        assert stat.S_IMODE(private.path.stat().st_mode) == 0o700
        assert is_private_folder(private.path)
        locked = private.path / "locked"
        locked.mkdir()
        (locked / "file").write_text("")
        locked.chmod(0o500)
    assert list(temporary_folder.iterdir()) == []


def test_folder_of_a_killed_verification_is_removed_by_the_next(temporary_folder: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    left = temporary_folder / killed.stdout.strip().rpartition("/")[2]
    assert (left / "file").read_text() == "left"
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert not left.exists()


def test_folder_of_a_verification_that_lives_stays(tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as first, PrivateFolder(outside=tmp_path / "checkout"):
        assert first.path.exists()


def test_what_is_just_being_made_or_is_no_folder_stays(temporary_folder: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        prefix = private.path.name[:-8]
    (temporary_folder / f"{prefix}new").mkdir()
    (temporary_folder / f"{prefix}link").symlink_to(tmp_path)
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert (temporary_folder / f"{prefix}new").is_dir()
        assert (temporary_folder / f"{prefix}link").is_symlink()


def test_folder_lies_outside_the_checkout(temporary_folder: Path) -> None:
    with PrivateFolder(outside=temporary_folder.parent) as private:
        assert not private.path.is_relative_to(temporary_folder.parent)


def test_folder_is_never_found_without_its_lock_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def begin_another_first(number: int, how: int) -> None:
        monkeypatch.setattr("fcntl.flock", lock)
        PrivateFolder(outside=tmp_path / "checkout").close()
        lock(number, how)

    monkeypatch.setattr("fcntl.flock", begin_another_first)
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        assert private.path.is_dir()
