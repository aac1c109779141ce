from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.scratch import Scratch, explain_full, list_places, remove_tree


def test_scratch_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "made")
    first, second = scratch.new_folder(), scratch.new_folder()
    assert first != second
    assert scratch.root.stat().st_mode & 0o777 == first.stat().st_mode & 0o777 == 0o700
    (first / "x").touch()
    scratch.close()
    assert list((tmp_path / "made").iterdir()) == []
    scratch.close()


def test_scratch_of_a_killed_session_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from pytest_golden.gateway.scratch import Scratch;"
        "s = Scratch(Path(sys.argv[1])); (s.new_folder() / 'x').touch(); print(s.root, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    scratch = Scratch(tmp_path)
    assert not left.exists()
    scratch.close()


def test_scratch_of_a_living_session_stays(tmp_path: Path) -> None:
    living, other = Scratch(tmp_path), Scratch(tmp_path)
    assert living.root.is_dir()
    other.close()
    assert living.root.is_dir()
    living.close()


def test_sessions_that_start_together_take_nothing_from_each_other(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pytest_golden.gateway.scratch import Scratch;\n"
        "for _ in range(60):\n"
        "    s = Scratch(Path(sys.argv[1])); (s.new_folder() / 'x').touch(); s.close()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    sessions = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [session.communicate()[1] for session in sessions]
    assert errors == ["", "", ""]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_other_folders_and_links_are_left_alone(tmp_path: Path) -> None:
    name = f"pytest-golden-{os.getuid()}-"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "alive.lock").touch()
    (tmp_path / f"{name}link").symlink_to("elsewhere")
    (tmp_path / f"{name}being-made").mkdir()
    (tmp_path / "pytest-golden-other").mkdir()
    Scratch(tmp_path).close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "home", "elsewhere", f"{name}link", f"{name}being-made", "pytest-golden-other",
    }  # fmt: skip


def test_place_where_nothing_can_be_made_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GatewayError, match=r"no scratch folder can be made in .*file"):
        Scratch(tmp_path / "file")


def test_place_without_space_is_told(tmp_path: Path) -> None:
    assert explain_full(tmp_path) == ()
    if sys.platform == "linux":
        # It has no space at all.
        (told,) = explain_full(Path("/proc"))
        assert told.startswith("no space is left in /proc,")


def test_places_are_disk_before_memory(tmp_path: Path, home: Path) -> None:
    places = list_places()
    assert len(set(places)) == len(places)
    assert home / ".cache" / "pytest-golden" in places
    if sys.platform == "linux":
        assert str(places[-1]) == os.path.realpath("/dev/shm")


def test_tree_with_any_modes_is_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").touch()
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "x").touch()
    (tree / "link").symlink_to(outside)
    (tree / "a" / "b").chmod(0)
    (tree / "a").chmod(0)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "x").exists()
    remove_tree(tree)
