from __future__ import annotations

import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.verify.private_folder import PrivateFolder, is_private_folder

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, signal, sys
from pathlib import Path
from pytest_golden.gate.verify.private_folder import PrivateFolder
private = PrivateFolder(outside=Path("/nowhere"))
(private.path / "file").write_text("left")
print(private.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of this test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_folder_is_private_and_removed_with_all_that_is_in_it(place: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        assert stat.S_IMODE(private.path.stat().st_mode) == 0o700
        assert is_private_folder(private.path)
        locked = private.path / "locked"
        locked.mkdir()
        (locked / "file").write_text("")
        locked.chmod(0o500)
    assert list(place.iterdir()) == []


def test_folder_of_a_killed_verification_is_removed_by_the_next(place: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    left = place / killed.stdout.strip().rpartition("/")[2]
    assert (left / "file").read_text() == "left"
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert not left.exists()


def test_folder_of_a_verification_that_lives_stays(tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as first, PrivateFolder(outside=tmp_path / "checkout"):
        assert first.path.exists()


def test_what_is_just_being_made_or_is_no_folder_stays(place: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        prefix = private.path.name[:-8]
    (place / f"{prefix}new").mkdir()
    (place / f"{prefix}link").symlink_to(tmp_path)
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert (place / f"{prefix}new").is_dir()
        assert (place / f"{prefix}link").is_symlink()


def test_folder_lies_outside_the_checkout(place: Path) -> None:
    with PrivateFolder(outside=place.parent) as private:
        assert not private.path.is_relative_to(place.parent)
