from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.state_folder import (
    find_spool_folder,
    find_state_folder,
    find_store_place,
    find_substitute,
    hold_gate_lock,
    list_store_files,
    prepare_state_folder,
)
from tests.permissions import without_powers

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from pytest_golden.gate.state_folder import hold_gate_lock
with hold_gate_lock(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_free_lock_is_taken_in_silence_and_its_folder_is_ignored_by_git(tmp_path: Path) -> None:
    said: list[str] = []
    with hold_gate_lock(tmp_path, said.append):
        assert (tmp_path / ".golden" / "gate.pid").read_text() == str(os.getpid())
    assert said == []
    assert (tmp_path / ".golden" / ".gitignore").read_text() == "*\n"
    assert not (tmp_path / ".golden" / "gate.pid").exists()


def test_second_gate_says_who_runs_and_waits(tmp_path: Path) -> None:
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        release = holder.stdin

        def say(text: str) -> None:
            said.append(text)
            release.write("\n")
            release.flush()

        with hold_gate_lock(tmp_path, say):
            pass
        holder.communicate(timeout=60)
        assert said == [f"another gate (pid {holder.pid}) is running in this workspace: waiting"]


def test_unreadable_holder_is_left_out(tmp_path: Path) -> None:
    folder = prepare_state_folder(tmp_path)
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        (folder / "gate.pid").unlink()
        release = holder.stdin

        def say(text: str) -> None:
            said.append(text)
            release.close()

        with hold_gate_lock(tmp_path, say):
            pass
    assert said == ["another gate is running in this workspace: waiting"]


def test_workspace_that_cannot_hold_the_folder_uses_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workspace = tmp_path / "workspace"
    workspace.write_text("a file, so that no folder can be made in it")
    folder = prepare_state_folder(workspace)
    assert folder.parent == tmp_path
    assert folder == prepare_state_folder(workspace)
    with hold_gate_lock(workspace, lambda _: None):
        assert (folder / "gate.lock").exists()


@without_powers
def test_read_only_workspace_uses_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / ".golden").mkdir()
    (workspace / ".golden" / ".gitignore").touch()
    (workspace / ".golden").chmod(0o500)
    assert prepare_state_folder(workspace).parent == tmp_path


def test_state_folder_is_found_without_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_state_folder(tmp_path) == tmp_path / ".golden"
    assert list(tmp_path.iterdir()) == []
    assert prepare_state_folder(tmp_path) == find_state_folder(tmp_path)
    (tmp_path / "temporary").mkdir()
    with monkeypatch.context() as unwritable:
        unwritable.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        unwritable.setattr(os, "access", lambda path, mode: tmp_path not in (path, path.parent))
        # What an earlier run left in the workspace can be read, until there is something of a later one.
        assert find_state_folder(tmp_path) == tmp_path / ".golden"
        elsewhere = prepare_state_folder(tmp_path)
        assert elsewhere != tmp_path / ".golden"
        assert find_state_folder(tmp_path) == elsewhere


def test_substitute_that_somebody_else_has_prepared_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, temporary, elsewhere = tmp_path / "workspace", tmp_path / "temporary", tmp_path / "elsewhere"
    for folder in (workspace, temporary, elsewhere):
        folder.mkdir()
    (workspace / ".golden").write_text("a file stands in the way")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    substitute = prepare_state_folder(workspace)
    assert substitute.parent == temporary
    assert substitute.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(substitute)
    substitute.symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="belongs to another user"):
        prepare_state_folder(workspace)
    assert list(elsewhere.iterdir()) == []


def test_substitute_is_taken_in_only_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workspace = tmp_path / "workspace"
    workspace.write_text("a file, so that no folder can be made in it")
    assert find_substitute(workspace) is None
    folder = prepare_state_folder(workspace)
    assert find_substitute(workspace) == folder
    folder.chmod(0o770)
    assert find_substitute(workspace) is None
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved").chmod(0o700)
    folder.symlink_to(tmp_path / "moved")
    assert find_substitute(workspace) is None


def test_each_store_has_a_spool_of_its_own(tmp_path: Path) -> None:
    places = [find_store_place(said, tmp_path) for said in (None, "/a.db", "/b.db", "sqlite:////a.db")]
    own, first, second, again = (find_spool_folder(place, tmp_path) for place in places if place is not None)
    assert own == tmp_path / "spool"
    assert first == again
    assert first.parent == second.parent == own
    assert first != second
    assert len(first.name) == 16


def test_store_that_was_named_by_its_own_path_is_the_own_one(tmp_path: Path) -> None:
    place = find_store_place(str(tmp_path / "golden.db"), tmp_path)
    assert place is not None
    assert place.is_own
    assert find_store_place("none", tmp_path) is None


def test_files_that_are_written_while_a_gate_runs_are_those_of_sqlite(tmp_path: Path) -> None:
    written = list_store_files(find_store_place(str(tmp_path / "shard.db"), tmp_path))
    assert [file.name for file in written] == ["shard.db", "shard.db-wal", "shard.db-shm", "shard.db-journal"]
    assert {file.parent for file in written} == {tmp_path}
    assert list_store_files(find_store_place("none", tmp_path)) == ()
