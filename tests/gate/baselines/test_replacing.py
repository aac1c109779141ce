from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.baselines import ProjectBaselines
from pytest_golden.compare.replacing import exchange, replace_at_once, replace_one_by_one

if TYPE_CHECKING:
    from pathlib import Path

# Kills itself at the first, the second, ... of all calls by which an update can change what is on the disk.
_KILLED = """
import os, shutil, sys
from pathlib import Path
from pytest_golden.compare.baselines import ProjectBaselines
from pytest_golden.compare.accepting import WaitingRoom

top = Path(sys.argv[1])
output = top / "output"
output.write_text("new")
folder = top / "golden_baselines"

def update(last):
    calls = 0
    def count(event, _):
        nonlocal calls
        if event.startswith(("os.", "open", "shutil.", "ctypes.call")):
            calls += 1
            if calls == last:
                os.kill(os.getpid(), 9)
    sys.addaudithook(count)
    room = WaitingRoom(ProjectBaselines(folder, "sales"))
    copies = {path: room.copy(output) for path in ("a", "in/b")}
    room.make_durable()
    room.apply(copies, {"gone"})
    room.empty()

for last in range(1, 1000):
    shutil.rmtree(folder, ignore_errors=True)
    for path in ("a", "in/b", "same", "gone"):
        (folder / "sales" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sales" / path).write_text("old")
    child = os.fork()
    if not child:
        update(last)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    root = folder / "sales"
    print(*sorted(f"{p.relative_to(root)}={p.read_text()}" for p in root.rglob("*") if p.is_file()))
    if not status:
        break
"""
_OLD, _NEW = "a=old gone=old in/b=old same=old", "a=new in/b=new same=old"


@pytest.fixture
def baselines(tmp_path: Path) -> ProjectBaselines:
    found = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    (found.root / "in").mkdir(parents=True)
    for path in ("a", "in/b", "same"):
        (found.root / path).write_text("old")
    (tmp_path / "copy").write_text("new")
    return found


def _read(baselines: ProjectBaselines) -> dict[str, str]:
    return {path: (baselines.root / path).read_text() for path in baselines.list_paths()}


def _require_exchange(folder: Path) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
    if not exchange(folder / "one", folder / "other"):
        pytest.skip("the file system cannot let two folders change places")


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_update_that_is_killed_leaves_all_old_baselines_or_all_new_ones(tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], capture_output=True, text=True, check=True)
    states = done.stdout.splitlines()
    assert set(states) == {_OLD, _NEW}
    assert states.index(_NEW) == states.count(_OLD)
    assert len(states) > 10


def test_folders_change_places(tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    (tmp_path / "one/a").touch()
    assert exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "other/a").exists()
    assert not exchange(tmp_path / "one", tmp_path / "nowhere")


def test_what_cannot_be_placed_is_told_and_its_old_baseline_stays(baselines: ProjectBaselines, tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    copies = {"a": tmp_path / "copy", "same/below": tmp_path / "copy"}
    troubles = replace_at_once(baselines, tmp_path / "staged", copies, ())
    assert list(troubles or {}) == ["same/below"]
    assert _read(baselines) == {"a": "new", "in/b": "old", "same": "old"}
    troubles = replace_one_by_one(baselines, {"same/below": tmp_path / "copy"}, ["in/b", "nothing"])
    assert sorted(troubles) == ["nothing", "same/below"]
    assert _read(baselines) == {"a": "new", "same": "old"}
    assert not (baselines.root / "in").exists()


def test_folder_keeps_its_mode_and_goes_with_its_last_baseline(baselines: ProjectBaselines, tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    (baselines.root / "in").chmod(0o775)
    baselines.root.chmod(0o2775)
    assert replace_at_once(baselines, tmp_path / "staged", {"a": tmp_path / "copy"}, ()) == {}
    assert [(place.stat().st_mode & 0o7777) for place in (baselines.root, baselines.root / "in")] == [0o2775, 0o775]
    assert replace_at_once(baselines, tmp_path / "again", {}, ("a", "in/b", "same")) == {}
    assert not baselines.root.exists()


def test_file_in_the_place_of_the_folder_is_not_replaced(tmp_path: Path) -> None:
    baselines = ProjectBaselines(tmp_path, "sales")
    baselines.root.write_text("mine")
    (tmp_path / "copy").write_text("new")
    assert replace_at_once(baselines, tmp_path / "staged", {"a": tmp_path / "copy"}, ()) is None
    assert list(replace_one_by_one(baselines, {"a": tmp_path / "copy"}, ())) == ["a"]
    assert baselines.root.read_text() == "mine"
