from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_golden.compare.baselines import ProjectBaselines, describe_kind, find_baselines_folder


@pytest.fixture
def baselines(tmp_path: Path) -> ProjectBaselines:
    found = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    (found.root / "out").mkdir(parents=True)
    (found.root / "out/a.csv").write_text("a")
    return found


def test_baselines_lie_beside_the_manifest_and_without_one_in_the_workspace_root() -> None:
    assert find_baselines_folder(Path("/a/b/golden_projects.yaml"), Path("/c")) == Path("/a/b/golden_baselines")
    assert find_baselines_folder(None, Path("/c")) == Path("/c/golden_baselines")


def test_baseline_is_found_or_missing(baselines: ProjectBaselines) -> None:
    assert baselines.find("out/a.csv").file == baselines.root / "out/a.csv"
    assert baselines.find("out/b.csv").is_missing
    assert baselines.find("out/a.csv/below").is_missing
    assert baselines.find("out/" + "long" * 2000).is_missing


@pytest.mark.parametrize("leads_to", ["/etc/passwd", "../../other", "../../golden_baselines/other/x", "/nowhere"])
def test_symlink_out_of_the_folder_is_refused(baselines: ProjectBaselines, leads_to: str) -> None:
    (baselines.folder / "other").mkdir()
    (baselines.folder / "other/x").touch()
    (baselines.root / "link").symlink_to(leads_to)
    found = baselines.find("link")
    assert found.file is None
    assert "symlink that leads out of its folder" in found.trouble


def test_symlinked_folder_on_the_way_is_refused_and_one_inside_is_followed(
    baselines: ProjectBaselines, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.csv").write_text("x")
    (baselines.root / "away").symlink_to(tmp_path / "elsewhere")
    (baselines.root / "near").symlink_to("out")
    assert "leads out" in baselines.find("away/a.csv").trouble
    assert baselines.find("near/a.csv").file == baselines.root / "out/a.csv"
    assert baselines.list_paths() == ("away", "near", "out/a.csv")


@pytest.mark.parametrize("part", ["golden_baselines", "golden_baselines/sales"])
def test_folder_that_is_itself_a_symlink_is_refused(tmp_path: Path, part: str) -> None:
    real = tmp_path / "real"
    (real / "sales").mkdir(parents=True)
    for folder in (real, real / "sales"):
        (folder / "a.csv").touch()
    link = tmp_path / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(real)
    baselines = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    assert "leads out" in baselines.find("a.csv").trouble
    assert baselines.list_paths() == ()
    with pytest.raises(OSError, match="is a symlink, and baselines are only written into real folders"):
        baselines.refuse_symlinks("a.csv")


def test_manifest_may_itself_lie_behind_a_symlink(tmp_path: Path, baselines: ProjectBaselines) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    seen = ProjectBaselines(tmp_path / "link/golden_baselines", "sales")
    assert seen.find("out/a.csv").file == baselines.root / "out/a.csv"
    assert seen.list_paths() == ("out/a.csv",)
    seen.refuse_symlinks("out/a.csv")


def test_what_is_no_file_is_no_baseline(baselines: ProjectBaselines) -> None:
    os.mkfifo(baselines.root / "pipe")
    (baselines.root / "loop").symlink_to("loop")
    assert baselines.find("out").trouble == "it is a folder, not a file"
    assert baselines.find("pipe").trouble == "it is a named pipe, not a file"
    assert baselines.find("loop").file is None
    assert baselines.find("loop").trouble


def test_names_of_every_kind_are_listed(baselines: ProjectBaselines) -> None:
    for name in (b"two\nlines", b"b\xffd"):
        (baselines.root / os.fsdecode(name)).touch()
    assert baselines.list_paths() == ("b\udcffd", "out/a.csv", "two\nlines")
    assert ProjectBaselines(baselines.folder, "nobody").list_paths() == ()


def test_kinds_of_things_have_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
    told = {name: describe_kind((tmp_path / name).lstat().st_mode) for name in ("link", "file", "socket", ".")}
    assert told == {"link": "a symlink", "file": "a file", "socket": "a socket", ".": "a folder"}
    assert describe_kind(Path("/dev/null").stat().st_mode) == "a device"
